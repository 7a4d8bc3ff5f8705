"""Shards in which a worker has tasks that still run, after it went on to another one.

A pool with free slots does not wait for a long task to end before it looks for work
elsewhere. It stays a member of the shard that the task is from, renews its lease there,
hears of cancellations, delivers the report, and leaves. It takes no tasks there, but
does its share of upkeep: it may be the only member.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import RedisError
from workstealing.queue import worker_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.worker_calls import Exchanged
from workstealing.tasks.attempt import Report
from workstealing.tasks.context import control_of
from workstealing.workers.handing_back import hand_back_all
from workstealing.workers.identity import WorkerIdentity
from workstealing.workers.in_flight import InFlight
from workstealing.workers.lease import Lease
from workstealing.workers.slots import Slots
from workstealing.workers.worker_stats import LoopStats

__all__ = ("Outposts",)

logger = BackgroundLogger(__name__)

# How soon a shard that could not be reached is tried again.
_AWAY_SECONDS = 5.0


class Outposts:
    """The shards that a worker has left tasks behind in.

    Args:
        identity: which worker.
        in_flight: what it holds.
        slots: where its tasks run.
        lease: how often one is renewed.
        stats: what is counted.
        clock: when one was renewed.
        do_duties: does what an exchange has found to be due for the whole shard.
    """

    def __init__(
        self,
        identity: WorkerIdentity,
        in_flight: InFlight,
        slots: Slots,
        lease: Lease,
        stats: LoopStats,
        clock: Clock,
        do_duties: Callable[[Driver, QueueKeys, Exchanged], object],
    ) -> None:
        self._identity = identity
        self._in_flight = in_flight
        self._slots = slots
        self._lease = lease
        self._stats = stats
        self._clock = clock
        self._do_duties = do_duties
        self._all: dict[int, _Outpost] = {}

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._all)

    def has(self, shard: int) -> bool:
        """Return whether tasks were left behind in a shard."""
        return shard in self._all

    def leave_behind(self, keys: QueueKeys, *, is_unsure: bool) -> None:
        """Look after running tasks of a shard that the worker goes away from.

        If the worker is *unsure* which tasks Redis has given it, that is cleared up as
        soon as the shard can be reached, even if no task runs.
        """
        held = self._in_flight.leave_behind()
        if held or is_unsure:
            now = self._clock.monotonic()
            self._all[keys.shard] = _Outpost(keys, held, now, is_unsure=is_unsure)

    def come_back(self, shard: int) -> None:
        """Hold tasks again that were left behind in the shard the worker goes to."""
        self._sort(self._in_flight.take_late())
        post = self._all.pop(shard, None)
        if post is not None:
            self._in_flight.come_back(post.held, post.reports, doubts=post.is_unsure)

    def tend(self, driver: Driver) -> None:
        """Deliver reports, renew leases and do upkeep, wherever that is due."""
        self._sort(self._in_flight.take_late())
        now = self._clock.monotonic()
        for post in tuple(self._all.values()):
            is_silent = now - post.renewed_at >= self._lease.renew_seconds
            if now >= post.not_before and (post.reports or is_silent):
                exchanged = self._exchange(driver, post)
                if exchanged is not None:
                    self._do_upkeep(driver, post, exchanged)

    def leave(self, driver: Driver) -> None:
        """Deliver what is finished, and hand back what still runs."""
        self._sort(self._in_flight.take_late())
        for post in tuple(self._all.values()):
            self._exchange(driver, post)
            if post.keys.shard in self._all:
                self._go(driver, post)

    def _sort(self, reports: list[Report]) -> None:
        for report in reports:
            for post in self._all.values():
                if post.held.get(report.id) == report.token:
                    post.reports.append(report)

    def _exchange(self, driver: Driver, post: _Outpost) -> Exchanged | None:
        """Report and renew the lease; None if that failed or the lease was lost."""
        identity, now = self._identity, self._clock.monotonic()
        reports, post.reports = post.reports, []
        self._stats.exchanges += 1
        reported = {report.id for report in reports}
        call = worker_calls.exchange(
            post.keys,
            identity.settings,
            identity.name,
            identity.incarnation,
            want=0,
            keep=0,
            reports=reports,
            held=[one for one in post.held if one not in reported]
            if post.is_unsure
            else None,
        )
        try:
            exchanged = driver.call(call)
        except RedisError as error:
            post.reports = reports + post.reports
            # A node that hangs has taken as long: do not wait for it in each turn.
            now = self._clock.monotonic()
            post.is_unsure, post.not_before = True, now + _AWAY_SECONDS
            self._stats.failures += 1
            logger.debug(
                "worker %s cannot reach shard %d: %r",
                identity.name,
                post.keys.shard,
                error,
            )
            if now - post.renewed_at >= self._lease.seconds:
                self._tell(post, is_lost=True)
            return None
        post.is_unsure, post.renewed_at = False, now
        for report in reports:
            del post.held[report.id]
        self._in_flight.delivered_late(reports)
        if exchanged is None:
            self._stats.lost_leases += 1
            logger.warning(
                "worker %s lost its lease in shard %d, and the tasks that it ran there"
                " to other workers",
                identity.name,
                post.keys.shard,
            )
            self._tell(post, is_lost=True)
            self._forget(post)
            return None
        self._stats.refused += len(exchanged.refused)
        if exchanged.cancelled:
            self._tell(post, cancelled=exchanged.cancelled)
        for task_id, token in tuple(post.held.items()):
            # Some end without a report, because another worker has them.
            if not self._in_flight.is_behind(task_id, token):
                del post.held[task_id]
        if not post.held:
            self._go(driver, post)
        return exchanged

    def _do_upkeep(self, driver: Driver, post: _Outpost, exchanged: Exchanged) -> None:
        """Do upkeep if the exchange has claimed it for this worker."""
        try:
            self._do_duties(driver, post.keys, exchanged)
        except RedisError as error:
            logger.debug(
                "worker %s could not do the upkeep of shard %d: %r",
                self._identity.name,
                post.keys.shard,
                error,
            )

    def _go(self, driver: Driver, post: _Outpost) -> None:
        """Leave the shard for good; tasks that still run go back to the queue."""
        identity = self._identity
        self._forget(post)
        try:
            hand_back_all(
                driver, post.keys, identity.name, identity.incarnation, final=True
            )
        except RedisError as error:
            logger.debug(
                "worker %s stays in shard %d until its lease ends: %r",
                identity.name,
                post.keys.shard,
                error,
            )

    def _forget(self, post: _Outpost) -> None:
        del self._all[post.keys.shard]
        self._in_flight.give_up_behind(post.held)

    def _tell(
        self, post: _Outpost, cancelled: tuple[str, ...] = (), *, is_lost: bool = False
    ) -> None:
        """Tell tasks that they are to stop, or that other workers have them."""
        for slot in self._slots.all():
            attempt = slot.attempt
            if attempt is None or attempt.task.shard != post.keys.shard:
                continue
            control = control_of(attempt.context)
            control.is_lease_lost |= is_lost and attempt.task.id in post.held
            control.is_cancelled |= attempt.task.id in cancelled


@dataclass(slots=True)
class _Outpost:
    keys: QueueKeys
    held: dict[str, str]
    """Ids and tokens of tasks that still run, or are not reported yet."""
    renewed_at: float
    is_unsure: bool
    """Whether Redis may take more tasks than `held` for this worker's."""
    reports: list[Report] = field(default_factory=list)
    not_before: float = -math.inf
