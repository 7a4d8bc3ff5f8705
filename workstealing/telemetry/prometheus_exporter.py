"""Counts events in Prometheus; needs the extra `prometheus`.

The label that names a job of side work is `side_job`: Prometheus has a `job` of its
own, and renames ours.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from workstealing.errors import MissingExtra
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
from workstealing.telemetry.task_events import TaskEnded
from workstealing.telemetry.task_metrics import (
    COUNTERS,
    MOST_TASKS,
    TASK_BUCKETS,
    TIMES,
    TaskMetrics,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Histogram

__all__ = ("SLICE_BUCKETS", "PrometheusObserver")

SLICE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


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
            buckets=SLICE_BUCKETS,
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
        self._rate_changes = Counter(
            "workstealing_rate_changes",
            "Rates that a recruiter changed by itself.",
            ("side_job",),
            registry=where,
        )
        self._tasks = TaskMetrics(most_tasks)
        self._task_counters = {
            name: Counter(f"workstealing_{name}", text, labels, registry=where)
            for name, (text, labels) in COUNTERS.items()
        }
        # Looking labels up costs more than counting; they are bounded.
        self._count = cache(self._task_counter)
        self._times = cache(self._task_times)
        self._wait, self._run = (
            Histogram(
                f"workstealing_{name}_seconds",
                text,
                ("queue", "task"),
                buckets=TASK_BUCKETS,
                registry=where,
            )
            for name, text in TIMES.items()
        )

    def observe(self, event: Event) -> None:
        """Count one event."""
        counted = self._tasks.counted(event)
        if counted is not None:
            name, number, labels = counted
            self._count(name, labels).inc(number)
            if isinstance(event, TaskEnded):
                self._time(event, labels)
        elif isinstance(event, SliceEnded | SliceRefused):
            self._calls.inc(event.calls)
            self._slices.labels(event.job, event.outcome.value).inc()
            if isinstance(event, SliceEnded):
                self._slice_ended(event)
        elif isinstance(event, BreakerOpened):
            self._open.labels(event.target).set(1)
        elif isinstance(event, BreakerClosed):
            self._open.labels(event.target).set(0)
        elif isinstance(event, SetupFailed):
            self._setup_failures.inc()
        elif isinstance(event, RateAdapted):
            self._rate_changes.labels(event.job).inc()

    def _slice_ended(self, event: SliceEnded) -> None:
        self._seconds.labels(event.job).observe(event.seconds)
        if event.overran:
            self._overruns.labels(event.job).inc()
        if event.outcome is Outcome.RECRUITED:
            self._productive.labels(event.job).set_to_current_time()

    def _time(self, event: TaskEnded, labels: tuple[str, ...]) -> None:
        if event.seconds is None:
            return
        wait, run = self._times(labels[:2])
        run.observe(event.seconds)
        if event.wait is not None:
            wait.observe(event.wait)

    def _task_counter(self, name: str, labels: tuple[str, ...]) -> Counter:
        return self._task_counters[name].labels(*labels)

    def _task_times(self, labels: tuple[str, ...]) -> tuple[Histogram, Histogram]:
        return self._wait.labels(*labels), self._run.labels(*labels)
