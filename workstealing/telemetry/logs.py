"""Writes events to a logger of the standard library, ids as fields.

What a slice did is `DEBUG`, a breaker that opens is `WARNING`. Errors of jobs are
logged by the recruiter itself, with or without this observer.
"""

from __future__ import annotations

import logging
from dataclasses import fields

from workstealing.telemetry.events import BreakerClosed, BreakerOpened, Event

__all__ = ("LoggingObserver",)


class LoggingObserver:
    """Logs each event; its fields travel in `extra`, prefixed with `ws_`."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("workstealing.events")

    def observe(self, event: Event) -> None:
        """Write one line."""
        level = logging.DEBUG
        if isinstance(event, BreakerOpened):
            level = logging.WARNING
        elif isinstance(event, BreakerClosed):
            level = logging.INFO
        if not self._logger.isEnabledFor(level):
            return
        values = {field.name: getattr(event, field.name) for field in fields(event)}
        text = " ".join(f"{name}={value}" for name, value in values.items())
        extra = {f"ws_{name}": value for name, value in values.items()}
        self._logger.log(level, "%s %s", type(event).__name__, text, extra=extra)
