"""Listens for the bell of a queue while a team has idle slots."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread

from workstealing.drivers.sync import Driver
from workstealing.queue.call import Command

__all__ = ("Bell",)

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0


class Bell:
    """A daemon thread that waits where the one who leads must not.

    Args:
        driver: where to listen.
        key: of the bell.
        seconds: to wait at a time.
        rang: what to call then.
    """

    def __init__(
        self, driver: Driver, key: str, seconds: float, rang: Callable[[], None]
    ) -> None:
        self._driver = driver
        self._command = Command(("BLPOP", key, seconds), parse=bool)
        self._rang = rang
        self._is_wanted = Event()
        self._is_over = False
        self._thread = Thread(target=self._live, name="workstealing-bell", daemon=True)

    def start(self) -> None:
        """Be ready to listen."""
        self._thread.start()

    def listen(self) -> None:
        """Listen for a while, if it does not do so already."""
        self._is_wanted.set()

    def stop(self) -> None:
        """End soon; nobody needs to wait for it."""
        self._is_over = True
        self._is_wanted.set()

    def _live(self) -> None:
        while True:
            self._is_wanted.wait()
            if self._is_over:
                return
            self._is_wanted.clear()
            try:
                rang = self._driver.call(self._command)
            except Exception as error:  # noqa: BLE001 - it must not go deaf
                # The one who leads has noticed too, and says so.
                logger.debug("nobody hears the bell for now: %r", error)
                Event().wait(_PAUSE_SECONDS)
            else:
                if rang and not self._is_over:
                    self._rang()
