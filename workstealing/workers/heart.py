"""Beats beside the work: a task that computes for minutes does not lose its lease.

When one task runs long it also reports what was finished before it, and puts down what
was taken but not begun, so that thieves reach it. It tells a running task that it is
cancelled or not its own any more.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from threading import Event, Thread

from workstealing.clock import Clock
from workstealing.drivers.sync import Driver
from workstealing.errors import RedisError
from workstealing.queue.consuming import exchange, release
from workstealing.queue.presence import beat, leave
from workstealing.tasks.attempt import Report, Taken
from workstealing.workers.hands import Hands
from workstealing.workers.lifecycle import HAND_BACK_SECONDS, Phase
from workstealing.workers.member import Member
from workstealing.workers.running import Runner
from workstealing.workers.upkeep import upkeep
from workstealing.workers.watchdog import Watchdog

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
        self._watchdog = Watchdog(
            member.name, driver, self._lease, self._tell_lease_lost, clock
        )
        self.renewed = self._watchdog.renewed
        self.also: Callable[[], None] = _nothing
        """What else to do at every tick, whether Redis answers or not."""
        self._tick = min(_TICK_SECONDS, self._lease / 3)
        self._stopping = Event()
        # Two: one that waits for Redis cannot notice that it waits for ever.
        self._threads = (
            Thread(target=self._live, name="workstealing-heart", daemon=True),
            Thread(target=self._watch, name="workstealing-watch", daemon=True),
        )

    @property
    def silence(self) -> float:
        """How many seconds ago Redis answered last."""
        return self._watchdog.silence

    @property
    def begun(self) -> int:
        """How many tasks were ever begun."""
        return self._hands.begun

    def start(self) -> None:
        """Begin to beat."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def cut_off(self, report: Report | None) -> None:
        """Report on what cannot be stopped otherwise, and leave; never at any price.

        For one whose process ends right after it.
        """
        member, hands = self._member, self._hands
        waiting, reports = hands.set_aside()
        try:
            if waiting:
                self._release(waiting)
            self._deliver((*reports, *([report] if report is not None else ())))
            left = 1
            while left:
                left = self._leave(final=True)
        except RedisError as error:
            logger.warning("worker %s could not hand back: %s", member.name, error)

    def _live(self) -> None:
        begun, hand_back_at = self._hands.begun, -math.inf
        while not self._stopping.wait(self._tick):
            try:
                is_long = self._runner.attempt is not None
                if is_long and self._hands.begun == begun:
                    self._empty_hands()
                begun = self._hands.begun
                now = self._clock.monotonic()
                is_due = now >= hand_back_at and self._phase() > Phase.WORKING
                if is_long and is_due:
                    hand_back_at = now + HAND_BACK_SECONDS
                    self._hand_back()
                if self._watchdog.silence >= min(_LONGEST_SILENCE, self._lease / 3):
                    self._beat()
            except RedisError as error:
                logger.debug("no heartbeat of %s: %r", self._member.name, error)
                self._stopping.wait(min(_LONGEST_SILENCE, self._lease / 3))
            except Exception:
                logger.exception(
                    "the heart of %s failed; it goes on", self._member.name
                )

    def _watch(self) -> None:
        while not self._stopping.wait(self._tick):
            try:
                self._watchdog.look()
                self.also()
            except Exception:
                logger.exception(
                    "the watch over %s failed; it goes on", self._member.name
                )

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
        self._empty_hands()
        left = 1
        while left:
            left = self._leave(final=False)

    def _leave(self, *, final: bool) -> int:
        member = self._member
        call = leave(member.keys, member.name, member.incarnation, final=final)
        return self._driver.call(call)[1]

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


def _nothing() -> None:
    """Be what else a plain worker does."""
