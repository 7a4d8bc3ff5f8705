"""Slots that are threads: each runs one task at a time, `async def` ones too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from threading import Condition, Thread
from typing import Any

from workstealing.clock import Clock
from workstealing.pool.interrupting import Interruptible
from workstealing.tasks.attempt import Attempt, Report, Taken, Unable
from workstealing.tasks.executing import Executor
from workstealing.workers.running import Runner
from workstealing.workers.scribe import Scribe
from workstealing.workers.slots import Slots
from workstealing.workers.team import Team

__all__ = ("ThreadSlot", "ThreadSlots")

logger = logging.getLogger(__name__)

_LAST_SECONDS = 2.0


class ThreadSlots(Slots["ThreadSlot"]):
    """The threads of a team; their number may change at any time.

    Args:
        name: of the worker, for the names of the threads.
        executor: what the tasks are.
        begin: is asked before a task is run that must not be run twice.
        scribe: writes down what tasks tell.
        clock: how long tasks last.
    """

    def __init__(
        self,
        name: str,
        executor: Executor,
        begin: Callable[[Attempt], bool],
        scribe: Scribe,
        clock: Clock,
    ) -> None:
        super().__init__()
        self._name = name
        self._executor = executor
        self._begin = begin
        self._scribe = scribe
        self._clock = clock
        self._food = Condition()
        self._number = 0

    def scale(self, number: int) -> list[ThreadSlot]:
        """Have so many; return those that leave, when what they run has ended."""
        with self._food:
            leaving = self._slots[number:]
            del self._slots[number:]
            self._leaving = [*self._leavers(), *leaving]
            for slot in leaving:
                slot.is_leaving = True
            new = [self._new_slot() for _ in range(number - len(self._slots))]
            self._slots += new
            self._team.size = number
            self._food.notify_all()
        for slot in new:
            slot.thread.start()
        return leaving

    def feed(self, number: int) -> None:
        """Wake idle ones."""
        with self._food:
            self._food.notify(number)

    def replace(self, slot: ThreadSlot) -> None:
        """Have another in the place of one that does not come back."""
        with self._food:
            if slot not in self._slots:
                return
            new = self._new_slot()
            self._slots[self._slots.index(slot)] = new
            slot.is_leaving = True
        new.thread.start()

    def close(self) -> None:
        """Wait for those that have nothing to do; what still runs is left alone."""
        for slot in self.scale(0):
            if slot.attempt is None:
                slot.thread.join(_LAST_SECONDS)

    def _new_slot(self) -> ThreadSlot:
        self._number += 1
        name = f"{self._name}/{self._number}"
        runner = _InterruptibleRunner(
            self._executor, begin=self._begin, scribe=self._scribe
        )
        return ThreadSlot(
            name, self._team, self._executor, runner, self._clock, self._sit
        )

    def _sit(self, slot: ThreadSlot) -> Taken | None:
        """Wait for something to begin; None: leave."""
        team = self._team
        team.sit_down()
        try:
            with self._food:
                while not slot.is_leaving:
                    task = team.begin()
                    if task is not None:
                        return task
                    self._food.wait()
        finally:
            team.stand_up()
        return None


class ThreadSlot:
    """One thread of a team."""

    def __init__(
        self,
        name: str,
        team: Team,
        executor: Executor,
        runner: _InterruptibleRunner,
        clock: Clock,
        sit: Callable[[ThreadSlot], Taken | None],
    ) -> None:
        self._team = team
        self._executor = executor
        self._clock = clock
        self._sit = sit
        self._runner = runner
        self.is_leaving = False
        self.is_gone = False
        self.thread = Thread(target=self._live, name=name, daemon=True)

    @property
    def attempt(self) -> Attempt | None:
        """What it runs now."""
        return self._runner.attempt

    def interrupt(self, attempt: Attempt) -> bool:
        """Make an attempt stop, if it still runs; tell whether it was asked."""
        # First, for it may end by that at once.
        attempt.is_interrupted = True
        attempt.is_interrupted = is_asked = self._runner.interrupt(attempt)
        return is_asked

    def _live(self) -> None:
        team, monotonic = self._team, self._clock.monotonic
        try:
            while not self.is_leaving:
                task = team.begin() or self._sit(self)
                if task is None:
                    break
                began_at = monotonic()
                try:
                    ending, is_ours = self._run(task)
                except BaseException as error:
                    logger.exception("task %s broke its slot; it goes on", task.id)
                    ending, is_ours = self._executor.escaped(task, error), True
                if is_ours:
                    team.finish(task, ending, monotonic() - began_at)
        finally:
            self.is_gone = True
            self._runner.close()

    def _run(self, task: Taken) -> tuple[Report | Unable | None, bool]:
        if task.id in self._team.cancelled:
            return self._executor.cancelled(task), True
        attempt = self._executor.prepare(task)
        if not isinstance(attempt, Attempt):
            return attempt, True
        try:
            report = self._runner.run(attempt)
        except KeyboardInterrupt as error:
            # Raised by the task itself: the system sends none to such a thread.
            report = self._executor.raised(attempt, error)
        if attempt.claim():
            return report, True
        logger.warning("task %s ended too late, and is refused", task.id)
        return None, False


class _InterruptibleRunner(Runner):
    """Runs attempts that another thread can stop."""

    _running: tuple[Attempt, Interruptible] | None = None

    def interrupt(self, attempt: Attempt) -> bool:
        running = self._running
        if running is None or running[0] is not attempt:
            return False
        if attempt.definition.is_coroutine:
            return self._cancel_coroutine()
        return running[1].interrupt()

    def _call(self, attempt: Attempt) -> Any:
        scope = Interruptible()
        self._running = (attempt, scope)
        try:
            if attempt.definition.is_coroutine:
                return super()._call(attempt)
            return scope.call(super()._call, attempt)
        finally:
            self._running = None

    def _cancel_coroutine(self) -> bool:
        loop = self._loop
        if loop is None or loop.is_closed():
            return False
        loop.call_soon_threadsafe(_cancel_all, loop)
        return True


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
