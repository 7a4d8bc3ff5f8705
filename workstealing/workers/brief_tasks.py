"""Tasks in spare moments: side work that takes one short task at a time, and runs it.

A recruited process needs no worker: it takes a task under a lease and a token of its
own, runs it, and settles it in the same slice. Only tasks that are marked `brief=True`
are taken, and only if they usually end in the time that is left. If the process dies,
its task goes to others like that of a dead worker.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from math import exp, inf
from threading import Lock
from typing import Any

from workstealing._logs import BackgroundLogger
from workstealing._stop_requests import is_stop_request
from workstealing.chance import SYSTEM_CHANCE
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.address import target_of
from workstealing.drivers.connect import async_driver_source, driver_source
from workstealing.errors import RedisError, StopWork
from workstealing.queue.brief_calls import BriefExchanged, brief_exchange
from workstealing.queue.steps import Flow, Invoke, ask
from workstealing.recruiting.job import Duty
from workstealing.recruiting.slice import time_left
from workstealing.tasks.attempt import Attempt, Delivery, Ending, Report
from workstealing.tasks.context import control_of
from workstealing.tasks.definition import TaskDefinition
from workstealing.workers.engine import runner_of
from workstealing.workers.identity import default_pool, identity_of
from workstealing.workers.inline_slot import SlotEventLoop
from workstealing.workers.loop import choose_victim
from workstealing.workers.minute_recorder import MinuteRecorder
from workstealing.workers.task_output import TaskOutput

__all__ = ("AsyncBriefTasks", "BriefTasks")

logger = BackgroundLogger(__name__)

# Kept for the report, until it is known how long that takes.
_FIRST_EXCHANGE = 0.002
# After so many seconds, about a third of a time that was learnt is believed.
_MEMORY_SECONDS = 15.0
# What a coroutine has to heed its cancellation.
_GRACE_SECONDS = 0.02


class BriefTasks:
    """Runs short tasks of a queue as a `Job`, one after another while there is time.

    Plain functions and coroutine functions; the latter not in a thread that has a
    running event loop. Unless the queue was given a client, it has one of its own that
    waits no longer for a reply than other side work does.
    """

    def __init__(self, queue: TaskQueue, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._source = driver_source(internals_of(queue).source.redis)
        self._host = _Host(queue, clock, is_async=False)
        self._loop = SlotEventLoop()

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return target_of(self._source.driver.client)

    def recruited(self) -> Duty:
        """Run tasks that fit into the slice, or none."""
        host = self._host
        with host.turn() as is_free:
            if not is_free:
                return Duty.DISMISSED
            return self._source.driver.run(host.work(self._execute))

    def close(self) -> None:
        """Hand back what was left, as well as possible, and release connections."""
        try:
            self._source.driver.run(self._host.hand_back())
        except RedisError as error:
            logger.debug("what a spare moment left waits for its lease: %r", error)
        self._loop.close()
        self._source.close()

    def _execute(self, delivery: Delivery, seconds: float) -> Ending:
        def call(attempt: Attempt) -> Any:
            try:
                value = attempt.definition.function(**attempt.arguments)
                if attempt.definition.is_coroutine:
                    value = self._loop.complete(_within(value, attempt, seconds))
                return value
            except BaseException as error:
                if is_stop_request(error) and not isinstance(error, StopWork):
                    raise _HostStops(error) from None
                raise

        try:
            return self._host.runner.execute(delivery, call, self._loop.complete)
        except _HostStops as stop:
            raise stop.request from None


class AsyncBriefTasks:
    """Runs short coroutine functions of a queue; for an `AsyncRecruiter`.

    For plain functions, install `BriefTasks(queue.sync())` there, too: it runs in a
    thread.
    """

    def __init__(self, queue: AsyncTaskQueue, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._source = async_driver_source(internals_of(queue).source.redis)
        self._twin = queue.sync()
        self._host = _Host(self._twin, clock, is_async=True)

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return target_of(self._source.driver.client)

    async def recruited(self) -> Duty:
        """Run tasks that fit into the slice, or none."""
        host = self._host
        with host.turn() as is_free:
            if not is_free:
                return Duty.DISMISSED
            return await self._source.driver.run(host.work(self._execute))

    async def close(self) -> None:
        """Hand back what was left, as well as possible, and release connections."""
        try:
            await self._source.driver.run(self._host.hand_back())
        except RedisError as error:
            logger.debug("what a spare moment left waits for its lease: %r", error)
        self._twin.close()
        await self._source.close()

    async def _execute(self, delivery: Delivery, seconds: float) -> Ending:
        async def call(attempt: Attempt) -> Any:
            coroutine = attempt.definition.function(**attempt.arguments)
            return await _within(coroutine, attempt, seconds)

        try:
            return await self._host.runner.execute_async(delivery, call)
        except _HostStops as stop:
            raise stop.request from None


class _Host:
    """What both faces share: a name, what was learnt, and the procedure of a slice."""

    def __init__(self, queue: TaskQueue, clock: Clock, *, is_async: bool) -> None:
        self._queue = queue
        self._parts = internals_of(queue)
        self._clock = clock
        self._is_async = is_async
        self._times = _LearntTimes()
        self._turn = Lock()
        self._pid = 0
        self._unsent: list[Report] = []
        self._begin_anew()

    def turn(self) -> _OneAtATime:
        """Return a context in which nobody else works under this name."""
        if os.getpid() != self._pid:
            # The parent has what it took; a lock may be held by a thread of its own.
            self._begin_anew()
        return _OneAtATime(self._turn)

    def work(self, execute: Callable[[Delivery, float], Any]) -> Flow[Duty]:
        """Take tasks and run them, while there is time for them and their reports."""
        duty, budget = Duty.DISMISSED, time_left()
        fitting = self._fitting(unknown=0.0)
        while fitting or self._unsent:
            taken = yield from self._exchange(fitting)
            if taken.task is None:
                break
            if time_left() <= self._needed(taken.ability, 0.0):
                # Redis was slow, which is no fault of the task.
                self._unsent = [_back(taken.task)]
                fitting = ()
                continue
            duty = Duty.RECRUITED
            yield from self._run(taken.task, taken.ability, budget, execute)
            # Without a deadline nobody could tell when to stop.
            fitting = self._fitting(unknown=inf) if budget < inf else ()
        yield from self._minutes.recording()
        return duty

    def hand_back(self) -> Flow[None]:
        """Tell what became of the last task, without taking another."""
        if self._unsent:
            yield from self._exchange(())

    def _begin_anew(self) -> None:
        self._pid = os.getpid()
        self._turn = Lock()
        self.name = f"brief-{default_pool()}.0"
        identity = identity_of(self._queue, self.name)
        parts = self._parts
        self.runner = runner_of(parts)(
            parts.admission,
            self.name,
            self._queue.name,
            SYSTEM_CHANCE,
            TaskOutput(parts.driver, identity, self._clock),
            max_result=parts.settings.max_result,
            reraised=(_HostStops,),
            time_ns=parts.time_ns,
        )
        self._minutes = MinuteRecorder(parts.keys, self.runner.ended, self._clock)
        self._unsent = []
        self._overran = ""
        self._victim = ""

    def _exchange(self, fitting: Sequence[str]) -> Flow[BriefExchanged]:
        reports, overran, victim = self._unsent, self._overran, self._victim
        began_at = self._clock.monotonic()
        call = brief_exchange(
            self._parts.keys,
            self._parts.settings,
            self.name,
            fitting,
            reports=reports,
            victim=victim,
            overran=overran,
        )
        # If that fails, the next slice tells it: Redis accepts a report once.
        exchanged = yield from ask(call)
        self._times.exchanged(self._clock.monotonic() - began_at)
        self._unsent, self._overran = [], ""
        self._victim = choose_victim(exchanged.loads, self.name) or ""
        if exchanged.refused:
            logger.warning(
                "a spare moment reported too late: tasks %s belong to others now",
                ", ".join(exchanged.refused),
            )
        return exchanged

    def _run(
        self,
        task: Delivery,
        ability: str,
        budget: float,
        execute: Callable[[Delivery, float], Any],
    ) -> Flow[None]:
        began_at = self._clock.monotonic()
        limit = time_left() - 2 * self._times.exchange
        # Whoever ends this slice before the task has ended hands it back.
        self._unsent = [_back(task)]
        ending: Ending = yield Invoke(execute, (task, limit))
        took = self._clock.monotonic() - began_at
        self._unsent = [ending] if isinstance(ending, Report) else []
        is_cut_off = self._unsent == [_back(task)] and took >= limit
        # How much longer it would have taken, nobody knows.
        now = began_at + took
        self._times.took(ability, 2 * took if is_cut_off else took, now)
        if is_cut_off:
            self._overran = task.id
        if is_cut_off or took > budget:
            logger.warning(
                "task %s (%s) took %.0f ms of a spare moment of %.0f ms: is it brief?"
                " For some time only workers run such tasks",
                task.id,
                ability,
                took * 1000,
                budget * 1000,
            )

    def _fitting(self, *, unknown: float) -> tuple[str, ...]:
        """Return the abilities of what usually ends in the time that is left.

        How long a task takes that was never seen is found out by the first of a slice.
        """
        left = time_left()
        return tuple(
            ability
            for definition in self._queue.registry
            if definition.brief and self._may_run(definition)
            for ability in definition.abilities
            if self._needed(ability, unknown) < left
        )

    def _needed(self, ability: str, unknown: float) -> float:
        """Return the seconds that it takes to run a task and to report on it."""
        now = self._clock.monotonic()
        return self._times.expected(ability, unknown, now) + 2 * self._times.exchange

    def _may_run(self, definition: TaskDefinition) -> bool:
        if self._is_async:
            return definition.is_coroutine
        return not definition.is_coroutine or not _is_in_event_loop()


class _LearntTimes:
    """How long tasks and exchanges take in this process, in seconds.

    A long time is believed at once. It is forgotten by and by, for a machine that was
    slow for a moment must not keep tasks waiting for ever.
    """

    def __init__(self) -> None:
        self.exchange = _FIRST_EXCHANGE
        self._tasks: dict[str, tuple[float, float]] = {}

    def exchanged(self, seconds: float) -> None:
        self.exchange += 0.1 * (seconds - self.exchange)

    def took(self, ability: str, seconds: float, now: float) -> None:
        self._tasks[ability] = (max(seconds, self.expected(ability, 0.0, now)), now)

    def expected(self, ability: str, unknown: float, now: float) -> float:
        if ability not in self._tasks:
            return unknown
        seconds, learnt_at = self._tasks[ability]
        return seconds * exp((learnt_at - now) / _MEMORY_SECONDS)


class _OneAtATime:
    """A context that tells whether its lock was free; nobody waits for it."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._is_mine = False

    def __enter__(self) -> bool:
        self._is_mine = self._lock.acquire(blocking=False)
        return self._is_mine

    def __exit__(self, *_: object) -> None:
        if self._is_mine:
            self._lock.release()


class _HostStops(BaseException):
    """Carries through a runner what asks the host to stop, and not the task."""

    def __init__(self, request: BaseException) -> None:
        super().__init__()
        self.request = request


def _back(task: Delivery) -> Report:
    return Report(task.id, task.token, "back")


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _within(
    coroutine: Coroutine[Any, Any, Any], attempt: Attempt, seconds: float
) -> Any:
    """Await a coroutine, and cancel it when the spare moment is over."""
    # Nobody would know what became of one that must not be run again.
    limit = inf if attempt.runs_once else seconds
    is_overdue = (attempt.timeout or inf) < limit
    limit = min(limit, attempt.timeout or inf)
    running = asyncio.ensure_future(coroutine)
    try:
        try:
            await asyncio.wait({running}, timeout=None if limit == inf else limit)
        except asyncio.CancelledError as error:
            raise _HostStops(error) from None
        if not running.done():
            attempt.is_interrupted, attempt.is_overdue = True, is_overdue
            running.cancel()
            await asyncio.wait({running}, timeout=_GRACE_SECONDS)
        if not running.done():
            # It goes on, whatever we say: nobody may run it beside itself until the
            # lease has ended.
            control_of(attempt.context).is_lease_lost = True
            raise asyncio.CancelledError
        return running.result()
    finally:
        running.cancel()
