"""Where tasks run: a slot runs one at a time, and a worker has one or several.

The loop and the supervisor know slots only by the two protocols of this page. A new
kind of slot implements them; `InlineSlot` is the simplest: the loop's own thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from workstealing.clock import Clock
from workstealing.drivers.sync_driver import Driver
from workstealing.queue.steps import RedisCommand
from workstealing.tasks.attempt import Attempt, Ending
from workstealing.tasks.context import control_of
from workstealing.tasks.runner import TaskRunner
from workstealing.workers.batching import SPAN_SECONDS
from workstealing.workers.in_flight import InFlight

__all__ = ("InlineSlot", "Slot", "SlotEventLoop", "Slots", "tell_lease_lost")


class Slot(Protocol):
    """A place where one task runs at a time; what a supervisor needs of it."""

    @property
    def attempt(self) -> Attempt | None:
        """What runs there now."""
        ...

    def interrupt(self, attempt: Attempt) -> bool:
        """Make an attempt stop, if it still runs; return whether it was asked to."""
        ...

    def deliver(self) -> bool:
        """Try again to interrupt what could not be safely; True if that is over."""
        ...


class Slots(Protocol):
    """The slots of one worker; what its loop needs of them."""

    def all(self) -> Iterable[Slot]:
        """Return every slot, also those that leave when their task has ended."""
        ...

    def feed(self, number: int) -> None:
        """Let idle slots begin so many tasks."""
        ...

    def work(self) -> None:
        """Run what is held, or wait for it to be run, until an exchange is due."""
        ...

    def rest(self, seconds: float) -> None:
        """Wait for a wake-up, or for anything else that makes an exchange due."""
        ...


def tell_lease_lost(slots: Slots) -> None:
    """Let every running task know that other workers may have it."""
    for slot in slots.all():
        if (attempt := slot.attempt) is not None:
            control_of(attempt.context).is_lease_lost = True


class InlineSlot:
    """One slot in the thread of the loop itself.

    Args:
        runner: turns deliveries into reports.
        in_flight: what to run.
        driver: where to wait for a wake-up.
        wake_ups: the key of the list of wake-ups.
        may_begin: is asked before each task.
        began: is told of an attempt before it runs.
        clock: how long tasks last.
    """

    def __init__(
        self,
        runner: TaskRunner,
        in_flight: InFlight,
        driver: Driver,
        wake_ups: str,
        *,
        may_begin: Callable[[], bool],
        clock: Clock,
        began: Callable[[Attempt], None] | None = None,
    ) -> None:
        self._runner = runner
        self._in_flight = in_flight
        self._driver = driver
        self._wake_ups = wake_ups
        self._may_begin = may_begin
        self._began = began
        self._clock = clock
        self._event_loop = SlotEventLoop()
        self.attempt: Attempt | None = None
        in_flight.size = 1
        in_flight.slot_is_idle()

    def all(self) -> tuple[InlineSlot]:
        """Return itself."""
        return (self,)

    def interrupt(self, attempt: Attempt) -> bool:  # noqa: ARG002 - the protocol's
        """Refuse: nothing can stop the thread of the loop."""
        return False

    def deliver(self) -> bool:
        """Have nothing to deliver."""
        return True

    def feed(self, number: int) -> None:
        """Do nothing: the next `work()` begins what there is."""

    def work(self) -> None:
        """Run what is held, for about as long as a batch should last."""
        in_flight, runner, call = self._in_flight, self._runner, self._call
        monotonic, begin, finish = (
            self._clock.monotonic,
            in_flight.begin,
            in_flight.finish,
        )
        in_flight.slot_is_busy()
        try:
            began_at = now = monotonic()
            while self._may_begin() and (delivery := begin()) is not None:
                ending: Ending
                if delivery.id in in_flight.cancelled:
                    ending = runner.cancelled(delivery)
                else:
                    ending = runner.execute(delivery, call)
                before, now = now, monotonic()
                finish(delivery, ending, now - before)
                if now - began_at > SPAN_SECONDS:
                    break
        finally:
            in_flight.slot_is_idle()

    def rest(self, seconds: float) -> None:
        """Wait for a wake-up."""
        command = ("BLPOP", self._wake_ups, seconds)
        self._driver.call(RedisCommand(command, parse=bool, is_blocking=True))

    def close(self) -> None:
        """End the event loop in which coroutines ran."""
        self._event_loop.close()

    def _call(self, attempt: Attempt) -> Any:
        self.attempt = attempt
        if self._began is not None:
            self._began(attempt)
        try:
            if attempt.definition.is_coroutine:
                return self._event_loop.run(attempt)
            return attempt.definition.function(**attempt.arguments)
        finally:
            self.attempt = None


class SlotEventLoop:
    """Where a slot with a thread of its own runs coroutines, one at a time."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def run(self, attempt: Attempt) -> Any:
        """Run an attempt, and cancel it when its time is over."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.new_event_loop()
        coroutine = attempt.definition.function(**attempt.arguments)
        if attempt.timeout is not None:
            coroutine = _limited(coroutine, attempt, attempt.timeout)
        self._task = loop.create_task(coroutine)
        return loop.run_until_complete(self._task)

    def cancel(self) -> bool:
        """Cancel what runs, from another thread; return whether that was possible."""
        loop, task = self._loop, self._task
        if loop is None or task is None or loop.is_closed():
            return False
        loop.call_soon_threadsafe(task.cancel)
        return True

    def close(self) -> None:
        """End the loop."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


async def _limited(coroutine: Any, attempt: Attempt, seconds: float) -> Any:
    task = asyncio.current_task()
    assert task is not None

    def end() -> None:
        attempt.is_interrupted = attempt.is_overdue = True
        task.cancel()

    limit = asyncio.get_running_loop().call_later(seconds, end)
    try:
        return await coroutine
    finally:
        limit.cancel()
