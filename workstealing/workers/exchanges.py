"""The exchanges of a worker with Redis: reports out, tasks and cancellations in.

One exchange may be under way while tasks run: it is sent, the batch in hand is run
while Redis works on it, and its reply is read afterwards. The next call for the worker
reads that reply first. Otherwise the worker would name the tasks that it holds without
those that are still on their way, and Redis would take them back.

Two threads may speak, the loop's own and the heartbeat; a lock of theirs keeps them
from doing so at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.drivers.sync_driver import DedicatedDriver, Driver
from workstealing.errors import NotReplicated, RedisError
from workstealing.queue import worker_calls
from workstealing.queue.pause_calls import Pauses
from workstealing.queue.steps import Call, RedisCommand
from workstealing.queue.worker_calls import Exchanged
from workstealing.tasks.attempt import Report
from workstealing.tasks.context import control_of
from workstealing.telemetry.task_events import LeaseLost
from workstealing.telemetry.task_observers import TaskObservers
from workstealing.workers.identity import WorkerIdentity
from workstealing.workers.in_flight import InFlight
from workstealing.workers.lease import Lease
from workstealing.workers.minute_recorder import MinuteRecorder
from workstealing.workers.slots import Slots, tell_lease_lost
from workstealing.workers.upkeep import tell_given_up
from workstealing.workers.worker_stats import LoopStats

__all__ = ("Exchanges",)

logger = BackgroundLogger(__name__)

_LOG_SECONDS = 60.0


class Exchanges:
    """What one worker says to Redis about its tasks, and what it learns.

    Args:
        identity: which worker.
        driver: the connection on which an exchange may be under way.
        in_flight: what the worker holds.
        slots: where tasks run.
        lease: is told of each renewal.
        stats: what is counted.
        may_repeat: whether the client repeats commands on its own, so that replies may
            get lost without a failure.
        clock: when it was sent.
        observers: are told of a lost lease, if there are any.
        minutes: counts what ended, for people who look; not at all by default.
    """

    def __init__(
        self,
        identity: WorkerIdentity,
        driver: DedicatedDriver,
        in_flight: InFlight,
        slots: Slots,
        lease: Lease,
        stats: LoopStats,
        *,
        may_repeat: bool,
        clock: Clock,
        observers: TaskObservers | None,
        minutes: MinuteRecorder | None,
    ) -> None:
        self._identity = identity
        self._driver = driver
        self._in_flight = in_flight
        self._slots = slots
        self._lease = lease
        self._stats = stats
        self._may_repeat = may_repeat
        self._clock = clock
        self._observers = observers
        self._minutes = minutes
        self._under_way: _PendingExchange | None = None
        self._pauses = Pauses()
        self._logged_at = -math.inf
        self._is_away = False
        self._is_member = False
        self.is_unreplicated = False
        """Whether replicas lack what it reported, so that it takes nothing more."""

    @property
    def is_member(self) -> bool:
        """Whether the worker has joined, and neither left nor lost its lease since."""
        return self._is_member

    def note_joined(self) -> None:
        """Note that the worker is a member of its shard now."""
        self._is_member = True

    def note_left(self) -> None:
        """Note that it is no member any longer."""
        self._is_member = False

    def exchange(
        self,
        driver: Driver,
        *,
        want: int,
        keep: int,
        rests: bool = False,
        after: RedisCommand[Any] | None = None,
    ) -> Exchanged | None:
        """Report, renew the lease and take tasks; None if the lease was lost.

        A worker that *rests* renews it, however recently it did.
        """
        if self._under_way is not None and self.read_reply() is None:
            return None
        pending = self._prepare(want, keep, rests=rests, after=after)
        return self._perform(pending, driver)

    def send_ahead(self, want: int, keep: int) -> None:
        """Send an exchange, whose reply is read when the tasks in hand have run."""
        pending = self._prepare(want, keep)
        try:
            self._under_way = pending
            self._driver.send(pending.call)
        except BaseException:
            self._under_way = None
            self._in_flight.keep_reports(pending.reports)
            raise

    @property
    def seconds_under_way(self) -> float | None:
        """For how long an exchange has been under way; None if none is."""
        pending = self._under_way
        return None if pending is None else self._clock.monotonic() - pending.at

    def read_reply(self) -> Exchanged | None:
        """Read the reply to the exchange under way; None if the lease was lost."""
        assert self._under_way is not None, "no exchange is under way"
        try:
            return self._perform(self._under_way, self._driver)
        finally:
            self._under_way = None

    def record_minutes(self, driver: Driver, *, is_last: bool = False) -> None:
        """Count what ended, every few seconds and before the worker leaves."""
        if self._minutes is not None:
            self._minutes.record(driver, is_last=is_last)

    def note_recovery(self) -> None:
        """Log that Redis carries out calls again, if it was logged that it did not."""
        if self._is_away:
            self._is_away = False
            logger.info("worker %s reaches Redis again", self._identity.name)

    def count_failure(self, sentence: str, error: RedisError) -> None:
        """Count a call that Redis did not carry out, and log some of them."""
        self._stats.failures += 1
        now = self._clock.monotonic()
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at, self._is_away = now, True
            logger.warning(sentence, self._identity.name, error)

    def _prepare(
        self,
        want: int,
        keep: int,
        *,
        rests: bool = False,
        after: RedisCommand[Any] | None = None,
    ) -> _PendingExchange:
        identity, in_flight = self._identity, self._in_flight
        reports = in_flight.take_reports()
        renews = self._lease.is_worth_renewing or rests
        self._stats.exchanges += 1
        call = worker_calls.exchange(
            identity.keys,
            identity.settings,
            identity.name,
            identity.incarnation,
            want=want,
            keep=keep,
            reports=reports,
            held=in_flight.held_besides(
                reports, is_occasion=renews and self._may_repeat
            ),
            renews=renews,
            after=after,
        )
        return _PendingExchange(call, reports, renews, self._clock.monotonic())

    def _perform(self, pending: _PendingExchange, driver: Driver) -> Exchanged | None:
        identity, in_flight, stats = self._identity, self._in_flight, self._stats
        reports, is_ahead = pending.reports, pending is self._under_way
        try:
            exchanged = driver.call(pending.call)
        except NotReplicated as error:
            exchanged = cast("Exchanged | None", error.answer)
            self._report_again(reports, error)
        except BaseException:
            # Redis may have them or not. If the worker was interrupted here, it
            # reports them as it leaves.
            in_flight.keep_reports(reports)
            raise
        else:
            in_flight.delivered(reports)
            stats.ended += len(reports)
            self.is_unreplicated &= not reports
        if exchanged is None:
            self._lose_lease()
            return None
        if exchanged.refused:
            stats.refused += len(exchanged.refused)
            logger.warning(
                "worker %s reported too late: tasks %s now belong to other workers",
                identity.name,
                ", ".join(exchanged.refused),
            )
        if exchanged.given_up:
            tell_given_up(self._observers, identity.name, exchanged.given_up)
        if pending.renews:
            # A task may have delayed the reading of the reply for long.
            self._lease.renewed(pending.at if is_ahead else None)
            if self._minutes is not None:
                self._minutes.sample_waits(exchanged.tasks, exchanged.now_ms)
        stats.taken += len(exchanged.tasks)
        if exchanged.unfinished >= 0:
            stats.due = exchanged.runnable
        self._tell_pauses(exchanged.pauses)
        self._take(exchanged)
        return exchanged

    def _report_again(self, reports: Sequence[Report], error: NotReplicated) -> None:
        """Keep reports that a failover could undo, and take no more tasks meanwhile.

        The server has these reports, and ignores them if they come again. A replica
        that follows it without them accepts them, if it knows that the worker holds the
        tasks.
        """
        self._in_flight.keep_reports(reports)
        self.is_unreplicated = True
        self.count_failure(
            "worker %s takes no more tasks until replicas have what it reported: %s",
            error,
        )

    def _take(self, exchanged: Exchanged) -> None:
        fed = self._in_flight.take(exchanged.tasks, exchanged.cancelled)
        if fed:
            self._slots.wake(fed)
        if exchanged.cancelled:
            for slot in self._slots.all():
                attempt = slot.attempt
                if attempt is not None and attempt.task.id in exchanged.cancelled:
                    control_of(attempt.context).is_cancelled = True

    def _lose_lease(self) -> None:
        was_member, self._is_member = self._is_member, False
        self._in_flight.drop_all()
        # There is no report left that a replica could confirm.
        self.is_unreplicated = False
        tell_lease_lost(self._slots)
        if not was_member:
            # It was lost before, and the worker leaves without having joined again.
            return
        silence = self._lease.silence
        self._stats.lost_leases += 1
        logger.warning(
            "worker %s lost its lease of %g s, and its tasks to other workers, after"
            " %.1f s of silence; it joins again. If Redis could be reached, a task held"
            " the interpreter (the GIL) or the machine was suspended",
            self._identity.name,
            self._lease.seconds,
            silence,
        )
        if self._observers is not None:
            queue = self._observers.queue
            self._observers.emit(LeaseLost(queue, self._identity.name, silence))

    def _tell_pauses(self, pauses: Pauses) -> None:
        if pauses != self._pauses:
            self._pauses = pauses
            text = "; ".join(pauses.sentences()) or "nothing is paused any more"
            logger.info("worker %s: %s", self._identity.name, text)


@dataclass(frozen=True, slots=True)
class _PendingExchange:
    """An exchange that is sent, or about to be, and what its reply is read with."""

    call: Call[Exchanged | None]
    reports: list[Report]
    renews: bool
    at: float
    """When it was made."""
