"""One worker with several slots, in threads of this process: the engine of a pool.

Four kinds of threads: one leads the life (exchanges, steals, upkeep), one listens for
the bell, one watches over the others, and the slots run the tasks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from threading import Event, Lock, Thread

from workstealing.chance import Chance
from workstealing.client.queue import TaskQueue
from workstealing.clock import Clock
from workstealing.drivers.connect import dedicated
from workstealing.tasks.attempt import Attempt
from workstealing.workers.batching import Batching
from workstealing.workers.bell import Bell
from workstealing.workers.coroutines import CoroutineSlots
from workstealing.workers.intent import intent
from workstealing.workers.lifecycle import Phase
from workstealing.workers.loop import Life
from workstealing.workers.member import executor_of, member_of, rest_seconds
from workstealing.workers.overseer import Overseer, Slot
from workstealing.workers.scribe import Scribe
from workstealing.workers.statistics import PoolStats
from workstealing.workers.team import Team
from workstealing.workers.threads import ThreadSlots
from workstealing.workers.watchdog import Watchdog

__all__ = ("Teamwork",)

logger = logging.getLogger(__name__)

_LONGEST_SILENCE = 1.0
# For what was interrupted to come to an end, and for the last words to Redis.
_LAST_SECONDS = 2.0
_LOOK_SECONDS = 0.02


class Teamwork:
    """Slots over a queue: threads, or coroutines of an event loop.

    Args:
        queue: whose tasks.
        name: of the worker.
        is_asyncio: whether the slots are coroutines.
        batch: tasks that a slot takes at once, at most.
        idle: what to do with a moment before a rest.
        tick: what else to look at, some times a second.
        chance: where randomness comes from.
        clock: where time comes from.
        loop: whose coroutines the slots are; one of its own unless given.
    """

    def __init__(
        self,
        queue: TaskQueue,
        name: str,
        *,
        is_asyncio: bool,
        batch: int,
        idle: Callable[[], None],
        tick: Callable[[], None],
        chance: Chance,
        clock: Clock,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._name = name
        self._idle = idle
        self._tick = tick
        self._chance = chance
        self._clock = clock
        self._driver = driver = queue.driver
        self._executor = executor_of(queue, name, chance)
        self._member = member = member_of(queue, name)
        begin, scribe = intent(driver, member), Scribe(driver, member, clock)
        self._slots: ThreadSlots | CoroutineSlots
        if is_asyncio:
            self._slots = CoroutineSlots(
                name, self._executor, begin, scribe, clock, loop
            )
        else:
            self._slots = ThreadSlots(name, self._executor, begin, scribe, clock)
        lease = queue.settings.lease_ms / 1000
        self._rest = rest_seconds(driver)
        self._bell = Bell(driver, queue.keys.bell, self._rest, self._ring)
        self._team = Team(
            Batching(batch),
            beat=min(_LONGEST_SILENCE, lease / 3),
            attempts=self._slots.attempts,
            feed=self._slots.feed,
            listen=self._bell.listen,
            clock=clock,
        )
        self._slots.join(self._team)
        self._watchdog = Watchdog(name, driver, lease, self._tell_lost, clock)
        self._overseer = Overseer(
            self._slots.everyone, self._give_up, self._look, clock
        )
        self._mutex = Lock()
        self._phase = Phase.WORKING
        self._ended = Event()
        self._error: BaseException | None = None
        self._is_closed = False
        self._zombies = 0
        self._cut: set[str] = set()
        self._life: Life

    def start(self, number: int, *, until_empty: bool) -> None:
        """Begin, with so many slots."""
        self._life = Life(
            self._member,
            self._team,
            idle=self._idle,
            phase=lambda: self._phase,
            renewed=self._watchdog.renewed,
            until_empty=until_empty,
            rest=self._rest,
            chance=self._chance,
            clock=self._clock,
        )
        self.scale(number, hot=False)
        self._bell.start()
        self._overseer.start()
        Thread(target=self._lead, name=f"{self._name}/lead", daemon=True).start()

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
        self._team.poke()

    def quiet(self) -> None:
        """Take no more, and hand back what waits."""
        self._phase = max(self._phase, Phase.QUIET)
        # A wake-up is for one who takes what there is.
        self._bell.stop()
        self._team.poke()

    def stop(self, *, hot: bool, timeout: float) -> int:
        """End; return how many tasks were cut off and handed back."""
        self._phase = max(self._phase, Phase.STOPPING)
        self._bell.stop()
        self._team.poke()
        if hot or not self._ended.wait(timeout):
            self._cut_off()
        self._phase = Phase.ENDING
        self._team.poke()
        self._ended.wait(_LAST_SECONDS)
        self._close()
        return len(self._cut)

    def wait(self, timeout: float | None) -> bool:
        """Wait until it has ended by itself; tell whether it has."""
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

    def stats(self) -> PoolStats:
        """Return what was counted."""
        life = self._life.stats
        return PoolStats(
            workers=self._team.size,
            running=len(self._slots.attempts()),
            taken=life.taken,
            stolen=life.stolen,
            refused=life.refused,
            lost_leases=life.lost_leases,
            failures=life.failures,
            due=life.due,
            zombies=self._zombies,
            silence=self._watchdog.silence,
        )

    def _lead(self) -> None:
        own = dedicated(self._driver)
        try:
            own.run(self._life.live())
        except BaseException as error:
            self._error = error
            logger.exception("worker %s ends", self._name)
            own.run(self._life.leave())
        finally:
            own.close()
            # What still runs is another's by now.
            self._tell_lost()
            self._ended.set()

    def _close(self) -> None:
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
        self._bell.stop()
        self._overseer.stop()
        self._slots.close()

    def _cut_off(self) -> None:
        """Interrupt what runs, also what is begun only now, and wait a little."""
        end = time.monotonic() + _LAST_SECONDS
        while time.monotonic() < end:
            for slot in self._slots.everyone():
                attempt = slot.attempt
                if attempt is None or attempt.task.id in self._cut:
                    continue
                # First, for all may end by that at once.
                self._cut.add(attempt.task.id)
                if not slot.interrupt(attempt):
                    self._cut.discard(attempt.task.id)
            if self._ended.wait(_LOOK_SECONDS):
                return

    def _give_up(self, slot: Slot, attempt: Attempt) -> None:
        if not attempt.claim():
            return
        self._zombies += 1
        logger.error(
            "task %s (%s) cannot be stopped; its slot is replaced, and what it may"
            " still report is refused",
            attempt.task.id,
            attempt.definition.ability,
        )
        report = self._executor.stopped(attempt, "it could not be stopped")
        self._team.finish(attempt.task, report, 0.0)
        with self._mutex:
            self._slots.replace(slot)  # type: ignore[arg-type]

    def _look(self) -> None:
        self._watchdog.look()
        self._tick()

    def _tell_lost(self) -> None:
        for attempt in self._slots.attempts():
            attempt.context.tell_lease_lost()

    def _ring(self) -> None:
        self._team.poke()
