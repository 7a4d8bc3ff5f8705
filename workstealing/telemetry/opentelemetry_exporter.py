"""Exports events by OpenTelemetry, as metrics and spans; needs the extra."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from workstealing.errors import MissingExtra
from workstealing.telemetry.events import (
    BreakerOpened,
    Event,
    RateAdapted,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)
from workstealing.telemetry.prometheus_exporter import SLICE_BUCKETS
from workstealing.telemetry.task_events import TaskEnded, TaskStarted
from workstealing.telemetry.task_metrics import (
    COUNTERS,
    MOST_TASKS,
    TASK_BUCKETS,
    TIMES,
    TaskMetrics,
)
from workstealing.telemetry.task_observers import EndOfRun, EndOfSubmit

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter
    from opentelemetry.trace import Tracer

__all__ = ("OpenTelemetryObserver",)


class OpenTelemetryObserver:
    """Counts events with a meter, and makes spans of tasks with a tracer.

    Both are those of the global providers unless given.

    Counters: `workstealing_enlist_calls`, `workstealing_slices` (attributes `side_job`
    and `outcome`), `workstealing_slice_overruns` (`side_job`),
    `workstealing_breaker_openings` (`target`), `workstealing_setup_failures`,
    `workstealing_rate_changes` (`side_job`). Histogram: `workstealing_slice_seconds`
    (`side_job`).

    Of tasks, the counters and histograms that `PrometheusObserver` has, with its labels
    as attributes; and spans, as the semantic conventions for messaging have them, named
    after the task: `submit <task>` (producer), whose context travels in the envelope,
    and `run <task>` (consumer), its child, which is current while the task runs.
    """

    def __init__(
        self,
        meter: Meter | None = None,
        *,
        tracer: Tracer | None = None,
        most_tasks: int = MOST_TASKS,
    ) -> None:
        try:
            from opentelemetry.metrics import get_meter

            from workstealing.telemetry.task_spans import TaskSpans
        except ImportError as error:
            raise MissingExtra("opentelemetry-api", "opentelemetry") from error
        self._spans = TaskSpans(tracer)
        meter = meter or get_meter("workstealing")
        self._calls = meter.create_counter(
            "workstealing_enlist_calls", description="Moments offered."
        )
        self._slices = meter.create_counter(
            "workstealing_slices", description="Slices drawn, by how they ended."
        )
        self._seconds = _histogram(
            meter, "workstealing_slice_seconds", "How long slices took.", SLICE_BUCKETS
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
        self._rate_changes = meter.create_counter(
            "workstealing_rate_changes",
            description="Rates that a recruiter changed by itself.",
        )
        self._tasks = TaskMetrics(most_tasks)
        self._task_counters = {
            name: meter.create_counter(f"workstealing_{name}", description=text)
            for name, (text, _) in COUNTERS.items()
        }
        self._wait, self._run = (
            _histogram(meter, f"workstealing_{name}_seconds", text, TASK_BUCKETS)
            for name, text in TIMES.items()
        )

    def observe(self, event: Event) -> None:
        """Count one event."""
        counted = self._tasks.counted(event)
        if counted is not None:
            name, number, values = counted
            labels = dict(zip(COUNTERS[name][1], values, strict=True))
            self._task_counters[name].add(number, labels)
            if isinstance(event, TaskEnded):
                del labels["outcome"]
                if event.wait is not None:
                    self._wait.record(event.wait, labels)
                if event.seconds is not None:
                    self._run.record(event.seconds, labels)
        elif isinstance(event, SliceEnded | SliceRefused):
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
        elif isinstance(event, RateAdapted):
            self._rate_changes.add(1, {"side_job": event.job})

    def submitting(
        self, queue: str, task: str, number: int, trace: str
    ) -> tuple[str, EndOfSubmit]:
        """Begin the span of a submit."""
        return self._spans.submitting(queue, task, number, trace)

    def running(self, event: TaskStarted) -> AbstractContextManager[EndOfRun]:
        """Begin the span of a run."""
        return self._spans.running(event)

    def flush(self) -> None:
        """Have what was collected sent, before a worker ends."""
        self._spans.flush()


def _histogram(
    meter: Meter, name: str, description: str, buckets: tuple[float, ...]
) -> Histogram:
    """Make a histogram of seconds; the default buckets are for milliseconds."""
    try:
        return meter.create_histogram(
            name,
            unit="s",
            description=description,
            explicit_bucket_boundaries_advisory=buckets,
        )
    except TypeError:  # opentelemetry-api before 1.30
        return meter.create_histogram(name, unit="s", description=description)
