"""A pool in this process: one worker with several slots, threads or coroutines.

Four kinds of threads: one runs the loop, one listens for wake-ups, one supervises, and
the slots run the tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock, Thread

from workstealing._logs import BackgroundLogger
from workstealing.chance import Chance
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import Clock
from workstealing.tasks.attempt import Attempt
from workstealing.workers.engine import WorkerEngine
from workstealing.workers.identity import Phase, WorkerStats
from workstealing.workers.loop import UntilEmpty
from workstealing.workers.slots import AnySlots, Slot, SlotParts, log_cut_off

__all__ = ("SlotPool",)

logger = BackgroundLogger(__name__)

# For interrupted tasks to end, and for the last exchange with Redis.
_LAST_SECONDS = 2.0
_LOOK_SECONDS = 0.02


class SlotPool:
    """One worker whose slots are threads, or coroutines of an event loop.

    Args:
        queue: whose tasks.
        name: of the worker.
        new_slots: makes slots of its kind.
        batch: tasks that a slot takes at once, at most.
        until_empty: when to end without being asked to.
        idle: side work for a spare moment before a rest.
        tick: is called every 50 ms.
        chance: where randomness comes from.
        clock: where time comes from.
    """

    def __init__(
        self,
        queue: TaskQueue,
        name: str,
        new_slots: Callable[[SlotParts], AnySlots],
        *,
        batch: int,
        until_empty: UntilEmpty,
        idle: Callable[[], object],
        tick: Callable[[], None],
        chance: Chance,
        clock: Clock,
    ) -> None:
        self._name = name
        self._engine = WorkerEngine(
            queue,
            name,
            new_slots,
            batch=batch,
            until_empty=until_empty,
            chance=chance,
            clock=clock,
            idle=idle,
            tick=tick,
            give_up=self._give_up,
        )
        self._slots = self._engine.slots
        self._mutex = Lock()
        self._ended = Event()
        self._error: BaseException | None = None
        self._is_closed = False
        self._zombies = 0
        self._cut_off: set[str] = set()

    def start(self, number: int) -> None:
        """Begin with *number* slots."""
        try:
            self._engine.start()
            self.scale(number, hot=False)
            self._slots.wait_until_open()
        except BaseException:
            self._ended.set()
            self._close()
            raise
        Thread(target=self._run, name=f"{self._name}/loop", daemon=True).start()

    def scale(self, number: int, *, hot: bool) -> None:
        """Resize to *number* slots; hot: interrupt the tasks of surplus ones."""
        with self._mutex:
            if self._is_closed:
                return
            leaving = self._slots.scale(number)
        if hot:
            for slot in leaving:
                if (attempt := slot.attempt) is not None:
                    slot.interrupt(attempt)
        self._engine.in_flight.make_exchange_due()

    def quiet(self) -> None:
        """Take no more tasks, and hand back those that wait."""
        self._engine.enter(Phase.QUIET)

    def stop(self, *, hot: bool, timeout: float) -> int:
        """End; return how many tasks were cut off and handed back."""
        self._engine.enter(Phase.STOPPING)
        if hot or not self._ended.wait(timeout):
            self._cut_off_tasks()
        self._engine.enter(Phase.ENDING)
        self._ended.wait(_LAST_SECONDS)
        self._close()
        return len(self._cut_off)

    def wait(self, timeout: float | None) -> bool:
        """Wait until it has ended; return whether it has."""
        if not self._ended.wait(timeout):
            return False
        self._close()
        if self._error is not None:
            raise self._error
        return True

    @property
    def error(self) -> BaseException | None:
        """Why it ended, if it was not asked to."""
        return self._error

    def stats(self) -> WorkerStats:
        """Return what it does now, and what was counted."""
        counted = self._engine.stats
        return WorkerStats(
            workers=self._engine.in_flight.size,
            running=sum(slot.attempt is not None for slot in self._slots.all()),
            waiting=counted.due,
            stolen=counted.stolen,
            taken=counted.taken,
            refused=counted.refused,
            lost_leases=counted.lost_leases,
            failures=counted.failures,
            zombies=self._zombies,
            silence=self._engine.lease.silence,
        )

    def _run(self) -> None:
        try:
            self._engine.run()
        except BaseException as error:  # noqa: BLE001 - `wait()` raises it
            self._error = error
            logger.error(
                "worker %s stopped because of an error", self._name, error=error
            )
        finally:
            self._ended.set()

    def _close(self) -> None:
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
        self._engine.close()

    def _cut_off_tasks(self) -> None:
        """Interrupt running tasks, also those begun only now, and wait a little."""
        end = time.monotonic() + _LAST_SECONDS
        while time.monotonic() < end:
            for slot in self._slots.all():
                attempt = slot.attempt
                if attempt is None or attempt.task.id in self._cut_off:
                    continue
                # First, since all may end by that at once.
                self._cut_off.add(attempt.task.id)
                if slot.interrupt(attempt):
                    log_cut_off(attempt)
                else:
                    self._cut_off.discard(attempt.task.id)
            if self._ended.wait(_LOOK_SECONDS):
                return

    def _give_up(self, slot: Slot, attempt: Attempt) -> None:
        report = self._engine.runner.stopped(attempt, "it could not be stopped")
        if not self._engine.in_flight.finish(attempt.task, report, 0.0):
            return
        # Not here: what users wrote may block, and others are waiting.
        tell = self._engine.runner.tell_of_report
        Thread(target=tell, args=(attempt, report), daemon=True).start()
        self._zombies += 1
        with self._mutex:
            self._slots.replace(slot)
        logger.error(
            "task %s (%s) cannot be stopped: its slot was replaced, and whatever it"
            " still reports is refused",
            attempt.task.id,
            attempt.definition.ability,
        )
