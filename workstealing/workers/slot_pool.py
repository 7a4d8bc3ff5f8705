"""A pool in this process: one worker with several slots, threads or coroutines.

Four kinds of threads: one runs the loop, one listens for wake-ups, one supervises, and
the slots run the tasks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from threading import Event, Lock, Thread

from workstealing._logs import BackgroundLogger, flush_logs
from workstealing.chance import Chance
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import Clock
from workstealing.drivers.connect import dedicated
from workstealing.drivers.connection import shut_down_sockets
from workstealing.tasks.attempt import Attempt
from workstealing.tasks.runner import TaskRunner
from workstealing.workers.async_slots import AsyncSlots, SlotClosed
from workstealing.workers.batching import Batching
from workstealing.workers.identity import Phase, WorkerStats, identity_of
from workstealing.workers.in_flight import InFlight
from workstealing.workers.loop import UntilEmpty, WorkerLoop, rest_seconds
from workstealing.workers.redis_threads import WakeUpListener
from workstealing.workers.slots import Slot, tell_lease_lost
from workstealing.workers.supervisor import Lease, Supervisor
from workstealing.workers.task_output import TaskOutput
from workstealing.workers.thread_slots import ThreadSlots

__all__ = ("SlotPool",)

logger = BackgroundLogger(__name__)

# For interrupted tasks to come to an end, and for the last exchange with Redis.
_LAST_SECONDS = 2.0
_LOOK_SECONDS = 0.02


class SlotPool:
    """One worker whose slots are threads, or coroutines of an event loop.

    Args:
        queue: whose tasks.
        name: of the worker.
        is_asyncio: whether the slots are coroutines.
        batch: tasks that a slot takes at once, at most.
        until_empty: when to end by itself.
        idle: what to do with a spare moment before a rest.
        tick: what else to look at, some times a second.
        chance: where randomness comes from.
        clock: where time comes from.
        event_loop: whose coroutines the slots are; one of its own unless given.
    """

    def __init__(
        self,
        queue: TaskQueue,
        name: str,
        *,
        is_asyncio: bool,
        batch: int,
        until_empty: UntilEmpty,
        idle: Callable[[], None],
        tick: Callable[[], None],
        chance: Chance,
        clock: Clock,
        event_loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        parts, identity = internals_of(queue), identity_of(queue, name)
        driver = parts.driver
        self._name = name
        self._own_driver = dedicated(driver)
        self._runner = TaskRunner(
            parts.admission,
            name,
            queue.name,
            chance,
            TaskOutput(driver, identity, clock),
            max_result=parts.settings.max_result,
            reraised=(SlotClosed,),
        )
        self._in_flight = in_flight = InFlight(Batching(batch), clock)
        self._lease = lease = Lease(identity.lease, clock)
        rest = rest_seconds(driver)
        self._wake_ups = WakeUpListener(driver, parts.keys.bell, rest, in_flight.poke)
        shared = (name, self._runner, in_flight, self._wake_ups, lease.beat, clock)
        self._slots: ThreadSlots | AsyncSlots = (
            AsyncSlots(*shared, event_loop) if is_asyncio else ThreadSlots(*shared)
        )
        self._supervisor = Supervisor(
            name,
            self._slots.all,
            lease,
            lease_lost=partial(tell_lease_lost, self._slots),
            give_up=self._give_up,
            shut_down=partial(shut_down_sockets, driver.client),
            tick=tick,
            clock=clock,
        )
        self._loop = WorkerLoop(
            identity,
            self._own_driver,
            in_flight,
            self._slots,
            lease,
            phase=lambda: self._phase,
            idle=idle,
            is_supervised=self._supervisor.answers,
            until_empty=until_empty,
            rest=rest,
            chance=chance,
            clock=clock,
        )
        self._mutex = Lock()
        self._phase = Phase.WORKING
        self._ended = Event()
        self._error: BaseException | None = None
        self._is_closed = False
        self._zombies = 0
        self._cut_off: set[str] = set()

    def start(self, number: int) -> None:
        """Begin, with so many slots."""
        self.scale(number, hot=False)
        self._wake_ups.start()
        self._supervisor.start()
        Thread(target=self._run, name=f"{self._name}/loop", daemon=True).start()

    def scale(self, number: int, *, hot: bool) -> None:
        """Have so many slots; hot: interrupt what the surplus ones run."""
        with self._mutex:
            if self._is_closed:
                return
            leaving = self._slots.scale(number)
        if hot:
            for slot in leaving:
                if (attempt := slot.attempt) is not None:
                    slot.interrupt(attempt)
        self._in_flight.poke()

    def quiet(self) -> None:
        """Take no more, and hand back what waits."""
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
        """Wait until it has ended by itself; return whether it has."""
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
        counted = self._loop.stats
        return WorkerStats(
            workers=self._in_flight.size,
            running=sum(slot.attempt is not None for slot in self._slots.all()),
            waiting=counted.due,
            stolen=counted.stolen,
            taken=counted.taken,
            refused=counted.refused,
            lost_leases=counted.lost_leases,
            failures=counted.failures,
            zombies=self._zombies,
            silence=self._lease.silence,
        )

    def _enter(self, phase: Phase) -> None:
        self._phase = max(self._phase, phase)
        # A wake-up is for workers that take what there is.
        self._wake_ups.stop()
        self._in_flight.poke()

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as error:  # noqa: BLE001 - `wait()` raises it
            self._error = error
            self._loop.leave()
            logger.error("worker %s ends", self._name, error=error)
        finally:
            self._own_driver.close()
            # Other workers have what still runs.
            tell_lease_lost(self._slots)
            self._ended.set()

    def _close(self) -> None:
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
        self._wake_ups.stop()
        self._supervisor.stop()
        self._slots.close()
        flush_logs()

    def _cut_off_tasks(self) -> None:
        """Interrupt what runs, also what is begun only now, and wait a little."""
        end = time.monotonic() + _LAST_SECONDS
        while time.monotonic() < end:
            for slot in self._slots.all():
                attempt = slot.attempt
                if attempt is None or attempt.task.id in self._cut_off:
                    continue
                # First, for all may end by that at once.
                self._cut_off.add(attempt.task.id)
                if not slot.interrupt(attempt):
                    self._cut_off.discard(attempt.task.id)
            if self._ended.wait(_LOOK_SECONDS):
                return

    def _give_up(self, slot: Slot, attempt: Attempt) -> None:
        report = self._runner.stopped(attempt, "it could not be stopped")
        if not self._in_flight.finish(attempt.task, report, 0.0):
            return
        self._zombies += 1
        with self._mutex:
            self._slots.replace(slot)  # type: ignore[arg-type]
        logger.error(
            "task %s (%s) cannot be stopped: its slot was replaced, and whatever it"
            " still reports is refused",
            attempt.task.id,
            attempt.definition.ability,
        )
