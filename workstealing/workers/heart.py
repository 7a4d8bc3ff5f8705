"""Beats beside the work: a task that computes for minutes does not lose its lease.

It also puts down what a worker has taken but not begun when one task runs long, so that
thieves reach it, and it tells a running task that it is cancelled or not its own any
more.
"""

from __future__ import annotations

import logging
from threading import Event, Thread

from workstealing.clock import Clock
from workstealing.drivers.sync import Driver
from workstealing.errors import RedisError
from workstealing.queue.consuming import release
from workstealing.queue.presence import beat
from workstealing.workers.executing import Executor
from workstealing.workers.hands import Hands
from workstealing.workers.member import Member

__all__ = ("Heart",)

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.1


class Heart:
    """A daemon thread for the time that a worker runs."""

    def __init__(
        self,
        driver: Driver,
        member: Member,
        hands: Hands,
        executor: Executor,
        clock: Clock,
    ) -> None:
        self._driver = driver
        self._member = member
        self._hands = hands
        self._executor = executor
        self._clock = clock
        self._beats_every = member.settings.lease_ms / 3000
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
        begun = self._hands.begun
        tick = min(_TICK_SECONDS, self._beats_every)
        while not self._stopping.wait(tick):
            try:
                if self._hands.waiting and self._hands.begun == begun:
                    self._put_down()
                begun = self._hands.begun
                if self._clock.monotonic() - self._beat_at >= self._beats_every:
                    self._beat()
            except RedisError as error:
                logger.debug("no heartbeat of %s: %r", self._member.name, error)
            except Exception:
                logger.exception(
                    "the heart of %s failed; it goes on", self._member.name
                )

    def _put_down(self) -> None:
        put_down = self._hands.put_down()
        if put_down:
            member = self._member
            try:
                self._driver.call(release(member.keys, member.name, put_down))
            except RedisError:
                # Whether Redis has them is not known; the next exchange clears it up.
                self._hands.is_unsure = True
                raise

    def _beat(self) -> None:
        member = self._member
        cancelled = self._driver.call(
            beat(member.keys, member.settings, member.name, member.incarnation)
        )
        self._beat_at = self._clock.monotonic()
        context = self._executor.context
        if cancelled is not None:
            self._hands.cancelled.update(cancelled)
        if context is None:
            return
        if cancelled is None:
            context.tell_lease_lost()
        elif context.id in cancelled:
            context.tell_cancelled()
