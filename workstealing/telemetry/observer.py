"""The seam between what happens and who wants to know.

An observer is called in the thread that did the work, so it must be quick. One that
raises is logged, at most once a minute, and never reaches the host.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from workstealing.clock import Clock
from workstealing.telemetry.events import Event
from workstealing.telemetry.throttle import Throttle

__all__ = ("FanOut", "Observer")

logger = logging.getLogger(__name__)


class Observer(Protocol):
    """Is told of every event."""

    def observe(self, event: Event) -> None:
        """Take note; be quick, do not wait."""
        ...


class FanOut:
    """Tells several observers, and survives each of them."""

    def __init__(self, observers: Iterable[Observer], clock: Clock) -> None:
        self._observers = tuple(observers)
        self._clock = clock
        self._throttle = Throttle()

    def __bool__(self) -> bool:
        return bool(self._observers)

    def observe(self, event: Event) -> None:
        """Tell all, whatever one of them does."""
        for observer in self._observers:
            try:
                observer.observe(event)
            except Exception as error:  # noqa: BLE001 - telemetry never hurts the host
                self._log(f"observer {type(observer).__name__}", error)

    def _log(self, subject: str, error: Exception) -> None:
        # A logging handler may fail too, and then there is nobody left to tell.
        with suppress(Exception):
            self._throttle.report(logger, subject, error, self._clock.monotonic())
