"""Slots that are threads: each runs one task at a time, `async def` tasks too."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Thread
from typing import Any

from workstealing._interrupt import Interruptible
from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.tasks.attempt import Attempt, Delivery, Ending
from workstealing.tasks.runner import TaskRunner
from workstealing.workers.in_flight import InFlight
from workstealing.workers.redis_threads import WakeUpListener
from workstealing.workers.slots import SlotEventLoop

__all__ = ("ThreadSlot", "ThreadSlots")

logger = BackgroundLogger(__name__)

_CLOSE_SECONDS = 2.0


class ThreadSlots:
    """The threads of one worker; their number may change at any time.

    Args:
        name: of the worker, for the names of the threads.
        runner: turns deliveries into reports.
        in_flight: what to run.
        wake_ups: listens while slots are idle.
        beat: seconds after which an exchange is due anyway, for the lease.
        clock: how long tasks last.
    """

    def __init__(
        self,
        name: str,
        runner: TaskRunner,
        in_flight: InFlight,
        wake_ups: WakeUpListener,
        beat: float,
        clock: Clock,
    ) -> None:
        self._name = name
        self._runner = runner
        self._in_flight = in_flight
        self._wake_ups = wake_ups
        self._beat = beat
        self._clock = clock
        self._fed = Condition()
        self._slots: list[ThreadSlot] = []
        self._leaving: list[ThreadSlot] = []
        self._number = 0

    def all(self) -> tuple[ThreadSlot, ...]:
        """Return every slot, also those that leave when their task has ended."""
        return (*self._slots, *self._still_leaving())

    def feed(self, number: int) -> None:
        """Wake idle slots."""
        with self._fed:
            self._fed.notify(number)

    def work(self) -> None:
        """Wait until an exchange is due."""
        self._in_flight.wait_until_due(self._beat, self._wake_ups.listen)

    def rest(self, seconds: float) -> None:
        """Wait for a wake-up, or until an exchange is due."""
        self._in_flight.wait_until_due(seconds, self._wake_ups.listen)

    def scale(self, number: int) -> list[ThreadSlot]:
        """Have so many; return those that leave when their task has ended."""
        with self._fed:
            leaving = self._slots[number:]
            del self._slots[number:]
            self._leaving = [*self._still_leaving(), *leaving]
            for slot in leaving:
                slot.is_leaving = True
            new = [self._new_slot() for _ in range(number - len(self._slots))]
            self._slots += new
            self._in_flight.size = number
            self._fed.notify_all()
        for slot in new:
            slot.thread.start()
        return leaving

    def replace(self, slot: ThreadSlot) -> None:
        """Have another slot in the place of one that does not come back."""
        with self._fed:
            if slot not in self._slots:
                return
            new = self._new_slot()
            self._slots[self._slots.index(slot)] = new
            slot.is_leaving = True
        new.thread.start()

    def close(self) -> None:
        """Wait for the slots that have nothing to do; what still runs is left alone."""
        for slot in self.scale(0):
            if slot.attempt is None:
                slot.thread.join(_CLOSE_SECONDS)

    def _still_leaving(self) -> list[ThreadSlot]:
        # A slot that has just begun something runs nothing yet, and is not gone.
        return [slot for slot in self._leaving if not slot.is_gone]

    def _new_slot(self) -> ThreadSlot:
        self._number += 1
        return ThreadSlot(
            f"{self._name}/{self._number}",
            self._runner,
            self._in_flight,
            self._wait,
            self._clock,
        )

    def _wait(self, slot: ThreadSlot) -> Delivery | None:
        """Wait for something to begin; None: leave."""
        in_flight = self._in_flight
        in_flight.slot_is_idle()
        try:
            with self._fed:
                while not slot.is_leaving:
                    delivery = in_flight.begin()
                    if delivery is not None:
                        return delivery
                    self._fed.wait()
        finally:
            in_flight.slot_is_busy()
        return None


class ThreadSlot:
    """One thread that runs tasks."""

    def __init__(
        self,
        name: str,
        runner: TaskRunner,
        in_flight: InFlight,
        wait: Callable[[ThreadSlot], Delivery | None],
        clock: Clock,
    ) -> None:
        self._runner = runner
        self._in_flight = in_flight
        self._wait = wait
        self._clock = clock
        self._event_loop = SlotEventLoop()
        self._scope: Interruptible | None = None
        self.attempt: Attempt | None = None
        self.is_leaving = False
        self.is_gone = False
        self.thread = Thread(target=self._run, name=name, daemon=True)

    def interrupt(self, attempt: Attempt) -> bool:
        """Make an attempt stop, if it still runs; return whether it was asked to."""
        scope = self._scope
        if scope is None or self.attempt is not attempt:
            return False
        # First, for it may end by that at once.
        attempt.is_interrupted = True
        if attempt.definition.is_coroutine:
            is_asked = self._event_loop.cancel()
        else:
            is_asked = scope.interrupt()
        attempt.is_interrupted = is_asked
        return is_asked

    def deliver(self) -> bool:
        """Try again to interrupt what could not be safely; True if that is over."""
        scope = self._scope
        return scope is None or scope.deliver()

    def _run(self) -> None:
        in_flight, monotonic = self._in_flight, self._clock.monotonic
        try:
            while not self.is_leaving:
                delivery = in_flight.begin() or self._wait(self)
                if delivery is None:
                    break
                began_at = monotonic()
                ending = self._execute(delivery)
                if not in_flight.finish(delivery, ending, monotonic() - began_at):
                    logger.warning(
                        "task %s ended after it was given up; its report is dropped",
                        delivery.id,
                    )
        finally:
            self.is_gone = True
            self._event_loop.close()

    def _execute(self, delivery: Delivery) -> Ending:
        if delivery.id in self._in_flight.cancelled:
            return self._runner.cancelled(delivery)
        return self._runner.execute(delivery, self._call)

    def _call(self, attempt: Attempt) -> Any:
        self._scope = scope = Interruptible()
        self.attempt = attempt
        try:
            if attempt.definition.is_coroutine:
                return self._event_loop.run(attempt)
            return scope.call(attempt.definition.function, **attempt.arguments)
        finally:
            self.attempt = self._scope = None
