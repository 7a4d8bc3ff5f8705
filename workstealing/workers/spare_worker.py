"""What a process is to a queue whose brief tasks it runs: a worker for one slice.

It has a name, but no deque and no heartbeat. It takes tasks under a lease, as many as
are likely to end in the slice, runs one after another, and reports on them with the
next exchange, which takes the next ones. Those that there is no time for go back. If a
slice is ended early, the next one delivers the reports that it has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from threading import Lock
from typing import Any, TypeVar

from workstealing._forking import reset_in_children
from workstealing._logs import BackgroundLogger
from workstealing.chance import SYSTEM_CHANCE
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import Clock
from workstealing.drivers.connect import driver_source
from workstealing.drivers.sync_driver import Driver, DriverSource
from workstealing.errors import RedisUnavailable
from workstealing.queue.brief_calls import BriefExchanged, brief_exchange
from workstealing.queue.steps import Call, Flow, Invoke, RedisCommand, ask
from workstealing.recruiting.job import Duty
from workstealing.recruiting.slice import time_left
from workstealing.tasks.attempt import Delivery, Ending, Report
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.runner import TaskRunner
from workstealing.workers.engine import runner_of
from workstealing.workers.identity import default_pool, identity_of
from workstealing.workers.learnt_times import LearntTimes
from workstealing.workers.loop import choose_victim
from workstealing.workers.minute_recorder import MinuteRecorder
from workstealing.workers.side_connection import SideConnection
from workstealing.workers.task_output import TaskOutput

__all__ = ("SpareWorker",)

logger = BackgroundLogger(__name__)

T = TypeVar("T")

# As many as make their round trip, which they share, cheap beside themselves.
_MOST_TASKS = 20
# Of outcomes in one report: it has to pass a slow network within a slice.
_MOST_BYTES = 32 * 1024


class SpareWorker:
    """Runs brief tasks of a queue, a slice at a time.

    Args:
        queue: whose tasks.
        clock: how long things take.
        is_async: run coroutine functions and nothing else.
        reraised: exceptions that are meant for the host, not for the task.
    """

    runner: TaskRunner

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
        """Of plain functions, and of what tasks log and save."""
        self._times = LearntTimes()
        self._lock = Lock()
        self._source: DriverSource | None = None
        self._unsent: dict[str, Report] = {}
        self._runs_on = False
        reset_in_children(self, SpareWorker._forget_parent)

    @contextmanager
    def turn(self, seconds: float = 0.0) -> Iterator[bool]:
        """Tell whether nobody else works under this name, while the context lasts.

        Somebody who does is waited for so many seconds.
        """
        lock = self._lock
        if not lock.acquire(timeout=seconds):
            yield False
            return
        try:
            # A test may have taken the queue to another server.
            if self._source is not self.connection.source:
                self._begin_anew()
            yield True
        finally:
            lock.release()

    def work(self, execute: Callable[[Delivery, float], Any]) -> Flow[Duty]:
        """Take tasks and run them, while there is time for them and their reports."""
        duty, budget = Duty.DISMISSED, time_left()
        self._output.has_failed = False
        yield from self._leave_behind()
        yield from self._choose_shard()
        fitting = self._fitting(unknown=0.0)
        while fitting or self._unsent:
            taken = yield from self._exchange(fitting, self._number_fitting(fitting))
            if not taken.tasks:
                break
            if (yield from self._run_all(taken, budget, execute)):
                duty = Duty.RECRUITED
            yield from self._leave_behind()
            # Without a deadline nobody could tell when to stop.
            fitting = self._fitting(unknown=inf) if budget < inf else ()
        yield from self._minutes.recording()
        return duty

    def _choose_shard(self) -> Flow[None]:
        """Look at another shard than the last time, once that has all reports.

        If its last reply was lost, it may have given tasks that only it can take back.
        """
        shards = self._identity.shards
        if shards.are_several and not self._unsent and not self._is_unsure:
            yield from shards.known()
            self._identity.keys = shards.all[shards.next_turn()]
            self._victim = ""

    def hand_back(self) -> Flow[None]:
        """Report what became of the last tasks, without taking others."""
        yield from self._leave_behind()
        if self._unsent:
            yield from self._exchange(())

    def abandon(self, task: Delivery) -> None:
        """Leave a task behind that goes on, whatever it was told.

        Nobody may run it beside itself, so nobody gets it until its lease has ended.
        """
        del self._unsent[task.id]
        self._overran, self._runs_on = task.id, True

    def _leave_behind(self) -> Flow[None]:
        """Take another name, if a task goes on under this one."""
        if self._runs_on:
            yield from self._exchange(())
            self._begin_anew()

    def _forget_parent(self) -> None:
        self._lock = Lock()
        self._source, self._unsent, self._runs_on = None, {}, False

    def _begin_anew(self) -> None:
        parts = self._parts
        self._source = self.connection.source
        self._output = _SideOutput(self._source.driver)
        self._name = f"brief-{default_pool()}.0"
        self._identity = identity = identity_of(self._queue, self._name)
        self.runner = runner_of(parts)(
            parts.admission,
            self._name,
            self._queue.name,
            SYSTEM_CHANCE,
            TaskOutput(self._output, identity, self._clock),
            max_result=parts.settings.max_result,
            reraised=self._reraised,
            time_ns=parts.time_ns,
        )
        self._minutes = MinuteRecorder(
            lambda: identity.keys, self.runner.reports.ended, self._clock
        )
        self._unsent = {}
        self._is_unsure = False
        self._overran, self._runs_on = "", False
        self._victim = ""

    def _exchange(self, fitting: Sequence[str], want: int = 0) -> Flow[BriefExchanged]:
        began_at = self._clock.monotonic()
        call = brief_exchange(
            self._identity.keys,
            self._parts.settings,
            self._name,
            fitting,
            want=want,
            reports=list(self._unsent.values()),
            victim=self._victim,
            overran=self._overran,
            runs_on=self._runs_on,
        )
        # If that fails, the next slice reports it: Redis accepts a report once.
        self._is_unsure = True
        exchanged = yield from ask(call)
        self._is_unsure = False
        now = self._clock.monotonic()
        self._times.exchanged(now - began_at, now)
        self._unsent, self._overran = {}, ""
        self._victim = choose_victim(exchanged.loads, self._name) or ""
        if exchanged.refused:
            logger.warning(
                "reports on brief tasks %s were refused: they came twice, or after the"
                " lease had ended, and the tasks belong to others now",
                ", ".join(exchanged.refused),
            )
        return exchanged

    def _run_all(
        self,
        taken: BriefExchanged,
        budget: float,
        execute: Callable[[Delivery, float], Any],
    ) -> Flow[int]:
        """Run tasks while there is time, and return how many were dealt with."""
        self._minutes.sample_waits(taken.tasks, taken.now_ms)
        # If the slice is ended before they have, the next one hands them back: each to
        # the front of its inbox, so the last one first.
        self._unsent = {task.id: _back(task) for task in reversed(taken.tasks)}
        # Nothing renews the lease meanwhile.
        until, size = self._clock.monotonic() + self._batch_seconds(), 0
        for number, task in enumerate(taken.tasks):
            ability = taken.abilities[number]
            if task.id in taken.cancelled:
                self._unsent[task.id] = self.runner.cancelled(task)
            elif time_left() <= self._needed(ability, 0.0, exchanges=1):
                return number
            else:
                yield from self._run(task, ability, budget, execute)
            if self._overran:
                return number + 1
            size += len(self._unsent[task.id].outcome)
            if size > _MOST_BYTES or self._clock.monotonic() > until:
                return number + 1
        return len(taken.tasks)

    def _run(
        self,
        task: Delivery,
        ability: str,
        budget: float,
        execute: Callable[[Delivery, float], Any],
    ) -> Flow[None]:
        began_at = self._clock.monotonic()
        limit = time_left() - self._times.exchange(began_at)
        ending: Ending = yield Invoke(execute, (task, limit))
        now = self._clock.monotonic()
        took = now - began_at
        is_back = ending == _back(task)
        if isinstance(ending, Report):
            self._unsent[task.id] = ending
            self._times.reported(len(ending.outcome))
        is_cut_off = ending is None or (is_back and took >= limit)
        # How much longer it would have taken, nobody knows.
        self._times.took(ability, 2 * took if is_cut_off else took, now)
        if is_cut_off or not isinstance(ending, Report):
            self._overran = task.id
        if is_cut_off or took > budget:
            logger.warning(
                "task %s (%s) took %.0f ms of a slice of %.0f ms: is it brief? For some"
                " time, only workers run such tasks",
                task.id,
                ability,
                took * 1000,
                budget * 1000,
            )

    def _fitting(self, *, unknown: float) -> tuple[str, ...]:
        """Return the abilities of what is expected to end in the time that is left.

        How long a task takes that was never seen is found out by the first of a slice.
        """
        left = time_left()
        return tuple(
            ability
            for definition in self._queue.registry
            if definition.brief and self._may_run(definition)
            for ability in definition.abilities
            if self._needed(ability, unknown, exchanges=2) < left
        )

    def _number_fitting(self, fitting: Sequence[str]) -> int:
        """Return how many tasks are likely to end in half of the time that is left.

        That is, before too little is left for one that takes as long as any did.
        """
        slowest = max(map(self._times.average, fitting), default=inf)
        longest = max(
            (self._needed(one, 0.0, exchanges=2) for one in fitting), default=inf
        )
        left = time_left() - longest
        if slowest == inf or not 0 < left < inf:
            return 1
        seconds = min(left / 2, self._batch_seconds())
        in_time = seconds / slowest if slowest else inf
        in_size = _MOST_BYTES / self._times.size
        return int(min(_MOST_TASKS, 1 + in_time, 1 + in_size))

    def _batch_seconds(self) -> float:
        """Return how long tasks may be in hand: well below a lease."""
        return self._parts.settings.lease_ms / 1000 / 4

    def _needed(self, ability: str, unknown: float, *, exchanges: int) -> float:
        """Return the seconds that a task takes with so many exchanges."""
        now = self._clock.monotonic()
        task = self._times.task(ability, unknown, now)
        return task + exchanges * self._times.exchange(now)

    def _may_run(self, definition: TaskDefinition) -> bool:
        if self._is_async:
            return definition.is_coroutine
        return not definition.is_coroutine or not _is_in_event_loop()


class _SideOutput:
    """Passes on what tasks log and save, until Redis has failed once in a slice.

    A task that logs ten lines must not wait ten times for a server that hangs.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.has_failed = False

    def call(self, call: Call[T] | RedisCommand[T]) -> T:
        """Perform a call and return its answer."""
        if self.has_failed:
            raise RedisUnavailable("Redis did not answer a moment ago")
        try:
            return self._driver.call(call)
        except RedisUnavailable:
            self.has_failed = True
            raise


def _back(task: Delivery) -> Report:
    return Report(task.id, task.token, "back")


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
