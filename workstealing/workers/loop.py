"""The loop of one worker: join, exchange, steal, run, rest.

It alone decides when a worker talks to Redis; `Exchanges` and `HandingBack` say what.
One thread runs it, which may also run the tasks (an inline slot). If many tasks are
quick, they run while the next exchange is under way. If a task takes long, another
thread calls `heartbeat()`; a lock keeps the two from talking to Redis at once.

The loop survives every failure of Redis: it assumes that a reply was lost, waits a
little, and tries again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any

from workstealing._logs import BackgroundLogger
from workstealing.chance import Chance
from workstealing.client.queue_schedules import QueueSchedules
from workstealing.clock import Clock
from workstealing.drivers.connection import is_plain, timeout_of
from workstealing.drivers.sync_driver import DedicatedDriver, Driver
from workstealing.errors import PoolBroken, RedisError, ServerTooOld
from workstealing.queue import worker_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import RedisCommand
from workstealing.queue.upkeep_calls import unpark
from workstealing.queue.worker_calls import Exchanged
from workstealing.tasks.attempt import Delivery, Ending
from workstealing.telemetry.task_events import TasksStolen
from workstealing.telemetry.task_observers import TaskObservers
from workstealing.workers.batching import BATCH_SECONDS
from workstealing.workers.exchanges import Exchanges
from workstealing.workers.handing_back import HandingBack
from workstealing.workers.identity import (
    NameTaken,
    Phase,
    UntilEmpty,
    WorkerIdentity,
)
from workstealing.workers.in_flight import InFlight
from workstealing.workers.lease import Lease
from workstealing.workers.minute_recorder import MinuteRecorder
from workstealing.workers.outposts import Outposts
from workstealing.workers.shard_moves import ShardMoves
from workstealing.workers.shard_rounds import ShardRounds
from workstealing.workers.slots import Slots, abandon_running
from workstealing.workers.upkeep import tell_rescued, upkeep
from workstealing.workers.worker_stats import LoopStats

__all__ = (
    "WorkerLoop",
    "rest_seconds",
)

logger = BackgroundLogger(__name__)

# How long to rest if nothing is known to be due, and if something is, or may be.
_REST_SECONDS = 5.0
_SHORT_REST = 1.0
_QUIET_REST = 0.5
_THEFT_PAUSE = 0.02
_HURRIED_REST = 0.1
# To Redis, a timeout of 0 means to wait for ever.
_SHORTEST_REST = 0.001
_FIRST_PAUSE = 0.1
# A worker is to be back within five seconds of a server that takes writes.
_LONGEST_PAUSE = 4.0
# A worker that takes no more tasks may still be given some, by others' upkeep.
_HAND_BACK_SECONDS = 1.0
_UNPARK_BATCH = 500
_LOCK_SECONDS = 1.0
# Failures in a row after which a worker tries another shard.
_PATIENCE = 3


class WorkerLoop:
    """Works for one worker, from joining to leaving.

    Args:
        identity: which worker.
        driver: the loop's own connection; no other thread uses it.
        shared_driver: for the heartbeat, and for a process that ends.
        in_flight: what the worker holds.
        slots: where tasks run.
        lease: is told of each renewal.
        schedules: those of the queue; it declares them, and fires what is due.
        idle: what to do with a spare moment before a rest.
        is_supervised: returns whether the supervisor still answers.
        check_descriptors: raises if the worker's open files are no longer its own.
        until_empty: when to end without being asked to.
        may_end: is told whether nothing is left, and returns whether to end then.
        rest: seconds to wait for a wake-up before it looks again.
        may_repeat: whether the client repeats commands on its own, so that replies may
            get lost without a failure.
        chance: jitter for pauses.
        clock: how long Redis has been away.
        observers: are told of thefts, parked tasks and lost leases, if there are any.
        minutes: counts what ended, for people who look; not at all by default.
        sleep: waits.
    """

    def __init__(
        self,
        identity: WorkerIdentity,
        driver: DedicatedDriver,
        shared_driver: Driver,
        in_flight: InFlight,
        slots: Slots,
        lease: Lease,
        schedules: QueueSchedules,
        *,
        idle: Callable[[], object],
        is_supervised: Callable[[], bool],
        check_descriptors: Callable[[], object] = lambda: None,
        until_empty: UntilEmpty,
        may_end: Callable[[bool], bool] = bool,
        rest: float,
        may_repeat: bool = True,
        chance: Chance,
        clock: Clock,
        observers: TaskObservers | None = None,
        minutes: MinuteRecorder | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._identity = identity
        self._driver = driver
        self._shared_driver = shared_driver
        self._in_flight = in_flight
        self._slots = slots
        self._lease = lease
        self._schedules = schedules
        self._idle = idle
        self._is_supervised = is_supervised
        self._check_descriptors = check_descriptors
        self._until_empty = until_empty
        self._may_end = may_end
        # Nobody renews the lease while the loop waits for a wake-up.
        rest = min(rest, lease.seconds / 3)
        self._rest_seconds = min(rest, _HURRIED_REST) if until_empty else rest
        self._waits_for: RedisCommand[Any] | None = None
        self._chance = chance
        self._clock = clock
        self._observers = observers
        self._sleep = sleep
        self._speaking = Lock()
        self._rests_in_a_row = 0
        self._is_resting = False
        self._is_roused = False
        self._held_back = 0
        self._failures_in_a_row = 0
        self._hand_back_at = -math.inf
        self._read_ahead: Exchanged | None = None
        self._owed: Exchanged | None = None
        self.stats = LoopStats()
        self._exchanges = Exchanges(
            identity,
            driver,
            in_flight,
            slots,
            lease,
            self.stats,
            may_repeat=may_repeat,
            clock=clock,
            observers=observers,
            minutes=minutes,
        )
        self._handing_back = HandingBack(identity, in_flight, observers)
        self._has_settled = self._has_prepared = False
        self._phase = Phase.WORKING
        self.is_empty = False
        """Whether it ends because nothing is left that it should wait for."""

    def run(self) -> None:
        """Join, work until the end, hand back, leave."""
        while not self._is_over():
            try:
                if not self._exchanges.is_member:
                    self._join()
                if self._is_hand_back_due():
                    self._handing_back.all_waiting(self._driver, final=False)
                self._turn()
                if self._failures_in_a_row:
                    self._failures_in_a_row = 0
                    self._exchanges.note_recovery()
                self._is_roused = False
            except ServerTooOld:
                raise
            except RedisError as error:
                if self._is_roused:
                    self._is_roused = False
                    self._in_flight.doubt()
                else:
                    self._pause(error)
                    self._escape()
        if self._exchanges.is_member:
            self.leave()
        elif self._identity.shards.are_several:
            self._moves.outposts.leave(self._driver)

    @property
    def phase(self) -> Phase:
        """How far along the worker is."""
        return self._phase

    def enter(self, phase: Phase) -> None:
        """Go on to a later phase, in which no task begins; from any thread."""
        self._in_flight.close()
        self._phase = max(self._phase, phase)
        self._slots.stop_listening()

    def leave(self) -> None:
        """Report what is finished and hand back the rest, as well as possible."""
        self._leave(self._driver)

    def abandon(self, delivery: Delivery | None, ending: Ending) -> None:
        """Report on a task that cannot be stopped, and leave, as well as possible.

        For a process that ends right afterwards; from another thread.
        """
        if delivery is not None:
            self._in_flight.finish(delivery, ending, 0.0)
        self._leave(self._shared_driver)

    def heartbeat(self) -> None:
        """Do what cannot wait while the loop's own thread runs a task.

        Deliver reports, renew the lease, and put tasks that wait behind a long one back
        into the deque, where thieves reach them.
        """
        if not self._speaking.acquire(blocking=False):
            self._rouse()
            return
        try:
            if self._exchanges.is_member:
                self._beat(self._shared_driver)
        finally:
            self._speaking.release()

    def _beat(self, driver: Driver) -> None:
        exchanges, in_flight = self._exchanges, self._in_flight
        is_silent = self._lease.silence >= self._lease.renew_seconds
        is_handing_back = self._is_hand_back_due()
        seconds = exchanges.seconds_under_way
        if seconds is not None and (
            is_silent or is_handing_back or seconds >= BATCH_SECONDS
        ):
            late = exchanges.read_reply()
            if late is None:
                return
            self._do_duties(driver, late)
        stuck = in_flight.release_if_stuck()
        if stuck or in_flight.is_report_overdue() or is_silent:
            exchanged = exchanges.exchange(driver, want=0, keep=0)
            self._handing_back.release(driver, stuck)
            if exchanged is not None:
                self._do_duties(driver, exchanged)
        if exchanges.is_member and is_handing_back:
            self._handing_back.all_waiting(driver, final=False)

    def _rouse(self) -> None:
        """Have the loop look at the phase, if it waits for a wake-up."""
        if self._is_resting and self._phase is not Phase.WORKING:
            self._is_roused = True
            self._driver.interrupt()

    def _leave(self, driver: Driver) -> None:
        # Not for ever: the other thread may be waiting for a server that hangs.
        has_lock = self._speaking.acquire(timeout=_LOCK_SECONDS)
        try:
            self._leave_shard(driver)
            if self._identity.shards.are_several:
                # Even if this shard cannot be reached: the others may be.
                self._moves.outposts.leave(driver)
        finally:
            self._exchanges.note_left()
            if has_lock:
                self._speaking.release()

    def _leave_shard(self, driver: Driver) -> None:
        try:
            abandon_running(self._slots)
            self._exchanges.exchange(driver, want=0, keep=0)
            self._handing_back.all_waiting(driver, final=True)
            self._exchanges.record_minutes(driver, is_last=True)
        except RedisError as error:
            logger.warning(
                "worker %s could not hand back its tasks, which others take over when"
                " its lease ends: %s",
                self._identity.name,
                error,
            )

    def _is_over(self) -> bool:
        if not self._is_supervised():
            raise PoolBroken(
                f"the supervisor of worker {self._identity.name} does not answer, so"
                " the worker ends; other workers take over its tasks"
            )
        self._check_descriptors()
        phase = self._phase
        if phase is Phase.STOPPING:
            return not self._in_flight.is_busy()
        return self.is_empty or phase is Phase.ENDING

    def _join(self) -> None:
        identity, call = self._identity, self._driver.call
        if not self._has_settled:
            self._driver.run(identity.shards.known())
            if identity.shards.are_several:
                self._moves.settle()
            self._has_settled = True
        rescued = call(
            worker_calls.join(
                identity.keys,
                identity.settings,
                identity.name,
                identity.incarnation,
                identity.description,
                comes_back=self._has_prepared,
            )
        )
        if rescued.returned < 0:
            raise NameTaken(identity.name)
        if rescued.returned > 0:
            why = "another took its name"
            tell_rescued(self._observers, identity.name, rescued, why)
        abilities: Sequence[str] = identity.abilities
        comes_and_goes = identity.shards.are_several and self._has_prepared
        if comes_and_goes:
            abilities = self._moves.rounds.parked_in(identity.keys.shard)
        for ability in abilities:
            unparked = _UNPARK_BATCH
            while unparked >= _UNPARK_BATCH:
                unparked = call(unpark(identity.keys, ability, most=_UNPARK_BATCH))
        if self._schedules.has_code and not comes_and_goes:
            self._driver.run(self._schedules.declare())
        self._exchanges.note_joined()
        self._has_prepared = True

    def _turn(self) -> None:
        """Exchange once, and do what comes of it."""
        in_flight, driver, phase = self._in_flight, self._driver, self._phase
        has_shards = self._identity.shards.are_several
        if has_shards:
            self._moves.outposts.tend(driver)
        exchanged, self._read_ahead = self._read_ahead, None
        if exchanged is None:
            exchanged = self._exchange()
        if exchanged is None:
            return
        owed, self._owed = self._owed, None
        has_worked = owed is not None and self._do_duties(driver, owed) > 0
        has_stolen = phase is Phase.WORKING and self._steal(exchanged) > 0
        is_fed = has_stolen or bool(exchanged.tasks)
        is_busy = in_flight.is_busy()
        is_short = not is_fed and (in_flight.is_waiting_for_tasks() or not is_busy)
        if has_shards and not is_short:
            self._moves.rounds.note_work()
            if self._moves.rounds.is_due and self._goes_elsewhere(is_idle=False):
                return
        if is_fed or in_flight.has_reports():
            # A caller may be waiting for these results; upkeep can wait.
            self._owed = exchanged
        elif self._do_duties(driver, exchanged):
            has_worked = True
        if has_stolen:
            has_worked = True
        elif is_busy:
            is_due = has_shards and is_short and self._moves.rounds.is_due_if_idle
            if is_due and self._goes_elsewhere(is_idle=True):
                return
            # What was fired just now may be for a slot that is free.
            seconds = 0.0 if has_worked else self._seconds_to_work(exchanged)
            self._work(seconds, is_short=is_short)
            has_worked = True
            if self._exchanges.is_member:
                if in_flight.has_unroutable():
                    self._handing_back.route_unknown(driver)
                if stuck := in_flight.release_if_stuck():
                    self._handing_back.release(driver, stuck)
        # While paused tasks are put aside, there may be others behind them.
        is_sorting = exchanged.held_back > self._held_back
        self._held_back = exchanged.held_back
        if has_worked or is_sorting:
            self._rests_in_a_row = 0
        elif self._phase is phase:
            is_due = has_shards and (
                self._moves.rounds.is_due_if_idle or bool(self._until_empty)
            )
            if not is_due or not self._goes_elsewhere(is_idle=True):
                self._rest(exchanged)

    def _exchange(self) -> Exchanged | None:
        in_flight = self._in_flight
        want = in_flight.room() if self._is_open() else 0
        after, self._waits_for = self._waits_for, None
        with self._speaking:
            self._is_resting = after is not None
            try:
                return self._exchanges.exchange(
                    self._driver,
                    want=want,
                    keep=in_flight.keep(),
                    # An exchange that follows a rest is sent before it.
                    rests=self._rests_in_a_row > 1,
                    after=after,
                )
            finally:
                self._is_resting = False

    def _seconds_to_work(self, exchanged: Exchanged) -> float:
        """Return for how long tasks may run before it looks what is due."""
        if self._owed is not None and self._owed.due_schedules:
            return 0.0
        if exchanged.next_in_ms < 0:
            return math.inf
        return exchanged.next_in_ms / 1000

    def _work(self, seconds: float, *, is_short: bool) -> None:
        """Have tasks run, with the next exchange under way if that is worth it.

        A wait for them ends after *seconds* at the latest.
        """
        in_flight, exchanges = self._in_flight, self._exchanges
        ahead = in_flight.room_ahead() if self._is_open() else 0
        if not ahead:
            if self._identity.shards.are_several:
                look_in = self._moves.rounds.seconds_to_look(is_idle=is_short)
                seconds = min(seconds, look_in)
            self._slots.work(seconds)
            return
        with self._speaking:
            exchanges.send_ahead(ahead, in_flight.keep())
        self._slots.work()
        self._check_descriptors()
        with self._speaking:
            # Unless the heartbeat has read it, because a task took long.
            if exchanges.seconds_under_way is not None:
                self._read_ahead = exchanges.read_reply()

    def _is_open(self) -> bool:
        """Return whether it is to take tasks."""
        return self._phase is Phase.WORKING and not self._exchanges.is_unreplicated

    def _steal(self, exchanged: Exchanged) -> int:
        identity = self._identity
        victim = worker_calls.choose_victim(exchanged.victims, identity.name)
        if victim is None:
            return 0
        stolen = self._driver.call(
            worker_calls.steal(identity.keys, victim, identity.name)
        )
        self.stats.stolen += stolen
        if stolen and self._observers is not None:
            queue = self._observers.queue
            self._observers.emit(TasksStolen(queue, identity.name, victim, stolen))
        return stolen

    def _is_hand_back_due(self) -> bool:
        now = self._clock.monotonic()
        if self._phase < Phase.QUIET or now < self._hand_back_at:
            return False
        self._hand_back_at = now + _HAND_BACK_SECONDS
        return True

    def _do_duties(self, driver: Driver, exchanged: Exchanged) -> int:
        """Record what ended, and do what is due; return how many ticks were fired."""
        self._exchanges.record_minutes(driver)
        if self._schedules.has_code:
            self._renew_release(driver)
        return self._do_duties_of(driver, self._identity.keys, exchanged)

    def _renew_release(self, driver: Driver) -> None:
        """Say now and then that the release of this code is at work."""
        schedules, now = self._schedules, self._clock.monotonic()
        if not schedules.is_renewal_due(now):
            return
        try:
            driver.run(schedules.renew(now))
        except RedisError as error:
            # Schedules are in the first shard, and the node of this one may be there.
            logger.debug(
                "worker %s could not say that its release is at work: %r",
                self._identity.name,
                error,
            )

    def _do_duties_of(
        self, driver: Driver, keys: QueueKeys, exchanged: Exchanged
    ) -> int:
        """Do what is due for a whole shard; return how many ticks were fired."""
        identity, fired = self._identity, 0
        if exchanged.due_schedules:
            fired = driver.run(self._schedules.fire_due())
        if exchanged.is_overdue:
            flow = upkeep(
                keys, identity.settings, "worker", self._schedules, self._observers
            )
            driver.run(flow)
            # Shards may have been added.
            driver.run(identity.shards.known())
        return fired

    def _rest(self, exchanged: Exchanged) -> None:
        """Wait for a wake-up, unless it ends because nothing is left."""
        if self._until_empty and self._may_end(self._has_emptied_queue(exchanged)):
            self.is_empty = True
            return
        self._do_side_work()
        seconds = self._seconds_to_rest(exchanged)
        self._rests_in_a_row += 1
        waits_for = self._slots.rest(seconds)
        if waits_for is None or self._phase is Phase.WORKING:
            self._waits_for = waits_for
        else:
            # Wake-ups are for workers that take tasks.
            self._sleep(min(seconds, _QUIET_REST))

    def _has_emptied_queue(self, exchanged: Exchanged) -> bool:
        """Return whether nothing is left, in any shard, that it should wait for."""
        is_all = self._until_empty == "all"
        left = exchanged.unfinished if is_all else exchanged.runnable
        if left > 0 or not self._identity.shards.are_several:
            return left <= 0
        return self._driver.run(self._moves.rounds.are_empty(is_all=is_all))

    def _do_side_work(self) -> None:
        try:
            self._idle()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - it is the user's
            logger.error(
                "side work of worker %s failed", self._identity.name, error=error
            )

    def _seconds_to_rest(self, exchanged: Exchanged) -> float:
        """Return how long to wait for a wake-up after it has found nothing to do."""
        identity, seconds = self._identity, self._rest_seconds
        if identity.shards.are_several:
            seconds = min(seconds, self._moves.rounds.rest_seconds)
        if worker_calls.choose_victim(exchanged.victims, identity.name) is not None:
            # Another thief was quicker, or this worker can run none of these tasks.
            pause = _THEFT_PAUSE * 2.0 ** min(self._rests_in_a_row, 10)
            seconds = min(seconds, _SHORT_REST, pause)
        if exchanged.next_in_ms >= 0:
            next_in = max(_SHORTEST_REST, exchanged.next_in_ms / 1000)
            seconds = min(seconds, _SHORT_REST, next_in)
        elif not self._rests_in_a_row or self._phase is not Phase.WORKING:
            # A worker that takes no more tasks hands back what it is still given.
            seconds = min(seconds, _SHORT_REST)
        return seconds

    def _goes_elsewhere(self, *, is_idle: bool) -> bool:
        """Go to another shard if that is worth it."""
        looks_at_all = is_idle and bool(self._until_empty)
        return self._is_open() and self._moves.go_elsewhere(
            is_idle=is_idle, looks_at_all=looks_at_all
        )

    def _escape(self) -> None:
        """Go to another shard if this one cannot be reached, and others can."""
        has_shards = self._identity.shards.are_several
        if not has_shards or self._failures_in_a_row < _PATIENCE:
            return
        shard = self._moves.find_refuge()
        if shard is not None and self._is_open():
            self._moves.escape_to(shard)
            self._read_ahead = self._waits_for = None

    @cached_property
    def _moves(self) -> ShardMoves:
        # Made when the queue turns out to have several shards: most have one.
        identity, in_flight, clock = self._identity, self._in_flight, self._clock
        return ShardMoves(
            identity,
            self._driver,
            in_flight,
            self._slots,
            self._exchanges,
            self._handing_back,
            Outposts(
                identity,
                in_flight,
                self._slots,
                self._lease,
                self.stats,
                clock,
                self._do_duties_of,
            ),
            ShardRounds(
                identity, self._schedules, self._chance, clock, self._observers
            ),
            self._speaking,
        )

    def _pause(self, error: RedisError) -> None:
        self._in_flight.doubt()
        self._exchanges.count_failure(
            "worker %s cannot reach Redis, retrying: %s", error
        )
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**self._failures_in_a_row)
        self._failures_in_a_row = min(self._failures_in_a_row + 1, 10)
        self._sleep(longest * (0.5 + 0.5 * self._chance.random()))


def rest_seconds(driver: Driver, *, has_side_work: bool = False) -> float:
    """Return how long a worker waits for a wake-up before it looks again.

    A worker that *has side work* does some of it before each rest.
    """
    if is_plain(driver.client):
        return _SHORT_REST if has_side_work else _REST_SECONDS
    # This client may give up earlier than that, and take every rest for a failure. A
    # connection of the worker's own knows which commands block, and can be interrupted.
    timeout = timeout_of(driver.client)
    return _SHORT_REST if not timeout else min(_SHORT_REST, timeout / 2)
