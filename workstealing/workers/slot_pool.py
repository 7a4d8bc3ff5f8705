"""A pool in this process: one worker with several slots, threads or coroutines.

Four kinds of threads: one runs the loop, one listens for wake-ups, one supervises, and
the slots run the tasks. With several queues there is one such worker in each of them,
and they share the slots: each has as many as all of them may use together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from workstealing._logs import BackgroundLogger
from workstealing.chance import Chance
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import Clock
from workstealing.recruiting.recruiter import Recruiter
from workstealing.tasks.attempt import Attempt
from workstealing.tasks.context import control_of
from workstealing.workers.engine import WorkerEngine
from workstealing.workers.identity import Phase, UntilEmpty
from workstealing.workers.slots import AnySlots, Slot, SlotParts, log_cut_off
from workstealing.workers.worker_stats import LoopStats, WorkerStats

if TYPE_CHECKING:
    from workstealing.workers.shared_slots import SharedSlots

__all__ = ("SlotPool",)

logger = BackgroundLogger(__name__)

# For interrupted tasks to end, and for the last exchange with Redis.
_LAST_SECONDS = 2.0
_LOOK_SECONDS = 0.02


class SlotPool:
    """One worker whose slots are threads, or coroutines of an event loop.

    Args:
        queues: whose tasks; with several, there is one worker in each.
        name: of the worker.
        new_slots: makes slots of its kind.
        batch: tasks that a slot takes at once, at most.
        until_empty: when to end without being asked to.
        recruiter: whose jobs may run in a spare moment, before a rest.
        tick: is called every 50 ms.
        chance: where randomness comes from.
        clock: where time comes from.
        shared: what several queues share; None: there is one.
        close: is called at the end.
        overlaps: an exchange is to be under way while tasks run. Without that, a loop
            that notices a low stock waits for the interpreter until there is none.
    """

    def __init__(
        self,
        queues: Sequence[TaskQueue],
        name: str,
        new_slots: Callable[[SlotParts], AnySlots],
        *,
        batch: int,
        until_empty: UntilEmpty,
        recruiter: Recruiter | None,
        tick: Callable[[], None],
        chance: Chance,
        clock: Clock,
        shared: SharedSlots | None = None,
        close: Callable[[], None] | None = None,
        overlaps: bool = False,
    ) -> None:
        self._name = name
        self._shared = shared
        self._close_more = close
        self._engines = [
            WorkerEngine(
                queue,
                name,
                new_slots,
                batch=batch,
                until_empty=until_empty,
                chance=chance,
                clock=clock,
                recruiter=recruiter,
                give_up=partial(self._give_up, place),
                overlaps=overlaps and shared is None,
                **({"tick": tick} if shared is None else shared.options(place, tick)),
            )
            for place, queue in enumerate(queues)
        ]
        if shared is not None:
            shared.connect(self._engines)
        self._mutex = Lock()
        self._ended = Event()
        self._working = 0
        self._error: BaseException | None = None
        self._is_closed = False
        self._zombies = 0
        self._cut_off: set[str] = set()

    def start(self, number: int) -> None:
        """Begin with *number* slots."""
        loops = [
            Thread(
                target=self._run,
                args=(engine,),
                name=f"{self._name}/loop",
                daemon=True,
            )
            for engine in self._engines
        ]
        self._working = len(loops)
        try:
            for engine in self._engines:
                engine.start()
            self.scale(number, hot=False)
            for engine in self._engines:
                engine.slots.wait_until_open()
            for loop in loops:
                loop.start()
        except BaseException:
            self._enter(Phase.ENDING)
            for loop in loops:
                if loop.is_alive():
                    loop.join(_LAST_SECONDS)
            self._ended.set()
            self._close()
            raise

    def scale(self, number: int, *, hot: bool) -> None:
        """Resize to *number* slots; hot: interrupt the tasks of surplus ones."""
        with self._mutex:
            if self._is_closed:
                return
            leaving = [
                slot for engine in self._engines for slot in engine.slots.scale(number)
            ]
        if hot:
            for slot in self._surplus(leaving, number):
                if (attempt := slot.attempt) is not None:
                    slot.interrupt(attempt)
        for engine in self._engines:
            engine.in_flight.make_exchange_due()

    def quiet(self) -> None:
        """Take no more tasks, and hand back those that wait."""
        self._enter(Phase.QUIET)

    def stop(self, *, hot: bool, timeout: float) -> int:
        """End; return how many tasks were cut off and handed back."""
        self._enter(Phase.STOPPING)
        if hot or not self._ended.wait(timeout):
            self._cut_off_tasks()
        self._enter(Phase.ENDING)
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
        engines = self._engines
        total = LoopStats.total([engine.stats for engine in engines])
        return WorkerStats(
            workers=engines[0].in_flight.size,
            running=sum(slot.attempt is not None for slot in self._all_slots()),
            waiting=total.due,
            stolen=total.stolen,
            taken=total.taken,
            ended=total.ended,
            refused=total.refused,
            lost_leases=total.lost_leases,
            failures=total.failures,
            zombies=self._zombies,
            silence=max(engine.lease.silence for engine in engines),
        )

    def _all_slots(self) -> Iterator[Slot]:
        for engine in self._engines:
            yield from engine.slots.all()

    def _surplus(self, leaving: Sequence[Slot], number: int) -> Sequence[Slot]:
        """Return the slots whose tasks are too many.

        Those that leave may run none of them, if other queues have the slots.
        """
        if self._shared is None:
            return leaving
        busy = [
            slot
            for slot in self._all_slots()
            if (attempt := slot.attempt) is not None and not attempt.is_interrupted
        ]
        return busy[number:]

    def _enter(self, phase: Phase) -> None:
        for engine in self._engines:
            engine.enter(phase)

    def _run(self, engine: WorkerEngine[AnySlots]) -> None:
        try:
            engine.run()
        except BaseException as error:  # noqa: BLE001 - `wait()` raises it
            self._error = self._error or error
            logger.error(
                "worker %s stopped because of an error", self._name, error=error
            )
            if self._shared is not None:
                # The pool does not go on with only some of its queues.
                self._enter(Phase.ENDING)
        finally:
            with self._mutex:
                self._working -= 1
            if not self._working:
                self._ended.set()

    def _close(self) -> None:
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
        for engine in self._engines:
            engine.close()
        if self._close_more is not None:
            self._close_more()

    def _cut_off_tasks(self) -> None:
        """Interrupt running tasks, also those begun only now, and wait a little."""
        end = time.monotonic() + _LAST_SECONDS
        while time.monotonic() < end:
            for slot in self._all_slots():
                attempt = slot.attempt
                if attempt is None or attempt.task.id in self._cut_off:
                    continue
                # Noted first, since the pool may end with this interrupt.
                self._cut_off.add(attempt.task.id)
                if slot.interrupt(attempt):
                    log_cut_off(attempt)
                else:
                    self._cut_off.discard(attempt.task.id)
            if self._ended.wait(_LOOK_SECONDS):
                return

    def _give_up(self, place: int, slot: Slot, attempt: Attempt) -> None:
        engine = self._engines[place]
        where = slot.where(attempt) if attempt.is_overdue else None
        report = engine.runner.stopped(attempt, "it could not be stopped", where)
        if not engine.in_flight.finish(attempt.task, report, 0.0):
            return
        control_of(attempt.context).is_abandoned = True
        # In a thread of its own: hooks may block, and the supervisor must not.
        notify = engine.runner.notify_report
        Thread(target=notify, args=(attempt, report), daemon=True).start()
        self._zombies += 1
        with self._mutex:
            engine.slots.replace(slot)
        logger.error(
            "task %s (%s) cannot be stopped: it runs on, another slot takes its place,"
            " and how it ends has no effect",
            attempt.task.id,
            attempt.definition.ability,
        )
