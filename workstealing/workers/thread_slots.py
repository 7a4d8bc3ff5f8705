"""Slots that are threads: each runs one task at a time, `async def` tasks too."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Any

from workstealing._interrupt import Interruptible
from workstealing.tasks.attempt import Attempt, Delivery, Ending
from workstealing.workers.inline_slot import SlotEventLoop
from workstealing.workers.slots import ResizableSlots, SlotParts, log_late_end
from workstealing.workers.stuck_stacks import stack_of

__all__ = ("ThreadSlot", "ThreadSlots")

_CLOSE_SECONDS = 2.0


class ThreadSlots(ResizableSlots["ThreadSlot"]):
    """The threads of one worker."""

    def __init__(self, parts: SlotParts) -> None:
        super().__init__(parts)
        self._number = 0
        self._failure: BaseException | None = None

    def wake(self, number: int) -> None:
        """Let up to *number* idle slots begin a task."""
        with self._changed:
            self._changed.notify(number)

    def wait_until_open(self) -> None:
        """Wait until each has its resources; `ResourceFailed` if one has not."""
        for slot in self.all():
            slot.is_open.wait()
        self._check()

    def rest(self, seconds: float) -> None:
        """Wait for a wake-up, or until an exchange is due."""
        self._check()
        super().rest(seconds)

    def close(self) -> None:
        """Wait for the idle slots; running tasks are left alone."""
        # Its resources have time of their own to close.
        lifespan = self._parts.lifespan
        seconds = _CLOSE_SECONDS * (1 if lifespan is None else 4)
        for slot in self.scale(0):
            # At a limit of threads, some were never started.
            if slot.attempt is None and slot.thread.is_alive():
                slot.thread.join(seconds)

    def _new_slot(self) -> ThreadSlot:
        self._number += 1
        name = f"{self._parts.worker}/{self._number}"
        return ThreadSlot(name, self._parts, self._wait, self._fail)

    def _start_slot(self, slot: ThreadSlot) -> None:
        slot.thread.start()

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._in_flight.make_exchange_due()

    def _check(self) -> None:
        """End the worker if one of its slots could not open its resources."""
        if self._failure is not None:
            raise self._failure

    def _wait(self, slot: ThreadSlot) -> Delivery | None:
        """Wait for a task to begin; None: leave."""
        in_flight = self._in_flight
        in_flight.slot_is_idle()
        try:
            with self._changed:
                while not slot.is_leaving:
                    delivery = in_flight.begin()
                    if delivery is not None:
                        return delivery
                    self._changed.wait()
        finally:
            in_flight.slot_is_busy()
        return None


class ThreadSlot:
    """One thread that runs tasks."""

    def __init__(
        self,
        name: str,
        parts: SlotParts,
        wait: Callable[[ThreadSlot], Delivery | None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._runner = parts.runner
        self._in_flight = parts.in_flight
        self._clock = parts.clock
        self._wait = wait
        self._fail = fail
        self._event_loop = SlotEventLoop(parts.lifespan)
        self._scope: Interruptible | None = None
        self.attempt: Attempt | None = None
        self.is_leaving = False
        self.is_gone = False
        self.is_open = Event()
        self.thread = Thread(target=self._run, name=name, daemon=True)

    def interrupt(self, attempt: Attempt) -> bool:
        """Stop an attempt if it still runs; return whether it was asked to stop."""
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

    def retry_interrupt(self) -> bool:
        """Retry an interrupt that was not safe before; True if none is pending."""
        scope = self._scope
        return scope is None or scope.deliver()

    def where(self, attempt: Attempt) -> TracebackType | None:
        """Return where an attempt is that is about to be given up, if that is seen."""
        return stack_of(attempt, self.thread.ident, self._event_loop.coroutine)

    def _run(self) -> None:
        in_flight, monotonic = self._in_flight, self._clock.monotonic
        try:
            self._open()
            while not self.is_leaving:
                delivery = in_flight.begin() or self._wait(self)
                if delivery is None:
                    break
                began_at = monotonic()
                ending = self._execute(delivery)
                if not in_flight.finish(delivery, ending, monotonic() - began_at):
                    log_late_end(delivery)
        finally:
            self.is_gone = True
            self._event_loop.close()

    def _open(self) -> None:
        try:
            self._event_loop.open()
        except BaseException as error:  # noqa: BLE001 - the loop raises it
            self.is_leaving = True
            self._fail(error)
        finally:
            self.is_open.set()

    def _execute(self, delivery: Delivery) -> Ending:
        if delivery.id in self._in_flight.cancelled:
            return self._runner.cancelled(delivery)
        return self._runner.execute(delivery, self._call, self._event_loop.complete)

    def _call(self, attempt: Attempt) -> Any:
        self._scope = scope = Interruptible()
        self.attempt = attempt
        try:
            if attempt.definition.is_coroutine:
                return self._event_loop.run(attempt)
            return scope.call(attempt.definition.function, **attempt.arguments)
        finally:
            self.attempt = self._scope = None
