"""Beats beside the work: a task that computes for minutes does not lose its lease.

When one task runs long it also reports what was finished before it, and puts down what
was taken but not begun, so that thieves reach it. It tells a running task that it is
cancelled or not its own any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Event, Thread

from workstealing.clock import Clock
from workstealing.drivers.sync import Driver
from workstealing.errors import RedisError
from workstealing.queue.consuming import Report, Taken, exchange, release
from workstealing.queue.presence import beat, leave
from workstealing.workers.hands import Hands
from workstealing.workers.lifecycle import Phase
from workstealing.workers.member import Member
from workstealing.workers.running import Runner
from workstealing.workers.upkeep import upkeep

__all__ = ("Heart",)

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.05
# A beat also brings cancellations, which nobody should await for as long as a death.
_LONGEST_SILENCE = 1.0


class Heart:
    """A daemon thread for the time that a worker runs."""

    def __init__(
        self,
        driver: Driver,
        member: Member,
        hands: Hands,
        runner: Runner,
        phase: Callable[[], Phase],
        clock: Clock,
    ) -> None:
        self._driver = driver
        self._member = member
        self._hands = hands
        self._runner = runner
        self._phase = phase
        self._clock = clock
        self._lease = member.settings.lease_ms / 1000
        self._beat_at = clock.monotonic()
        self._stopping = Event()
        self._thread = Thread(target=self._live, name="workstealing-heart", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stopping.set()
        self._thread.join()

    def renewed(self) -> None:
        """Be told that the lease was renewed otherwise."""
        self._beat_at = self._clock.monotonic()

    def _live(self) -> None:
        begun, has_handed_back = self._hands.begun, False
        tick = min(_TICK_SECONDS, self._lease / 3)
        while not self._stopping.wait(tick):
            try:
                is_long = self._runner.attempt is not None
                if is_long and self._hands.begun == begun:
                    self._empty_hands()
                begun = self._hands.begun
                if is_long and not has_handed_back and self._phase() > Phase.WORKING:
                    has_handed_back = True
                    self._hand_back()
                if self._silence() >= min(_LONGEST_SILENCE, self._lease / 3):
                    self._beat()
            except RedisError as error:
                logger.debug("no heartbeat of %s: %r", self._member.name, error)
                if self._silence() >= self._lease:
                    self._tell_lease_lost()
            except Exception:
                logger.exception(
                    "the heart of %s failed; it goes on", self._member.name
                )

    def _silence(self) -> float:
        return self._clock.monotonic() - self._beat_at

    def _empty_hands(self) -> None:
        if not (self._hands.waiting or self._hands.reports):
            return
        waiting, reports = self._hands.set_aside()
        try:
            if reports:
                self._deliver(reports)
            if waiting:
                self._release(waiting)
        except RedisError:
            # Whether Redis was told is not known; the next exchange clears it up.
            self._hands.keep_reports(reports)
            self._hands.is_unsure = True
            raise
        finally:
            self._hands.set_free()

    def _deliver(self, reports: Sequence[Report]) -> None:
        member = self._member
        exchanged = self._driver.call(
            exchange(
                member.keys,
                member.settings,
                member.name,
                member.incarnation,
                want=0,
                keep=0,
                reports=reports,
            )
        )
        if exchanged is None:
            self._tell_lease_lost()
            return
        self.renewed()
        self._tell_cancelled(exchanged.cancelled)
        if exchanged.is_overdue:
            self._driver.run(upkeep(member.keys, member.settings, "worker"))

    def _hand_back(self) -> None:
        """Let others have the deque while the last task runs."""
        member, left = self._member, 1
        self._empty_hands()
        while left:
            _, left = self._driver.call(
                leave(member.keys, member.name, member.incarnation, final=False)
            )

    def _release(self, waiting: Sequence[Taken]) -> None:
        self._driver.call(release(self._member.keys, self._member.name, waiting))

    def _beat(self) -> None:
        member = self._member
        cancelled = self._driver.call(
            beat(member.keys, member.settings, member.name, member.incarnation)
        )
        self.renewed()
        if cancelled is None:
            self._tell_lease_lost()
        else:
            self._tell_cancelled(cancelled)

    def _tell_lease_lost(self) -> None:
        # What is not begun is another's by now, or will be.
        if self._hands.put_down():
            self._hands.is_unsure = True
        attempt = self._runner.attempt
        if attempt is not None:
            attempt.context.tell_lease_lost()

    def _tell_cancelled(self, cancelled: Sequence[str]) -> None:
        self._hands.cancelled.update(cancelled)
        attempt = self._runner.attempt
        if attempt is not None and attempt.task.id in cancelled:
            attempt.context.tell_cancelled()
