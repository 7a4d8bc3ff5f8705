"""What happened, as values, and observers that receive or export it.

Observers never raise into the caller. Those for Prometheus, StatsD and OpenTelemetry
need the extras of these names, which are imported when an observer is made.
"""

from __future__ import annotations

from workstealing.telemetry.events import (
    BreakerClosed,
    BreakerOpened,
    Event,
    Outcome,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)
from workstealing.telemetry.exporters import (
    OpenTelemetryObserver,
    PrometheusObserver,
    StatsdObserver,
)
from workstealing.telemetry.observers import LoggingObserver, Observer

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
