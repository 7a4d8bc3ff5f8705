"""Counts events in Prometheus; needs the extra `prometheus`.

The label that names a job of side work is `side_job`: Prometheus has a `job` of its
own, and renames ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from workstealing.errors import MissingExtra
from workstealing.telemetry.event_metrics import (
    COUNTERS,
    MOST_TASKS,
    TIMES,
    EventMetrics,
)
from workstealing.telemetry.events import (
    BreakerClosed,
    BreakerOpened,
    Event,
    Outcome,
    SliceEnded,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ("PrometheusObserver",)


class PrometheusObserver:
    """Counts events in a Prometheus registry, by default the global one.

    A registry takes one observer: share it between the recruiters and queues of a
    process. It has labels for *most_tasks* names of tasks; the rest is `other`.

    | metric | labels |
    | --- | --- |
    | `workstealing_enlist_calls_total` | |
    | `workstealing_slices_total` | `side_job`, `outcome` |
    | `workstealing_slice_seconds` (histogram) | `side_job` |
    | `workstealing_slice_overruns_total` | `side_job` |
    | `workstealing_last_productive_timestamp_seconds` | `side_job` |
    | `workstealing_breaker_open` (0 or 1) | `target` |
    | `workstealing_setup_failures_total` | |
    | `workstealing_rate_changes_total` | `side_job` |
    | `workstealing_tasks_submitted_total` | `queue`, `task` |
    | `workstealing_task_starts_total` | `queue`, `task` |
    | `workstealing_task_ends_total` | `queue`, `task`, `outcome` |
    | `workstealing_task_wait_seconds` (histogram) | `queue`, `task` |
    | `workstealing_task_run_seconds` (histogram) | `queue`, `task` |
    | `workstealing_tasks_given_up_total` | `queue`, `task` |
    | `workstealing_tasks_parked_total` | `queue`, `task` |
    | `workstealing_tasks_stolen_total` | `queue` |
    | `workstealing_tasks_reassigned_total` | `queue` |
    | `workstealing_leases_lost_total` | `queue` |
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        most_tasks: int = MOST_TASKS,
    ) -> None:
        try:
            from prometheus_client import REGISTRY, Counter, Gauge, Histogram
        except ImportError as error:
            raise MissingExtra("prometheus-client", "prometheus") from error
        where = registry or REGISTRY
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
        self._metrics = EventMetrics(most_tasks)
        counters = {
            name: Counter(f"workstealing_{name}", text, labels, registry=where)
            for name, (text, labels) in COUNTERS.items()
        }
        histograms = {
            name: Histogram(
                f"workstealing_{name}_seconds",
                text,
                labels,
                buckets=buckets,
                registry=where,
            )
            for name, (text, labels, buckets) in TIMES.items()
        }
        # Looking labels up costs more than counting; they are bounded.
        self._counter = cache(partial(_labelled, counters))
        self._histogram = cache(partial(_labelled, histograms))

    def observe(self, event: Event) -> None:
        """Count one event."""
        for name, number, labels in self._metrics.counted(event):
            self._counter(name, labels).inc(number)
        for name, seconds, labels in self._metrics.timed(event):
            self._histogram(name, labels).observe(seconds)
        if isinstance(event, SliceEnded) and event.outcome is Outcome.RECRUITED:
            self._productive.labels(event.job).set_to_current_time()
        elif isinstance(event, BreakerOpened | BreakerClosed):
            self._open.labels(event.target).set(isinstance(event, BreakerOpened))


def _labelled(metrics: Mapping[str, Any], name: str, labels: tuple[str, ...]) -> Any:
    return metrics[name].labels(*labels) if labels else metrics[name]
