"""OpenTelemetry metrics of the events. Needs the extra `opentelemetry`.

Counters `workstealing_enlist_calls`, `workstealing_slices` (attributes `job`,
`outcome`), `workstealing_slice_overruns` (`job`), `workstealing_breaker_openings`
(`target`), `workstealing_setup_failures`; the histogram `workstealing_slice_seconds`
(`job`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workstealing.errors import MissingExtra
from workstealing.telemetry.events import (
    BreakerOpened,
    Event,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

__all__ = ("OpenTelemetryObserver",)


class OpenTelemetryObserver:
    """Counts events by a meter; that of the global provider unless one is given."""

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
        self._seconds = meter.create_histogram(
            "workstealing_slice_seconds", unit="s", description="How long slices took."
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
            job = {"job": event.job}
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
