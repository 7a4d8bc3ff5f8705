"""Slots that are coroutines of one event loop; `def` tasks run in threads beside it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, TypeAlias

from workstealing.clock import Clock
from workstealing.errors import RedisError, StopWork
from workstealing.pool.interrupting import Interruptible
from workstealing.tasks.attempt import Attempt, Report, Taken, Unable
from workstealing.tasks.context import enter, leave
from workstealing.tasks.executing import Executor
from workstealing.workers.running import end_if_forked
from workstealing.workers.scribe import Scribe
from workstealing.workers.slots import Slots
from workstealing.workers.spare_threads import SpareThreads
from workstealing.workers.team import Team

__all__ = ("CoroutineSlot", "CoroutineSlots")

logger = logging.getLogger(__name__)

_LAST_SECONDS = 5.0

_Ended: TypeAlias = tuple[Any, BaseException | None]
"""What a task returned, or what it raised."""


class CoroutineSlots(Slots["CoroutineSlot"]):
    """The coroutines of a team; their number may change at any time.

    Args:
        name: of the worker, for the names of threads.
        executor: what the tasks are.
        begin: is asked before a task is run that must not be run twice.
        scribe: writes down what tasks tell.
        clock: how long tasks last.
        loop: whose coroutines; one of its own, in a thread, unless given.
    """

    def __init__(
        self,
        name: str,
        executor: Executor,
        begin: Callable[[Attempt], bool],
        scribe: Scribe,
        clock: Clock,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__()
        self._name = name
        self._executor = executor
        self._begin = begin
        self._scribe = scribe
        self._threads = SpareThreads(f"{name}/thread")
        self._clock = clock
        self._thread: Thread | None = None
        if loop is None:
            loop = asyncio.new_event_loop()
            self._thread = Thread(target=loop.run_forever, name=name, daemon=True)
            self._thread.start()
        self._loop = loop
        self._food = asyncio.Event()

    def scale(self, number: int) -> list[CoroutineSlot]:
        """Have so many; return those that leave, when what they run has ended."""
        leaving = self._slots[number:]
        del self._slots[number:]
        self._leaving = [*self._leavers(), *leaving]
        for slot in leaving:
            slot.is_leaving = True
        new = [self._new_slot() for _ in range(number - len(self._slots))]
        self._slots += new
        self._team.size = number
        for slot in new:
            self._loop.call_soon_threadsafe(slot.start, self._loop)
        self.feed(number)
        return leaving

    def feed(self, number: int) -> None:  # noqa: ARG002 - the loop looks by itself
        """Wake idle ones."""
        self._loop.call_soon_threadsafe(self._food.set)

    def replace(self, slot: CoroutineSlot) -> None:
        """Have another in the place of one that does not come back."""
        if slot in self._slots:
            new = self._new_slot()
            self._slots[self._slots.index(slot)] = new
            slot.is_leaving = True
            self._loop.call_soon_threadsafe(new.start, self._loop)

    def close(self) -> None:
        """End the event loop, if it is its own; what still runs is cancelled."""
        self.scale(0)
        self._threads.close()
        if self._thread is None:
            return
        for slot in self._leavers():
            slot.is_closing = True
        rest = asyncio.run_coroutine_threadsafe(_cancel_rest(), self._loop)
        try:
            rest.result(_LAST_SECONDS)
        except FutureTimeout:
            logger.error("something blocks the event loop of %s", self._name)
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _new_slot(self) -> CoroutineSlot:
        return CoroutineSlot(
            self._name,
            self._team,
            self._executor,
            self._begin,
            self._scribe,
            self._threads,
            self._clock,
            self._food,
        )


class CoroutineSlot:
    """One coroutine of a team."""

    def __init__(
        self,
        name: str,
        team: Team,
        executor: Executor,
        begin: Callable[[Attempt], bool],
        scribe: Scribe,
        threads: SpareThreads,
        clock: Clock,
        food: asyncio.Event,
    ) -> None:
        self._name = name
        self._team = team
        self._executor = executor
        self._begin = begin
        self._scribe = scribe
        self._threads = threads
        self._clock = clock
        self._food = food
        self._loop: asyncio.AbstractEventLoop
        self._life: asyncio.Task[None]
        self._running: asyncio.Future[Any] | Interruptible | None = None
        self.attempt: Attempt | None = None
        self.is_leaving = self.is_closing = False
        self.is_gone = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to live, in the loop's own thread."""
        self._loop = loop
        self._life = loop.create_task(self._live(), name=self._name)

    def interrupt(self, attempt: Attempt) -> bool:
        """Make an attempt stop, if it still runs; tell whether it was asked."""
        running = self._running
        if running is None or self.attempt is not attempt:
            return False
        # First, for it may end by that at once.
        attempt.is_interrupted = True
        if isinstance(running, Interruptible):
            attempt.is_interrupted = is_asked = running.interrupt()
            return is_asked
        self._loop.call_soon_threadsafe(running.cancel)
        return True

    async def _live(self) -> None:
        team, monotonic = self._team, self._clock.monotonic
        try:
            while not self.is_leaving:
                task = team.begin() or await self._sit()
                if task is None:
                    break
                began_at = monotonic()
                try:
                    ending, is_ours = await self._run(task)
                except asyncio.CancelledError:
                    raise
                except BaseException as error:
                    logger.exception("task %s broke its slot; it goes on", task.id)
                    ending, is_ours = self._executor.escaped(task, error), True
                if is_ours:
                    team.finish(task, ending, monotonic() - began_at)
        finally:
            self.is_gone = True

    async def _sit(self) -> Taken | None:
        """Wait for something to begin; None: leave."""
        team = self._team
        team.sit_down()
        try:
            while not self.is_leaving:
                task = team.begin()
                if task is not None:
                    return task
                self._food.clear()
                await self._food.wait()
        finally:
            team.stand_up()
        return None

    async def _run(self, task: Taken) -> tuple[Report | Unable | None, bool]:
        if task.id in self._team.cancelled:
            return self._executor.cancelled(task), True
        attempt = self._executor.prepare(task)
        if not isinstance(attempt, Attempt):
            return attempt, True
        if attempt.runs_once:
            try:
                if not await asyncio.to_thread(self._begin, attempt):
                    return None, True
            except RedisError as error:
                # Whether Redis heard of it or not, it was not begun.
                logger.warning("task %s must wait for Redis: %s", task.id, error)
                return Report(task.id, task.token, "back"), True
        self.attempt = attempt
        token = enter(attempt.context)
        try:
            with self._scribe.beside(attempt):
                report = await self._report(attempt)
        finally:
            leave(token)
            self.attempt = self._running = None
        if attempt.context.has_notes:
            await asyncio.to_thread(self._scribe.settle, attempt, report)
        if attempt.claim():
            return report, True
        logger.warning("task %s ended too late, and is refused", task.id)
        return None, False

    async def _report(self, attempt: Attempt) -> Report | None:
        executor = self._executor
        try:
            if attempt.definition.is_coroutine:
                value, error = await self._in_loop(attempt)
            else:
                value, error = await self._in_thread(attempt)
        except asyncio.CancelledError as cancelled:
            if attempt.is_interrupted:
                return executor.stopped(attempt, "it was told to stop")
            if self.is_closing:
                raise
            error = cancelled
        if isinstance(error, StopWork):
            return executor.stopped(attempt, str(error))
        if error is not None:
            return executor.raised(attempt, error)
        return executor.returned(attempt, value)

    async def _in_loop(self, attempt: Attempt) -> _Ended:
        """Run it as a task of its own: what cancels that does not end the slot."""
        coroutine = attempt.definition.function(**attempt.arguments)
        running: asyncio.Future[_Ended] = asyncio.ensure_future(_ended(coroutine))
        self._running = running
        pid = os.getpid()
        try:
            return await running
        finally:
            end_if_forked(pid)

    async def _in_thread(self, attempt: Attempt) -> _Ended:
        """Run it in a thread that can be interrupted, and given up."""
        scope = self._running = Interruptible()
        loop, pid = self._loop, os.getpid()
        ended: asyncio.Future[_Ended] = loop.create_future()

        def run() -> None:
            try:
                value = scope.call(attempt.definition.function, **attempt.arguments)
            except BaseException as error:  # noqa: BLE001 - it is the task's own
                told: _Ended = (None, error)
            else:
                told = (value, None)
            end_if_forked(pid)
            # Where the loop is closed by now, nobody wants to know any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_tell, ended, told)

        self._threads.run(partial(copy_context().run, run))
        return await ended


async def _ended(coroutine: Any) -> _Ended:
    try:
        return await coroutine, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - some of them would end the loop
        return None, error


def _tell(ended: asyncio.Future[_Ended], told: _Ended) -> None:
    if not ended.done():
        ended.set_result(told)


async def _cancel_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=2.0)
