"""What happened, as values, and observers that receive or export it.

Observers never raise into the caller. Those for Prometheus, StatsD and OpenTelemetry
need the extras of these names, which are imported when an observer is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workstealing.telemetry.events import (
    BreakerClosed,
    BreakerOpened,
    Event,
    Outcome,
    RateAdapted,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)
from workstealing.telemetry.observers import LoggingObserver, Observer

if TYPE_CHECKING:
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
    "RateAdapted",
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

# Imported when they are first asked for: a host that only enlists needs none of them.
_MODULES = {
    "workstealing.telemetry.opentelemetry_exporter": ("OpenTelemetryObserver",),
    "workstealing.telemetry.prometheus_exporter": ("PrometheusObserver",),
    "workstealing.telemetry.statsd_exporter": ("StatsdObserver",),
    "workstealing.telemetry.task_events": (
        "LeaseLost",
        "TaskEnded",
        "TaskGivenUp",
        "TaskParked",
        "TaskRetried",
        "TaskStarted",
        "TaskSubmitted",
        "TasksReassigned",
        "TasksStolen",
    ),
    "workstealing.telemetry.task_observers": ("SpanObserver", "flush_events"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
