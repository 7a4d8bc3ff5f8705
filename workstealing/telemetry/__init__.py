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
from workstealing.telemetry.observers import LoggingObserver, Observer
from workstealing.telemetry.opentelemetry_exporter import OpenTelemetryObserver
from workstealing.telemetry.prometheus_exporter import PrometheusObserver
from workstealing.telemetry.statsd_exporter import StatsdObserver
from workstealing.telemetry.task_events import (
    LeaseLost,
    TaskEnded,
    TaskGivenUp,
    TaskParked,
    TaskRetried,
    TasksReassigned,
    TasksStolen,
    TaskStarted,
    TaskSubmitted,
)
from workstealing.telemetry.task_observers import SpanObserver, flush_events

__all__ = (
    "BreakerClosed",
    "BreakerOpened",
    "Event",
    "LeaseLost",
    "LoggingObserver",
    "Observer",
    "OpenTelemetryObserver",
    "Outcome",
    "PrometheusObserver",
    "SetupFailed",
    "SliceEnded",
    "SliceRefused",
    "SpanObserver",
    "StatsdObserver",
    "TaskEnded",
    "TaskGivenUp",
    "TaskParked",
    "TaskRetried",
    "TaskStarted",
    "TaskSubmitted",
    "TasksReassigned",
    "TasksStolen",
    "flush_events",
)
