"""Exports events by OpenTelemetry, as metrics and spans; needs the extra."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from workstealing.errors import MissingExtra
from workstealing.telemetry.event_metrics import (
    COUNTERS,
    MOST_TASKS,
    TIMES,
    EventMetrics,
)
from workstealing.telemetry.events import BreakerOpened, Event
from workstealing.telemetry.task_events import TaskStarted
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
        self._metrics = EventMetrics(most_tasks)
        self._counters = {
            name: meter.create_counter(f"workstealing_{name}", description=text)
            for name, (text, _) in COUNTERS.items()
        }
        self._histograms = {
            name: _histogram(meter, f"workstealing_{name}_seconds", text, buckets)
            for name, (text, _, buckets) in TIMES.items()
        }
        self._openings = meter.create_counter(
            "workstealing_breaker_openings", description="Targets left alone."
        )

    def observe(self, event: Event) -> None:
        """Count one event."""
        for name, number, values in self._metrics.counted(event):
            labels = dict(zip(COUNTERS[name][1], values, strict=True))
            self._counters[name].add(number, labels)
        for name, seconds, values in self._metrics.timed(event):
            labels = dict(zip(TIMES[name][1], values, strict=True))
            self._histograms[name].record(seconds, labels)
        if isinstance(event, BreakerOpened):
            self._openings.add(1, {"target": event.target})

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
