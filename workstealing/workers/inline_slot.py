"""The slot of a worker that runs its tasks in the thread of its loop, one at a time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from threading import main_thread
from types import TracebackType
from typing import Any

from workstealing.queue.steps import RedisCommand
from workstealing.tasks.attempt import Attempt, Ending, within_its_time
from workstealing.workers.lifespan import Lifespan, LoopLifespan
from workstealing.workers.redis_threads import Heartbeat
from workstealing.workers.slots import SlotParts
from workstealing.workers.stuck_stacks import stack_of

__all__ = ("InlineSlot", "SlotEventLoop")


class InlineSlot:
    """One slot in the thread of the loop itself.

    While a task runs there, a heartbeat does what the loop cannot.

    Args:
        parts: what the engine gives to its slots.
        began: is told of an attempt before it runs.
        interrupt: stops an attempt, from another thread; None: nothing can.
    """

    def __init__(
        self,
        parts: SlotParts,
        *,
        began: Callable[[Attempt], None] | None = None,
        interrupt: Callable[[Attempt], bool] | None = None,
    ) -> None:
        self._parts = parts
        self._began = began
        self._interrupt = interrupt
        self._event_loop = SlotEventLoop(parts.lifespan)
        self._heartbeat: Heartbeat | None = None
        self.attempt: Attempt | None = None
        parts.in_flight.resize(1)
        parts.in_flight.slot_is_idle()

    def start(self, heartbeat: Callable[[], None]) -> None:
        """Open resources in the event loop, and start the heartbeat."""
        parts = self._parts
        self._event_loop.open()
        self._heartbeat = Heartbeat(parts.worker, parts.renew_seconds, heartbeat)
        self._heartbeat.start()

    def all(self) -> tuple[InlineSlot]:
        """Return itself."""
        return (self,)

    def interrupt(self, attempt: Attempt) -> bool:
        """Stop an attempt if that is possible; return whether it was asked to stop."""
        return self._interrupt is not None and self._interrupt(attempt)

    def retry_interrupt(self) -> bool:
        """Return True: an inline task is stopped at once or not at all."""
        return True

    def where(self, attempt: Attempt) -> TracebackType | None:
        """Return where an attempt is with which its process ends."""
        return stack_of(attempt, main_thread().ident, self._event_loop.coroutine)

    def wake(self, number: int) -> None:
        """Do nothing: the next `work()` begins what there is."""

    def has_moved(self) -> None:
        """Do nothing: the loop itself waits for wake-ups, wherever it is."""

    def stop_listening(self) -> None:
        """Do nothing: the loop looks after each task, and a signal handler may ask."""

    def work(self, seconds: float = math.inf) -> None:  # noqa: ARG002
        """Run tasks for about as long as a batch should last.

        It does not wait, so it ends long before *seconds* are over.
        """
        parts, call = self._parts, self._call
        complete = self._event_loop.complete
        in_flight, runner = parts.in_flight, parts.runner
        monotonic, begin, finish = (
            parts.clock.monotonic,
            in_flight.begin,
            in_flight.finish,
        )
        turn_seconds = in_flight.turn_seconds
        in_flight.slot_is_busy()
        try:
            began_at = now = monotonic()
            while (delivery := begin()) is not None:
                ending: Ending
                if delivery.id in in_flight.cancelled:
                    ending = runner.cancelled(delivery)
                else:
                    ending = runner.execute(delivery, call, complete)
                before, now = now, monotonic()
                finish(delivery, ending, now - before)
                if now - began_at > turn_seconds:
                    break
        finally:
            in_flight.slot_is_idle()

    def rest(self, seconds: float) -> RedisCommand[bool] | None:
        """Have the loop wait for a wake-up with its next exchange: it is one trip."""
        bell = self._parts.bell()
        return RedisCommand(("BLPOP", bell, seconds), bool, is_blocking=True)

    def close(self) -> None:
        """Stop the heartbeat, and close the event loop in which coroutines ran."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
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

    def __init__(self, lifespan: Lifespan | None = None) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._life: LoopLifespan | None = None
        if lifespan is not None and lifespan.awaited:
            self._life = LoopLifespan(lifespan)

    def open(self) -> None:
        """Open the resources that belong to the loop, in the thread of the slot."""
        if self._life is not None:
            self._own_loop().run_until_complete(self._life.open())

    def run(self, attempt: Attempt) -> Any:
        """Run an attempt, and cancel it when its time limit is over."""
        loop = self._own_loop()
        coroutine = attempt.definition.function(**attempt.arguments)
        if attempt.timeout is not None:
            # The supervisor cannot interrupt an inline slot.
            coroutine = within_its_time(attempt, coroutine)
        return self._run_to_its_end(loop, loop.create_task(coroutine))

    def complete(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine that is not the task's, such as a hook."""
        loop = self._own_loop()
        return self._run_to_its_end(loop, loop.create_task(coroutine))

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        loop = self._loop
        if loop is None or loop.is_closed():
            loop = self._loop = asyncio.new_event_loop()
        return loop

    def _run_to_its_end(
        self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]
    ) -> Any:
        self._task = task
        while True:
            try:
                return loop.run_until_complete(task)
            except RuntimeError:
                # Unless it is its own, the task has stopped the loop that it needs.
                if task.done() or loop.is_closed():
                    raise
            finally:
                # Its result may be large. One that was interrupted can be cancelled.
                if task.done():
                    self._task = None

    @property
    def coroutine(self) -> Any:
        """The coroutine that runs there, if any."""
        return None if self._task is None else self._task.get_coro()

    def cancel(self) -> bool:
        """Cancel the running task from another thread; return whether it could be."""
        loop, task = self._loop, self._task
        if loop is None or task is None or loop.is_closed():
            return False
        loop.call_soon_threadsafe(task.cancel)
        return True

    def close(self) -> None:
        """Close the resources of the loop, and the loop."""
        loop, self._loop = self._loop, None
        if loop is not None:
            if self._life is not None and not loop.is_closed():
                loop.run_until_complete(self._life.close())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
