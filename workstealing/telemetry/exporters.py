"""Observers that export events as metrics: Prometheus, StatsD and OpenTelemetry.

Each needs the extra of its name, which is imported when an observer is made, and counts
the same: slices by job and outcome, their durations and overruns, enlist calls,
breakers and failed setups. All names start with `workstealing_`. The label that names
the job is `side_job`: Prometheus has a `job` of its own, and renames ours.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

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
    from opentelemetry.metrics import Histogram, Meter
    from prometheus_client import CollectorRegistry

__all__ = ("OpenTelemetryObserver", "PrometheusObserver", "StatsdObserver")

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
# A dot would open a new level, a colon or bar would end the name.
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class PrometheusObserver:
    """Counts events in a Prometheus registry, by default the global one.

    A registry takes one observer: share it between the recruiters of a process.

    | metric | labels |
    | --- | --- |
    | `workstealing_enlist_calls_total` | |
    | `workstealing_slices_total` | `side_job`, `outcome` |
    | `workstealing_slice_seconds` (histogram) | `side_job` |
    | `workstealing_slice_overruns_total` | `side_job` |
    | `workstealing_last_productive_timestamp_seconds` | `side_job` |
    | `workstealing_breaker_open` (0 or 1) | `target` |
    | `workstealing_setup_failures_total` | |
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
            ("side_job", "outcome"),
            registry=where,
        )
        self._seconds = Histogram(
            "workstealing_slice_seconds",
            "How long slices took.",
            ("side_job",),
            buckets=_BUCKETS,
            registry=where,
        )
        self._overruns = Counter(
            "workstealing_slice_overruns",
            "Slices that took longer than their deadline.",
            ("side_job",),
            registry=where,
        )
        self._productive = Gauge(
            "workstealing_last_productive_timestamp_seconds",
            "When a slice last worked.",
            ("side_job",),
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


class StatsdObserver:
    """Sends events to a StatsD client, by default one for localhost:8125.

    Counters: `workstealing_enlist_calls`, `workstealing_slices.<job>.<outcome>`,
    `workstealing_slice_overruns.<job>`, `workstealing_setup_failures`. Timer, in
    milliseconds: `workstealing_slice.<job>`. Gauge:
    `workstealing_breaker_open.<target>`.
    """

    def __init__(self, client: _StatsdClient | None = None) -> None:
        self._client = client or _default_statsd()

    def observe(self, event: Event) -> None:
        """Send one event."""
        client = self._client
        if isinstance(event, SliceEnded | SliceRefused):
            job = _metric_part(event.job)
            client.incr("workstealing_enlist_calls", event.calls)
            client.incr(f"workstealing_slices.{job}.{event.outcome.value}")
            if isinstance(event, SliceEnded):
                client.timing(f"workstealing_slice.{job}", event.seconds * 1000.0)
                if event.overran:
                    client.incr(f"workstealing_slice_overruns.{job}")
        elif isinstance(event, BreakerOpened):
            client.gauge(f"workstealing_breaker_open.{_metric_part(event.target)}", 1)
        elif isinstance(event, BreakerClosed):
            client.gauge(f"workstealing_breaker_open.{_metric_part(event.target)}", 0)
        elif isinstance(event, SetupFailed):
            client.incr("workstealing_setup_failures")


class OpenTelemetryObserver:
    """Counts events with a meter, by default one of the global provider.

    Counters: `workstealing_enlist_calls`, `workstealing_slices` (attributes `side_job`
    and `outcome`), `workstealing_slice_overruns` (`side_job`),
    `workstealing_breaker_openings` (`target`), `workstealing_setup_failures`.
    Histogram: `workstealing_slice_seconds` (`side_job`).
    """

    def __init__(self, meter: Meter | None = None) -> None:
        try:
            from opentelemetry.metrics import get_meter
        except ImportError as error:
            raise MissingExtra("opentelemetry-api", "opentelemetry") from error
        meter = meter or get_meter("workstealing")
        self._calls = meter.create_counter(
            "workstealing_enlist_calls", description="Moments offered."
        )
        self._slices = meter.create_counter(
            "workstealing_slices", description="Slices drawn, by how they ended."
        )
        self._seconds = _histogram(
            meter, "workstealing_slice_seconds", "How long slices took."
        )
        self._overruns = meter.create_counter(
            "workstealing_slice_overruns", description="Slices past their deadline."
        )
        self._openings = meter.create_counter(
            "workstealing_breaker_openings", description="Targets left alone."
        )
        self._setup_failures = meter.create_counter(
            "workstealing_setup_failures", description="Setups that raised."
        )

    def observe(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, SliceEnded | SliceRefused):
            job = {"side_job": event.job}
            self._calls.add(event.calls)
            self._slices.add(1, {**job, "outcome": event.outcome.value})
            if isinstance(event, SliceEnded):
                self._seconds.record(event.seconds, job)
                if event.overran:
                    self._overruns.add(1, job)
        elif isinstance(event, BreakerOpened):
            self._openings.add(1, {"target": event.target})
        elif isinstance(event, SetupFailed):
            self._setup_failures.add(1)


def _histogram(meter: Meter, name: str, description: str) -> Histogram:
    """Make a histogram of seconds; the default buckets are for milliseconds."""
    try:
        return meter.create_histogram(
            name,
            unit="s",
            description=description,
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
    except TypeError:  # opentelemetry-api before 1.30
        return meter.create_histogram(name, unit="s", description=description)


class _StatsdClient(Protocol):
    def incr(self, stat: str, count: int = 1) -> Any: ...
    def timing(self, stat: str, delta: float) -> Any: ...
    def gauge(self, stat: str, value: float) -> Any: ...


def _default_statsd() -> _StatsdClient:
    try:
        from statsd import StatsClient
    except ImportError as error:
        raise MissingExtra("statsd", "statsd") from error
    client: _StatsdClient = StatsClient()
    return client


def _metric_part(text: str) -> str:
    return _NOT_IN_A_NAME.sub("_", text)
