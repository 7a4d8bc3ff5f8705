"""The slot of a process that works for several queues, lent to one task at a time.

Each queue has a loop in a thread of its own, and a `LentSlot`. The tasks of all queues
run in the main thread, which asks the slots one after another. The shares of the queues
decide which of them may begin a task.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import TypeAlias

from workstealing.tasks.attempt import Attempt, Ending
from workstealing.workers.engine import WorkerEngine
from workstealing.workers.identity import Phase
from workstealing.workers.inline_slot import InlineSlot
from workstealing.workers.slots import SlotParts

__all__ = ("LentSlot", "LentThread")

# For the last exchange of each loop with Redis.
_LAST_SECONDS = 2.0


class LentSlot(InlineSlot):
    """The slot of one queue, in a thread that runs the tasks of several.

    Args:
        parts: what the engine gives to its slots.
        began: is told of an attempt before it runs.
        interrupt: stops an attempt, from another thread.
        call: has the thread ask its slots for a task; called from any thread.
    """

    def __init__(
        self,
        parts: SlotParts,
        *,
        began: Callable[[Attempt], None],
        interrupt: Callable[[Attempt], bool],
        call: Callable[[], None],
    ) -> None:
        super().__init__(parts, began=began, interrupt=interrupt)
        self._call_thread = call
        self._wake_ups = parts.new_listener()

    def start(self, heartbeat: Callable[[], None]) -> None:  # noqa: ARG002
        """Open resources in the event loop, and listen for wake-ups.

        It needs no heartbeat: that is for a loop whose thread runs tasks. Here tasks
        run in another thread, and the loop is free to renew the lease itself.
        """
        self._event_loop.open()
        self._wake_ups.start()

    def run_task(self) -> bool:
        """Run the next task, if it is this queue's turn; return whether it was."""
        parts = self._parts
        in_flight, runner = parts.in_flight, parts.runner
        delivery = in_flight.begin()
        if delivery is None:
            return False
        began_at = parts.clock.monotonic()
        ending: Ending
        if delivery.id in in_flight.cancelled:
            ending = runner.cancelled(delivery)
        else:
            ending = runner.execute(delivery, self._call, self._event_loop.complete)
        in_flight.finish(delivery, ending, parts.clock.monotonic() - began_at)
        return True

    def wake(self, number: int) -> None:  # noqa: ARG002 - there is one
        """Have the thread ask its slots for a task."""
        self._call_thread()

    def work(self, seconds: float = math.inf) -> None:
        """Wait until an exchange is due, at the latest to renew the lease."""
        self.rest(min(seconds, self._parts.renew_seconds))

    def rest(self, seconds: float) -> None:
        """Wait for a wake-up, or until an exchange is due."""
        self._parts.in_flight.wait_until_due(seconds, self._wake_ups.listen)

    def has_moved(self) -> None:
        """Listen for wake-ups of another shard."""
        self._wake_ups.move()

    def stop_listening(self) -> None:
        """Leave wake-ups to workers that take tasks, and let the loop look at once."""
        self._wake_ups.stop()
        self._parts.in_flight.make_exchange_due()


Engines: TypeAlias = Sequence[WorkerEngine[LentSlot]]


class LentThread:
    """The main thread of a process, in which the tasks of several queues run."""

    def __init__(self) -> None:
        self._called = Event()
        self._loops: list[Thread] = []
        self._ended: list[object] = []
        self._error: BaseException | None = None

    def new_slot(
        self,
        parts: SlotParts,
        began: Callable[[Attempt], None],
        interrupt: Callable[[Attempt], bool],
    ) -> LentSlot:
        """Make the slot of one of the queues."""
        return LentSlot(parts, began=began, interrupt=interrupt, call=self._called.set)

    def run(self, engines: Engines) -> None:
        """Work until all loops have ended, in this thread."""
        slots = [engine.slots for engine in engines]
        for engine in engines:
            loop = Thread(
                target=self._run_loop, args=(engine, engines), name="loop", daemon=True
            )
            self._loops.append(loop)
            loop.start()
        while True:
            # Cleared before the look, so that a call between the two is not forgotten.
            self._called.clear()
            if len(self._ended) == len(engines):
                break
            if not any(slot.run_task() for slot in slots):
                self._called.wait()
        if self._error is not None:
            raise self._error

    def end(self, engines: Engines) -> None:
        """Have the loops report, hand back and leave, while the task still runs."""
        for engine in engines:
            engine.enter(Phase.ENDING)
        end = time.monotonic() + _LAST_SECONDS
        for loop in self._loops:
            loop.join(max(0.0, end - time.monotonic()))

    def _run_loop(self, engine: WorkerEngine[LentSlot], engines: Engines) -> None:
        try:
            engine.run()
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            self._error = self._error or error
            # The process does not go on with only some of its queues.
            for other in engines:
                other.enter(Phase.ENDING)
        finally:
            self._ended.append(engine)
            self._called.set()
