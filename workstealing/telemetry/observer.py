"""Observers: objects that receive the events of a recruiter.

An observer is called in the thread that did the work, so it must be quick. What it
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
    """Receives every event."""

    def observe(self, event: Event) -> None:
        """Handle one event; be quick, do not wait."""
        ...


class FanOut:
    """Passes events on to several observers, whatever these raise."""

    def __init__(self, observers: Iterable[Observer], clock: Clock) -> None:
        self._observers = tuple(observers)
        self._clock = clock
        self._throttle = Throttle()

    def __bool__(self) -> bool:
        return bool(self._observers)

    def observe(self, event: Event) -> None:
        """Call every observer, even if one of them raises."""
        for observer in self._observers:
            try:
                observer.observe(event)
            except Exception as error:  # noqa: BLE001 - telemetry never hurts the host
                self._log(f"observer {type(observer).__name__}", error)

    def _log(self, subject: str, error: Exception) -> None:
        # A logging handler may raise, too, and then there is nowhere left to report it.
        with suppress(Exception):
            self._throttle.report(logger, subject, error, self._clock.monotonic())
