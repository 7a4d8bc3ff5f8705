"""Notices that Redis has not answered for long, and hangs up what hangs.

A client with time limits notices by itself, and the one who leads tries again for ever.
This is for clients without: a connection that is half open would be waited on for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from workstealing.clock import Clock
from workstealing.drivers.hanging_up import hang_up
from workstealing.drivers.sync import Driver

__all__ = ("Watchdog",)

logger = logging.getLogger(__name__)

_SILENCE_SECONDS = 60.0


class Watchdog:
    """Looks from a thread that does not wait for Redis itself.

    Args:
        name: of the worker.
        driver: whose connections.
        lease: seconds after which others may have the tasks.
        lost: is told that the lease must be taken for lost.
        clock: how long it has been silent.
    """

    def __init__(
        self,
        name: str,
        driver: Driver,
        lease: float,
        lost: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._name = name
        self._driver = driver
        self._lease = lease
        self._lost = lost
        self._clock = clock
        self._renewed_at = self._hung_up_at = clock.monotonic()

    def renewed(self) -> None:
        """Be told that Redis has answered."""
        self._renewed_at = self._clock.monotonic()

    @property
    def silence(self) -> float:
        """How many seconds ago Redis answered last."""
        return self._clock.monotonic() - self._renewed_at

    def look(self) -> None:
        """Do what is to be done about a silence."""
        silence = self.silence
        if silence >= self._lease:
            self._lost()
        since = self._clock.monotonic() - self._hung_up_at
        if silence >= _SILENCE_SECONDS and since >= _SILENCE_SECONDS:
            self._hung_up_at = self._clock.monotonic()
            logger.warning(
                "worker %s has had no answer for %.0f s; it connects anew",
                self._name,
                silence,
            )
            hang_up(self._driver.client)
