"""Each exporter shows what happened, under names that start with workstealing_."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.metrics import NoOpMeter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

from workstealing import Duty, Recruiter
from workstealing.errors import MissingExtra
from workstealing.telemetry import (
    LoggingObserver,
    Observer,
    OpenTelemetryObserver,
    PrometheusObserver,
    RateAdapted,
    StatsdObserver,
)
from workstealing.testing import ManualClock

ROOT = Path(__file__).parents[3]


def _live(observer: Observer) -> None:
    """Ten calls that work, one that fails, one refused for it; and a new rate."""
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock, observers=(observer,))
    answers: list[Duty | Exception] = [Duty.RECRUITED] * 10 + [ConnectionError()]

    @recruiter.job(rate=1.0, name="session.gc", target="localhost:6379")
    def work() -> Duty:
        clock.advance(0.06)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    recruiter.setup(lambda recruiter: 1 / 0)
    for _ in range(12):
        recruiter.enlist()
    observer.observe(RateAdapted("session.gc", 1.0, 0.5, "it finds nothing"))


def test_prometheus_counts_slices_calls_and_failures() -> None:
    registry = CollectorRegistry()
    _live(PrometheusObserver(registry))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    slices = "workstealing_slices_total"
    assert value(slices, side_job="session.gc", outcome="recruited") == 10
    assert value(slices, side_job="session.gc", outcome="error") == 1
    assert value(slices, side_job="session.gc", outcome="open") == 1
    assert value("workstealing_enlist_calls_total") == 12
    assert value("workstealing_slice_seconds_count", side_job="session.gc") == 11
    assert value("workstealing_slice_overruns_total", side_job="session.gc") == 11
    assert value("workstealing_breaker_open", target="localhost:6379") == 1
    assert value("workstealing_setup_failures_total") == 1
    assert value("workstealing_rate_changes_total", side_job="session.gc") == 1
    productive = "workstealing_last_productive_timestamp_seconds"
    assert (value(productive, side_job="session.gc") or 0) > 0
    assert all(m.name.startswith("workstealing_") for m in registry.collect())


class RecordingStatsd:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.timings: list[str] = []
        self.gauges: dict[str, float] = {}

    def incr(self, stat: str, count: int = 1) -> None:
        self.counts[stat] = self.counts.get(stat, 0) + count

    def timing(self, stat: str, delta: float) -> None:
        self.timings.append(stat)

    def gauge(self, stat: str, value: float) -> None:
        self.gauges[stat] = value


def test_statsd_counts_the_same_under_names_without_dots_inside() -> None:
    client = RecordingStatsd()
    _live(StatsdObserver(client))

    assert client.counts == {
        "workstealing_enlist_calls": 12,
        "workstealing_slices.session_gc.recruited": 10,
        "workstealing_slices.session_gc.error": 1,
        "workstealing_slices.session_gc.open": 1,
        "workstealing_slice_overruns.session_gc": 11,
        "workstealing_setup_failures": 1,
        "workstealing_rate_changes.session_gc": 1,
    }
    assert client.timings == ["workstealing_slice.session_gc"] * 11
    assert client.gauges == {"workstealing_breaker_open.localhost_6379": 1}


def test_opentelemetry_counts_the_same() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    _live(OpenTelemetryObserver(provider.get_meter("test")))

    data = reader.get_metrics_data()
    assert data is not None
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    points = {
        (metric.name, tuple(sorted(dict(point.attributes).items()))): point
        for metric in metrics
        for point in metric.data.data_points
    }
    job = ("side_job", "session.gc")
    recruited = points["workstealing_slices", (("outcome", "recruited"), job)]
    assert recruited.value == 10
    assert points["workstealing_enlist_calls", ()].value == 12
    assert points["workstealing_slice_seconds", (job,)].count == 11
    assert points["workstealing_setup_failures", ()].value == 1
    assert points["workstealing_rate_changes", (job,)].value == 1
    openings = points["workstealing_breaker_openings", (("target", "localhost:6379"),)]
    assert openings.value == 1


def test_opentelemetry_has_buckets_for_slices_of_milliseconds() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    _live(OpenTelemetryObserver(provider.get_meter("test")))

    data = reader.get_metrics_data()
    assert data is not None
    (bounds,) = (
        point.explicit_bounds
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "workstealing_slice_seconds"
        for point in metric.data.data_points
    )
    assert min(bounds) < 0.001
    assert max(bounds) == 1.0


def test_opentelemetry_before_1_30_is_asked_for_no_buckets() -> None:
    class OldMeter(NoOpMeter):
        def create_histogram(  # type: ignore[override]
            self, name: str, unit: str = "", description: str = ""
        ) -> Any:
            return super().create_histogram(name, unit, description)

    _live(OpenTelemetryObserver(OldMeter("test")))


def test_logging_writes_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "workstealing.events")
    _live(LoggingObserver())

    records = [r for r in caplog.records if r.name == "workstealing.events"]
    opened = [r for r in records if r.levelno == logging.WARNING]
    assert len(opened) == 1
    assert opened[0].ws_target == "localhost:6379"  # type: ignore[attr-defined]
    assert sum("outcome=recruited" in r.getMessage() for r in records) == 10


@pytest.mark.parametrize(
    ("package", "make", "extra"),
    [
        ("prometheus_client", PrometheusObserver, "prometheus"),
        ("statsd", StatsdObserver, "statsd"),
        ("opentelemetry.metrics", OpenTelemetryObserver, "opentelemetry"),
    ],
)
def test_a_missing_extra_is_named_with_its_pip_command(
    package: str,
    make: Callable[[], object],
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(MissingExtra, match=rf"pip install 'workstealing\[{extra}\]'"):
        make()


# Prometheus gives each sample the `job` and the `instance` of its scrape target, and
# renames labels of ours that are called so: an alert `by (job)` would then be about the
# target, where one healthy job hides a dead one.
def test_no_label_has_a_name_that_prometheus_keeps_for_itself() -> None:
    registry = CollectorRegistry()
    _live(PrometheusObserver(registry))

    labels = {
        label
        for metric in registry.collect()
        for sample in metric.samples
        for label in sample.labels
    }
    assert labels == {"side_job", "outcome", "le", "target"}


@pytest.mark.parametrize(
    "page", ["docs/production.md", "examples/observability/grafana.json"]
)
def test_alerts_and_panels_group_by_our_label(page: str) -> None:
    text = (ROOT / page).read_text()

    assert "side_job" in text
    assert not re.search(r"by \([^)]*\bjob\b|{{job}}", text)


def test_importing_an_exporter_registers_nothing() -> None:
    from prometheus_client import REGISTRY

    names = {metric.name for metric in REGISTRY.collect()}
    assert not any(name.startswith("workstealing") for name in names)
