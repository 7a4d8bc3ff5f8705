"""What happened, as values, and observers that export it.

Observers never raise into the caller. Those of Prometheus, StatsD and OpenTelemetry
need the extras of these names, and are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workstealing.telemetry.events import (
    BreakerClosed,
    BreakerOpened,
    Event,
    Outcome,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)
from workstealing.telemetry.logs import LoggingObserver
from workstealing.telemetry.observer import Observer

if TYPE_CHECKING:
    from workstealing.telemetry.opentelemetry import OpenTelemetryObserver
    from workstealing.telemetry.prometheus import PrometheusObserver
    from workstealing.telemetry.statsd import StatsdObserver

__all__ = (
    "BreakerClosed",
    "BreakerOpened",
    "Event",
    "LoggingObserver",
    "Observer",
    "OpenTelemetryObserver",
    "Outcome",
    "PrometheusObserver",
    "SetupFailed",
    "SliceEnded",
    "SliceRefused",
    "StatsdObserver",
)

_MODULE_OF = {
    "OpenTelemetryObserver": "workstealing.telemetry.opentelemetry",
    "PrometheusObserver": "workstealing.telemetry.prometheus",
    "StatsdObserver": "workstealing.telemetry.statsd",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
