"""Slots that are coroutines of one event loop; `def` tasks run in threads beside it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any

from workstealing._interrupt import Interruptible
from workstealing.errors import PoolBroken
from workstealing.tasks.attempt import (
    Attempt,
    Delivery,
    Ending,
    ValueOrError,
    value_or_error,
)
from workstealing.tasks.runner import NoThread, end_if_forked
from workstealing.workers.lifespan import LoopLifespan
from workstealing.workers.loop_thread import CLOSE_SECONDS, LoopThread, cancel_tasks
from workstealing.workers.slots import (
    ResizableSlots,
    SlotClosed,
    SlotParts,
    log_late_end,
    out_of_threads,
)
from workstealing.workers.stuck_stacks import stack_of

__all__ = ("AsyncSlot", "AsyncSlots")

_STOPPED_SECONDS = 10.0
# More spare threads than that would be idle most of the time.
_MOST_SPARE = 64


class AsyncSlots(ResizableSlots["AsyncSlot"]):
    """The coroutines of one worker.

    Args:
        parts: what the engine gives to its slots.
        loop: the event loop to run in; None: a new one, in a thread.
    """

    def __init__(
        self, parts: SlotParts, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(parts)
        self._threads = _SpareThreads(f"{parts.worker}/thread")
        self._thread: LoopThread | None = None
        if loop is None:
            self._thread = LoopThread(parts.worker)
            loop = self._thread.loop
        self._loop = loop
        self._loop_ran_at = parts.clock.monotonic()
        self._life: LoopLifespan | None = None
        if parts.lifespan is not None and parts.lifespan.awaited:
            self._life = LoopLifespan(parts.lifespan)
        self._task_waits = asyncio.Event()
        self._lacks_threads = False

    def start(self, heartbeat: Callable[[], None]) -> None:
        """Open resources in the event loop, and listen for wake-ups.

        With resources, it must not be called in the thread of the event loop.
        """
        if self._life is not None:
            opening = asyncio.run_coroutine_threadsafe(self._life.open(), self._loop)
            opening.result()
        super().start(heartbeat)

    def wake(self, number: int) -> None:  # noqa: ARG002 - all of them look
        """Let idle slots begin a task."""
        _call_soon(self._loop, self._task_waits.set)

    def rest(self, seconds: float) -> None:
        """Wait for a wake-up, or until an exchange is due."""
        self._check_loop()
        self._check_threads()
        super().rest(seconds)

    def close(self) -> None:
        """Stop the event loop, unless it is the caller's; cancel running tasks."""
        self.scale(0)
        self._threads.close()
        if self._thread is None or not self._thread.is_alive():
            self._close_in_callers_loop()
            return
        for slot in self._still_leaving():
            slot.is_closing = True
        # Resources have five seconds too, after the tasks.
        seconds = CLOSE_SECONDS * (1 if self._life is None else 2)
        self._thread.close(_cancel_rest(self._life), seconds)

    def _close_in_callers_loop(self) -> None:
        if self._life is None or not self._life.close_soon():
            return
        # In the thread of the loop, waiting would keep it from what is waited for.
        if asyncio._get_running_loop() is not self._loop:  # noqa: SLF001
            self._life.ended.wait(CLOSE_SECONDS)

    def _check_loop(self) -> None:
        """Raise `PoolBroken` if nothing runs in the event loop any more."""
        now, thread = self._parts.clock.monotonic(), self._thread
        is_dead = self._loop.is_closed() or not (thread is None or thread.is_alive())
        if not is_dead and (thread is not None or self._loop.is_running()):
            self._loop_ran_at = now
        # The caller's own loop may stop, and run again.
        if is_dead or now - self._loop_ran_at > _STOPPED_SECONDS:
            raise PoolBroken(
                f"the event loop of worker {self._parts.worker} does not run any more,"
                " so the worker ends; other workers take over its tasks"
            )

    def _let_all_leave(self) -> None:
        """Begin no further task, for want of a thread; running ones go on."""
        self._lacks_threads = True
        self.scale(0)

    def _check_threads(self) -> None:
        """Raise `PoolBroken` if slots left for want of a thread, and all are gone."""
        if self._lacks_threads and not self.all():
            raise out_of_threads(f"worker {self._parts.worker}")

    def _new_slot(self) -> AsyncSlot:
        return AsyncSlot(
            self._parts,
            self._loop,
            self._task_waits,
            self._threads,
            self._let_all_leave,
        )

    def _start_slot(self, slot: AsyncSlot) -> None:
        _call_soon(self._loop, slot.start)


class AsyncSlot:
    """One coroutine that runs tasks."""

    def __init__(
        self,
        parts: SlotParts,
        loop: asyncio.AbstractEventLoop,
        task_waits: asyncio.Event,
        threads: _SpareThreads,
        lacks_thread: Callable[[], None],
    ) -> None:
        self._name = parts.worker
        self._runner = parts.runner
        self._in_flight = parts.in_flight
        self._clock = parts.clock
        self._loop = loop
        self._task_waits = task_waits
        self._threads = threads
        self._lacks_thread = lacks_thread
        self._task: asyncio.Task[None]
        self._running: asyncio.Future[Any] | Interruptible | None = None
        self.attempt: Attempt | None = None
        self.is_leaving = self.is_closing = False
        self.is_gone = False

    def start(self) -> None:
        """Begin, in the thread of the event loop."""
        self._task = self._loop.create_task(self._run(), name=self._name)

    def interrupt(self, attempt: Attempt) -> bool:
        """Stop an attempt if it still runs; return whether it was asked to stop."""
        running = self._running
        if running is None or self.attempt is not attempt:
            return False
        # First, for it may end by that at once.
        attempt.is_interrupted = True
        if isinstance(running, Interruptible):
            attempt.is_interrupted = is_asked = running.interrupt()
            return is_asked
        return _call_soon(self._loop, running.cancel)

    def retry_interrupt(self) -> bool:
        """Retry an interrupt that was not safe before; True if none is pending."""
        running = self._running
        return not isinstance(running, Interruptible) or running.deliver()

    def where(self, attempt: Attempt) -> TracebackType | None:
        """Return where an attempt is that is about to be given up, if that is seen."""
        running = self._running
        if isinstance(running, Interruptible):
            return stack_of(attempt, running.thread)
        # Both event loops, asyncio's and uvloop's, know the thread they run in.
        thread = getattr(self._loop, "_thread_id", None)
        coroutine = running.get_coro() if isinstance(running, asyncio.Task) else None
        return stack_of(attempt, thread, coroutine)

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
                    log_late_end(delivery)
        except SlotClosed:
            pass
        finally:
            self.is_gone = True
            self._in_flight.make_exchange_due()

    async def _wait(self) -> Delivery | None:
        """Wait for something to begin; None: leave."""
        in_flight = self._in_flight
        in_flight.slot_is_idle()
        try:
            while not self.is_leaving:
                delivery = in_flight.begin()
                if delivery is not None:
                    return delivery
                self._task_waits.clear()
                await self._task_waits.wait()
        finally:
            in_flight.slot_is_busy()
        return None

    async def _execute(self, delivery: Delivery) -> Ending:
        runner = self._runner
        if delivery.id in self._in_flight.cancelled:
            return runner.cancelled(delivery)
        try:
            return await runner.execute_async(delivery, self._call)
        except NoThread:
            self._lacks_thread()
            return runner.reports.not_begun(
                delivery, out_of_threads(f"worker {self._name}")
            )

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
            if self._was_cancelled():
                # Whoever runs the event loop ends it: the task goes back to the queue.
                attempt.is_interrupted = self.is_leaving = True
            raise
        finally:
            self.attempt = self._running = None
        if error is not None:
            raise error
        return value

    def _was_cancelled(self) -> bool:
        """Return whether the slot itself was cancelled, not only its task."""
        # Python 3.10 does not tell the two apart.
        cancelling = getattr(self._task, "cancelling", None)
        return cancelling is not None and cancelling() > 0

    async def _in_loop(self, attempt: Attempt) -> ValueOrError:
        """Run it as a task of its own: what cancels that does not end the slot."""
        coroutine = attempt.definition.function(**attempt.arguments)
        running: asyncio.Future[ValueOrError] = asyncio.ensure_future(
            value_or_error(coroutine)
        )
        self._running = running
        return await running

    async def _in_thread(self, attempt: Attempt) -> ValueOrError:
        """Run it in a thread that can be interrupted, and given up."""
        scope = self._running = Interruptible()
        loop, pid = self._loop, os.getpid()
        ended: asyncio.Future[ValueOrError] = loop.create_future()

        def run() -> None:
            try:
                value = scope.call(attempt.definition.function, **attempt.arguments)
            except BaseException as error:  # noqa: BLE001 - it is the task's own
                outcome: ValueOrError = (None, error)
            else:
                outcome = (value, None)
            end_if_forked(pid)
            _call_soon(loop, partial(_set_result, ended, outcome))

        try:
            self._threads.run(partial(copy_context().run, run))
        except RuntimeError:
            raise NoThread from None
        return await ended


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> bool:
    """Call in the event loop, from any thread; False if it is closed by now."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        return False
    return True


def _set_result(ended: asyncio.Future[ValueOrError], outcome: ValueOrError) -> None:
    if not ended.done():
        ended.set_result(outcome)


async def _cancel_rest(life: LoopLifespan | None) -> None:
    if life is None:
        await cancel_tasks()
    else:
        await cancel_tasks(life.task)
        await life.close()


class _SpareThreads:
    """Daemon threads that are used again; as many as are needed at once.

    Unlike those of an executor they keep no process alive, so a thread that never comes
    back is left alone.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._spare: list[SimpleQueue[Callable[[], None] | None]] = []
        self._is_closed = False

    def run(self, work: Callable[[], None]) -> None:
        """Run a function, which must not raise, in a spare thread or a new one.

        `RuntimeError` if the system starts no further thread.
        """
        try:
            inbox = self._spare.pop()
        except IndexError:
            inbox = SimpleQueue()
            Thread(
                target=self._run, args=(inbox,), name=self._name, daemon=True
            ).start()
        inbox.put(work)

    def close(self) -> None:
        """End the spare threads, and the others when they have done their work."""
        self._is_closed = True
        while self._spare:
            self._spare.pop().put(None)

    def _run(self, inbox: SimpleQueue[Callable[[], None] | None]) -> None:
        while (work := inbox.get()) is not None:
            work()
            del work
            if self._is_closed or len(self._spare) >= _MOST_SPARE:
                return
            self._spare.append(inbox)
