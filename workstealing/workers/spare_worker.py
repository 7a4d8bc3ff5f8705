"""A process that runs brief tasks, as its queue sees it: a worker for one slice.

It has a name, but no deque and no heartbeat. It takes tasks under a lease, as many as
are likely to end in the slice, and runs one after another. The exchange that reports on
them takes the next ones. Tasks that there is no time for go back. If a slice is ended
early, the next one delivers its reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from math import inf
from threading import Lock
from typing import Any, TypeAlias

from workstealing._forking import reset_in_children
from workstealing._logs import BackgroundLogger
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import Clock
from workstealing.drivers.connect import driver_source
from workstealing.errors import NotReplicated
from workstealing.queue.brief_calls import (
    BriefExchanged,
    StillHeld,
    brief_exchange,
    keep_lease,
)
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import Flow, Invoke, ask
from workstealing.queue.upkeep_calls import unpark
from workstealing.queue.worker_calls import choose_victim
from workstealing.recruiting.job import Duty
from workstealing.tasks.attempt import Attempt, Delivery, Ending, Report
from workstealing.tasks.runner import TaskRunner
from workstealing.workers.learnt_times import LearntTimes
from workstealing.workers.side_connection import SideConnection
from workstealing.workers.spare_alias import SpareAlias
from workstealing.workers.spare_lease import SpareLease
from workstealing.workers.spare_moment import MOST_BYTES, SpareMoment, runnable

__all__ = ("SpareWorker",)

logger = BackgroundLogger(__name__)

# For one ability, in one slice.
_MOST_UNPARKED = 20

Execute: TypeAlias = Callable[[Delivery, float, float], Any]
"""Runs a task, or returns a coroutine that does; it is given two times in seconds.

The task is cancelled after the first, and has the second to end after that.
"""


class SpareWorker:
    """Runs brief tasks of a queue, a slice at a time.

    Args:
        queue: whose tasks.
        clock: how long things take.
        is_async: run coroutine functions and nothing else.
        reraised: exceptions that are meant for the host, not for the task.
    """

    def __init__(
        self,
        queue: TaskQueue,
        clock: Clock,
        *,
        is_async: bool,
        reraised: tuple[type[BaseException], ...],
    ) -> None:
        self._queue = queue
        self._parts = internals_of(queue)
        self._clock = clock
        self._is_async = is_async
        self._reraised = reraised
        self.connection = SideConnection(self._parts, driver_source)
        """On which plain functions are taken, and tasks log and save."""
        self._times = LearntTimes()
        self._lease = SpareLease(self._parts.settings.lease_ms / 1000, clock)
        self._lock = Lock()
        # Made with the first turn: by then a queue has its tasks and a test its server.
        self._known_as: SpareAlias | None = None
        reset_in_children(self, SpareWorker._forget_parent)

    @contextmanager
    def turn(self, seconds: float = 0.0) -> Iterator[bool]:
        """Take the turn while the context lasts; False if another thread has it.

        It waits so many *seconds* for the other thread.
        """
        lock = self._lock
        if not lock.acquire(timeout=seconds):
            yield False
            return
        try:
            # A test may have taken the queue to another server.
            known_as, source = self._known_as, self.connection.source
            if known_as is None or known_as.source is not source:
                self._begin_anew()
            yield True
        finally:
            lock.release()

    @property
    def runner(self) -> TaskRunner:
        """The runner of the tasks in hand."""
        return self._alias.runner

    def in_hand(self, attempt: Attempt) -> AbstractContextManager[None]:
        """Keep the lease of the tasks in hand while an attempt runs, however long."""
        alias = self._alias
        renew = partial(self._renew, alias, alias.identity.keys)
        return self._lease.kept(attempt, renew)

    def work(self, execute: Execute) -> Flow[Duty]:
        """Take tasks and run them, while there is time for them and their reports."""
        duty = Duty.DISMISSED
        moment = SpareMoment(
            self._times, self._clock, self._batch_seconds, has_grace=self._is_async
        )
        self._alias.output.has_failed = False
        yield from self._leave_behind()
        yield from self._choose_shard()
        # One task of each slice may be of a kind that never ran here.
        unknown, may_unpark = 0.0, True
        while True:
            own = runnable(self._queue.registry, is_async=self._is_async)
            fitting = moment.fitting(own, unknown=unknown)
            if moment.budget == inf and unknown:
                # Without a deadline nothing tells when to stop: one batch is enough.
                fitting = ()
            if not fitting and not self._alias.owes:
                break
            if self._alias.unsent and self._parts.settings.replicas:
                # It takes no other tasks until replicas have the reports.
                yield from self._exchange(())
                continue
            taken = yield from self._exchange(fitting, moment.number_fitting(fitting))
            if taken.tasks:
                unknown = inf
                if (yield from self._run_all(taken, moment, execute)):
                    duty = Duty.RECRUITED
                yield from self._leave_behind()
            elif taken.parked and may_unpark:
                # Only once: workers may take these tasks first, and park them again.
                may_unpark = False
                yield from self._unpark(taken.parked)
            else:
                break
        # The next slice counts what this one has no time to count.
        if moment.has_time_to_tell:
            yield from self._alias.minutes.recording()
        return duty

    def hand_back(self) -> Flow[None]:
        """Report what became of the last tasks, without taking others."""
        yield from self._leave_behind()
        if self._alias.owes:
            yield from self._exchange(())
        yield from self._alias.minutes.recording(is_last=True)

    def close(self) -> None:
        """Release its connections; the next turn makes others."""
        self._lease.close()
        self.connection.source.close()

    def abandon(self, task: Delivery) -> None:
        """Leave a task that runs on, although it was cancelled.

        It must not run twice at a time, so no worker gets it until its lease has ended.
        """
        alias = self._alias
        del alias.unsent[task.id]
        alias.overran, alias.runs_on = task.id, True

    @property
    def _alias(self) -> SpareAlias:
        assert self._known_as is not None, "no thread has the turn"
        return self._known_as

    def _begin_anew(self) -> None:
        source = self.connection.source
        self._known_as = SpareAlias(self._queue, source, self._reraised, self._clock)

    def _forget_parent(self) -> None:
        self._lock, self._known_as = Lock(), None

    def _leave_behind(self) -> Flow[None]:
        """Take another name, if a task runs on under this one."""
        if self._alias.runs_on:
            yield from self._exchange(())
            self._begin_anew()

    def _choose_shard(self) -> Flow[None]:
        """Go to the next shard, once the last one has all reports.

        If its last reply was lost, that shard may have given out tasks that it must
        take back first.
        """
        alias = self._alias
        shards = alias.identity.shards
        if shards.are_several and not alias.owes:
            yield from shards.known()
            alias.identity.keys = shards.all[shards.next_turn()]
            alias.victim = ""

    def _renew(self, alias: SpareAlias, keys: QueueKeys) -> StillHeld:
        call = keep_lease(keys, self._parts.settings, alias.name)
        return alias.source.driver.call(call)

    def _exchange(self, fitting: Sequence[str], want: int = 0) -> Flow[BriefExchanged]:
        alias = self._alias
        began_at = self._clock.monotonic()
        call = brief_exchange(
            alias.identity.keys,
            self._parts.settings,
            alias.name,
            fitting,
            want=want,
            reports=list(alias.unsent.values()),
            victim=alias.victim,
            overran=alias.overran,
            runs_on=alias.runs_on,
        )
        # If that fails, the next slice reports it: Redis accepts a report once.
        alias.is_unsure = True
        try:
            exchanged = yield from ask(call)
        except NotReplicated:
            # Redis did answer; the reports are sent again.
            alias.is_unsure = False
            raise
        alias.is_unsure = False
        now = self._clock.monotonic()
        self._times.exchanged(now - began_at, now)
        self._lease.renewed()
        alias.unsent, alias.overran = {}, ""
        alias.victim = choose_victim(exchanged.loads, alias.name) or ""
        if exchanged.refused:
            logger.warning(
                "reports on brief tasks %s were refused: they were sent twice, or the"
                " lease had ended, and workers have the tasks now",
                ", ".join(exchanged.refused),
            )
        return exchanged

    def _unpark(self, abilities: Sequence[str]) -> Flow[None]:
        """Put parked tasks, which no worker could run, back into their inboxes."""
        keys = self._alias.identity.keys
        for ability in abilities:
            yield from ask(unpark(keys, ability, most=_MOST_UNPARKED, is_able=True))

    def _run_all(
        self,
        taken: BriefExchanged,
        moment: SpareMoment,
        execute: Execute,
    ) -> Flow[int]:
        """Run tasks while there is time; return how many were run or cancelled."""
        alias = self._alias
        alias.minutes.sample_waits(taken.tasks, taken.now_ms)
        # If the slice is ended early, the next one hands these tasks back: each to the
        # front of its inbox, so the last one first.
        alias.unsent = {task.id: _back(task) for task in reversed(taken.tasks)}
        # Short tasks do not renew the lease between them.
        until, size = self._clock.monotonic() + self._batch_seconds, 0
        for number, task in enumerate(taken.tasks):
            ability = taken.abilities[number]
            if task.id in taken.cancelled:
                alias.unsent[task.id] = alias.runner.cancelled(task)
            elif not moment.has_time_for(ability):
                return number
            else:
                yield from self._run(task, ability, moment, execute)
            if alias.overran:
                return number + 1
            size += len(alias.unsent[task.id].outcome)
            if size > MOST_BYTES or self._clock.monotonic() > until:
                return number + 1
        return len(taken.tasks)

    def _run(
        self,
        task: Delivery,
        ability: str,
        moment: SpareMoment,
        execute: Execute,
    ) -> Flow[None]:
        alias = self._alias
        began_at = self._clock.monotonic()
        limit = moment.limit
        try:
            ending: Ending = yield Invoke(execute, (task, limit, moment.grace))
        except GeneratorExit:
            # The host is asked to stop, or the recruiter ended the slice first.
            if moment.is_over:
                self._cut_off(task, ability, began_at, moment)
            raise
        took = self._clock.monotonic() - began_at
        if isinstance(ending, Report):
            alias.unsent[task.id] = ending
            self._times.reported(len(ending.outcome))
        # A task that was stopped goes back. So does one that could not begin because
        # Redis was away, but that takes less time.
        is_stopped = took >= limit and ending in (None, _back(task))
        if is_stopped or alias.runs_on:
            self._cut_off(task, ability, began_at, moment)
            return
        self._times.took(ability, took, self._clock.monotonic())
        if took > moment.budget:
            _warn_of_length(task, ability, took, moment)
        # A task that comes back after so long would hold up the next process, too. One
        # without a report is not for spare moments, or not for this process.
        comes_back = isinstance(ending, Report) and ending.verdict in ("retry", "back")
        if (comes_back and took > moment.budget) or not isinstance(ending, Report):
            alias.overran = task.id

    def _cut_off(
        self, task: Delivery, ability: str, began_at: float, moment: SpareMoment
    ) -> None:
        """Leave a task to workers, since a slice was too short for it."""
        now = self._clock.monotonic()
        took = now - began_at
        # Nobody knows how much longer it would have taken. It is assumed to be half
        # done, so such tasks are tried again only where there is twice the time.
        self._times.took(ability, 2 * took, now)
        self._alias.overran = task.id
        _warn_of_length(task, ability, took, moment)

    @property
    def _batch_seconds(self) -> float:
        """For how long tasks may be in hand: well below a lease."""
        return self._parts.settings.lease_ms / 1000 / 4


def _warn_of_length(
    task: Delivery, ability: str, took: float, moment: SpareMoment
) -> None:
    logger.warning(
        "task %s (%s) took %.0f ms of a slice of %.0f ms; this process takes no such"
        " task for up to a minute. If it often takes that long, remove brief=True",
        task.id,
        ability,
        took * 1000,
        moment.budget * 1000,
    )


def _back(task: Delivery) -> Report:
    return Report(task.id, task.token, "back")
