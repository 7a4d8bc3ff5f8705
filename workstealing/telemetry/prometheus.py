"""Prometheus metrics of the events. Needs the extra `prometheus`.

| metric | labels |
| --- | --- |
| `workstealing_enlist_calls_total` | |
| `workstealing_slices_total` | `job`, `outcome` |
| `workstealing_slice_seconds` (histogram) | `job` |
| `workstealing_slice_overruns_total` | `job` |
| `workstealing_last_productive_timestamp_seconds` | `job` |
| `workstealing_breaker_open` (0 or 1) | `target` |
| `workstealing_setup_failures_total` | |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workstealing.errors import MissingExtra
from workstealing.telemetry.events import (
    BreakerClosed,
    BreakerOpened,
    Event,
    Outcome,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ("PrometheusObserver",)

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class PrometheusObserver:
    """Counts events in a registry; the default one unless another is given.

    A registry takes one observer; share it between the recruiters of a process.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        try:
            from prometheus_client import REGISTRY, Counter, Gauge, Histogram
        except ImportError as error:
            raise MissingExtra("prometheus-client", "prometheus") from error
        where = registry or REGISTRY
        self._calls = Counter(
            "workstealing_enlist_calls", "Moments offered.", registry=where
        )
        self._slices = Counter(
            "workstealing_slices",
            "Slices drawn, by how they ended.",
            ("job", "outcome"),
            registry=where,
        )
        self._seconds = Histogram(
            "workstealing_slice_seconds",
            "How long slices took.",
            ("job",),
            buckets=_BUCKETS,
            registry=where,
        )
        self._overruns = Counter(
            "workstealing_slice_overruns",
            "Slices that took longer than their deadline.",
            ("job",),
            registry=where,
        )
        self._productive = Gauge(
            "workstealing_last_productive_timestamp_seconds",
            "When a slice last worked.",
            ("job",),
            registry=where,
            multiprocess_mode="max",
        )
        self._open = Gauge(
            "workstealing_breaker_open",
            "Whether a target is left alone.",
            ("target",),
            registry=where,
            multiprocess_mode="livemax",
        )
        self._setup_failures = Counter(
            "workstealing_setup_failures", "Setups that raised.", registry=where
        )

    def observe(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, SliceEnded | SliceRefused):
            self._calls.inc(event.calls)
            self._slices.labels(event.job, event.outcome.value).inc()
        if isinstance(event, SliceEnded):
            self._seconds.labels(event.job).observe(event.seconds)
            if event.overran:
                self._overruns.labels(event.job).inc()
            if event.outcome is Outcome.RECRUITED:
                self._productive.labels(event.job).set_to_current_time()
        elif isinstance(event, BreakerOpened):
            self._open.labels(event.target).set(1)
        elif isinstance(event, BreakerClosed):
            self._open.labels(event.target).set(0)
        elif isinstance(event, SetupFailed):
            self._setup_failures.inc()
