"""Slots that are coroutines of one event loop; `def` tasks run in threads beside it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

from workstealing._interrupt import Interruptible
from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.tasks.attempt import Attempt, Delivery, Ending
from workstealing.tasks.runner import TaskRunner, end_if_forked
from workstealing.workers.in_flight import InFlight
from workstealing.workers.redis_threads import WakeUpListener

__all__ = ("AsyncSlot", "AsyncSlots", "SlotClosed")

logger = BackgroundLogger(__name__)

_CLOSE_SECONDS = 5.0
_CANCEL_SECONDS = 2.0
# More spare threads than that would wait in vain, most of the time.
_MOST_SPARE = 64

_Outcome: TypeAlias = tuple[Any, BaseException | None]
"""What a coroutine returned, or what it raised."""


class SlotClosed(BaseException):
    """The event loop of a slot ends, and with it what the slot runs."""


class AsyncSlots:
    """The coroutines of one worker; their number may change at any time.

    Args:
        name: of the worker, for the names of threads.
        runner: turns deliveries into reports; must reraise `SlotClosed`.
        in_flight: what to run.
        wake_ups: listens while slots are idle.
        beat: seconds after which an exchange is due anyway, for the lease.
        clock: how long tasks last.
        loop: whose coroutines; one of its own, in a thread, unless given.
    """

    def __init__(
        self,
        name: str,
        runner: TaskRunner,
        in_flight: InFlight,
        wake_ups: WakeUpListener,
        beat: float,
        clock: Clock,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._name = name
        self._runner = runner
        self._in_flight = in_flight
        self._wake_ups = wake_ups
        self._beat = beat
        self._clock = clock
        self._slots: list[AsyncSlot] = []
        self._leaving: list[AsyncSlot] = []
        self._threads = _SpareThreads(f"{name}/thread")
        self._thread: Thread | None = None
        if loop is None:
            loop = asyncio.new_event_loop()
            self._thread = Thread(target=loop.run_forever, name=name, daemon=True)
            self._thread.start()
        self._loop = loop
        self._fed = asyncio.Event()

    def all(self) -> tuple[AsyncSlot, ...]:
        """Return every slot, also those that leave when their task has ended."""
        return (*self._slots, *self._still_leaving())

    def feed(self, number: int) -> None:  # noqa: ARG002 - all of them look
        """Wake idle slots."""
        self._loop.call_soon_threadsafe(self._fed.set)

    def work(self) -> None:
        """Wait until an exchange is due."""
        self._in_flight.wait_until_due(self._beat, self._wake_ups.listen)

    def rest(self, seconds: float) -> None:
        """Wait for a wake-up, or until an exchange is due."""
        self._in_flight.wait_until_due(seconds, self._wake_ups.listen)

    def scale(self, number: int) -> list[AsyncSlot]:
        """Have so many; return those that leave when their task has ended."""
        leaving = self._slots[number:]
        del self._slots[number:]
        self._leaving = [*self._still_leaving(), *leaving]
        for slot in leaving:
            slot.is_leaving = True
        new = [self._new_slot() for _ in range(number - len(self._slots))]
        self._slots += new
        self._in_flight.size = number
        for slot in new:
            self._loop.call_soon_threadsafe(slot.start)
        self.feed(number)
        return leaving

    def replace(self, slot: AsyncSlot) -> None:
        """Have another slot in the place of one that does not come back."""
        if slot in self._slots:
            new = self._new_slot()
            self._slots[self._slots.index(slot)] = new
            slot.is_leaving = True
            self._loop.call_soon_threadsafe(new.start)

    def close(self) -> None:
        """End the event loop, if it is its own; what still runs is cancelled."""
        self.scale(0)
        self._threads.close()
        if self._thread is None:
            return
        for slot in self._still_leaving():
            slot.is_closing = True
        cancelling = asyncio.run_coroutine_threadsafe(_cancel_rest(), self._loop)
        try:
            cancelling.result(_CLOSE_SECONDS)
        except FutureTimeout:
            logger.error("a task blocks the event loop of worker %s", self._name)
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _still_leaving(self) -> list[AsyncSlot]:
        # A slot that has just begun something runs nothing yet, and is not gone.
        return [slot for slot in self._leaving if not slot.is_gone]

    def _new_slot(self) -> AsyncSlot:
        return AsyncSlot(
            self._name,
            self._loop,
            self._runner,
            self._in_flight,
            self._fed,
            self._threads,
            self._clock,
        )


class AsyncSlot:
    """One coroutine that runs tasks."""

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        runner: TaskRunner,
        in_flight: InFlight,
        fed: asyncio.Event,
        threads: _SpareThreads,
        clock: Clock,
    ) -> None:
        self._name = name
        self._loop = loop
        self._runner = runner
        self._in_flight = in_flight
        self._fed = fed
        self._threads = threads
        self._clock = clock
        self._task: asyncio.Task[None]
        self._running: asyncio.Future[Any] | Interruptible | None = None
        self.attempt: Attempt | None = None
        self.is_leaving = self.is_closing = False
        self.is_gone = False

    def start(self) -> None:
        """Begin, in the thread of the event loop."""
        self._task = self._loop.create_task(self._run(), name=self._name)

    def interrupt(self, attempt: Attempt) -> bool:
        """Make an attempt stop, if it still runs; return whether it was asked to."""
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

    def deliver(self) -> bool:
        """Try again to interrupt what could not be safely; True if that is over."""
        running = self._running
        return not isinstance(running, Interruptible) or running.deliver()

    async def _run(self) -> None:
        in_flight, monotonic = self._in_flight, self._clock.monotonic
        try:
            while not self.is_leaving:
                delivery = in_flight.begin() or await self._wait()
                if delivery is None:
                    break
                began_at = monotonic()
                ending = await self._execute(delivery)
                if not in_flight.finish(delivery, ending, monotonic() - began_at):
                    logger.warning(
                        "task %s ended after it was given up; its report is dropped",
                        delivery.id,
                    )
        except SlotClosed:
            pass
        finally:
            self.is_gone = True

    async def _wait(self) -> Delivery | None:
        """Wait for something to begin; None: leave."""
        in_flight = self._in_flight
        in_flight.slot_is_idle()
        try:
            while not self.is_leaving:
                delivery = in_flight.begin()
                if delivery is not None:
                    return delivery
                self._fed.clear()
                await self._fed.wait()
        finally:
            in_flight.slot_is_busy()
        return None

    async def _execute(self, delivery: Delivery) -> Ending:
        runner = self._runner
        if delivery.id in self._in_flight.cancelled:
            return runner.cancelled(delivery)
        return await runner.execute_async(delivery, self._call)

    async def _call(self, attempt: Attempt) -> Any:
        self.attempt = attempt
        try:
            if attempt.definition.is_coroutine:
                value, error = await self._in_loop(attempt)
            else:
                value, error = await self._in_thread(attempt)
        except asyncio.CancelledError:
            if self.is_closing and not attempt.is_interrupted:
                raise SlotClosed from None
            raise
        finally:
            self.attempt = self._running = None
        if error is not None:
            raise error
        return value

    async def _in_loop(self, attempt: Attempt) -> _Outcome:
        """Run it as a task of its own: what cancels that does not end the slot."""
        coroutine = attempt.definition.function(**attempt.arguments)
        running: asyncio.Future[_Outcome] = asyncio.ensure_future(_outcome(coroutine))
        self._running = running
        return await running

    async def _in_thread(self, attempt: Attempt) -> _Outcome:
        """Run it in a thread that can be interrupted, and given up."""
        scope = self._running = Interruptible()
        loop, pid = self._loop, os.getpid()
        ended: asyncio.Future[_Outcome] = loop.create_future()

        def run() -> None:
            try:
                value = scope.call(attempt.definition.function, **attempt.arguments)
            except BaseException as error:  # noqa: BLE001 - it is the task's own
                outcome: _Outcome = (None, error)
            else:
                outcome = (value, None)
            end_if_forked(pid)
            # Where the loop is closed by now, nobody wants to know any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_set_result, ended, outcome)

        self._threads.run(partial(copy_context().run, run))
        return await ended


async def _outcome(coroutine: Any) -> _Outcome:
    try:
        return await coroutine, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - some of them would end the loop
        return None, error


def _set_result(ended: asyncio.Future[_Outcome], outcome: _Outcome) -> None:
    if not ended.done():
        ended.set_result(outcome)


async def _cancel_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=_CANCEL_SECONDS)


class _SpareThreads:
    """Daemon threads that are used again; as many as are needed at once.

    Unlike those of an executor they keep no process alive, so a thread that never comes
    back is left alone.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._spare: list[SimpleQueue[Callable[[], None] | None]] = []

    def run(self, work: Callable[[], None]) -> None:
        """Run a function, which must not raise, in a spare thread or a new one."""
        try:
            inbox = self._spare.pop()
        except IndexError:
            inbox = SimpleQueue()
            Thread(
                target=self._run, args=(inbox,), name=self._name, daemon=True
            ).start()
        inbox.put(work)

    def close(self) -> None:
        """End the spare threads."""
        while self._spare:
            self._spare.pop().put(None)

    def _run(self, inbox: SimpleQueue[Callable[[], None] | None]) -> None:
        while (work := inbox.get()) is not None:
            work()
            del work
            if len(self._spare) >= _MOST_SPARE:
                return
            self._spare.append(inbox)
