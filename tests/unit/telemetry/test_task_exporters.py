"""Each exporter shows what happens to tasks, under the same names."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

from workstealing.errors import ConfigurationError
from workstealing.telemetry import (
    Event,
    LeaseLost,
    LoggingObserver,
    Observer,
    OpenTelemetryObserver,
    PrometheusObserver,
    StatsdObserver,
    TaskEnded,
    TaskGivenUp,
    TaskParked,
    TaskRetried,
    TasksReassigned,
    TasksStolen,
    TaskStarted,
    TaskSubmitted,
)


def _ended(
    task: str,
    outcome: str,
    wait: float | None = None,
    seconds: float | None = 0.2,
    error: BaseException | None = None,
) -> TaskEnded:
    return TaskEnded("mail", task, "1", 1, "w.0", outcome, wait, seconds, error)


_EVENTS: list[Event] = [
    TaskSubmitted("mail", "send.now", "1", 3, 1, 0.001),
    TaskStarted("mail", "send.now", "1", 1, "w.0", 0.5, ""),
    _ended("send.now", "retry", 0.5, error=OSError("no route")),
    TaskRetried("mail", "send.now", "1", 1, "w.0", 2.0, OSError("no route")),
    TaskStarted("mail", "send.now", "1", 2, "w.0", None, ""),
    _ended("send.now", "done"),
    _ended("", "forged", seconds=None),
    TaskGivenUp("mail", "", "2", "w.0", "bad signature"),
    TaskParked("mail", "new", "3", 2),
    TasksStolen("mail", "w.0", "w.1", 7),
    TasksReassigned("mail", "w.2", 4),
    LeaseLost("mail", "w.3", 12.0),
]


def _tell(observer: Observer) -> None:
    for event in _EVENTS:
        observer.observe(event)


def test_prometheus_counts_tasks_and_measures_waits_and_runs() -> None:
    registry = CollectorRegistry()
    _tell(PrometheusObserver(registry))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(
            f"workstealing_{name}", {"queue": "mail", **labels}
        )

    assert value("tasks_submitted_total", task="send.now") == 3
    assert value("task_starts_total", task="send.now") == 2
    assert value("task_ends_total", task="send.now", outcome="retry") == 1
    assert value("task_ends_total", task="send.now", outcome="done") == 1
    assert value("task_ends_total", task="other", outcome="forged") == 1
    assert value("task_wait_seconds_count", task="send.now") == 1
    assert value("task_wait_seconds_sum", task="send.now") == 0.5
    assert value("task_run_seconds_count", task="send.now") == 2
    assert value("task_run_seconds_count", task="other") is None
    assert value("tasks_given_up_total", task="other") == 1
    assert value("tasks_parked_total", task="new") == 1
    assert value("tasks_stolen_total") == 7
    assert value("tasks_reassigned_total") == 4
    assert value("leases_lost_total") == 1


def test_prometheus_keeps_its_own_labels_to_itself() -> None:
    registry = CollectorRegistry()
    _tell(PrometheusObserver(registry))

    samples = [one for metric in registry.collect() for one in metric.samples]
    labels = {label for sample in samples for label in sample.labels}
    assert labels == {"queue", "task", "outcome", "le"}


def test_beyond_so_many_names_every_task_is_another_one() -> None:
    registry = CollectorRegistry()
    observer = PrometheusObserver(registry, most_tasks=2)
    for task in ("a", "b", "c", "d", "a"):
        observer.observe(_ended(task, "done"))

    ends = {
        sample.labels["task"]: sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "workstealing_task_ends_total"
    }
    assert ends == {"a": 2, "b": 1, "other": 2}


@pytest.mark.parametrize("most", [0, -1, 1.5, True])
def test_a_number_of_names_that_is_none_is_refused(most: Any) -> None:
    with pytest.raises(ConfigurationError, match="most_tasks"):
        PrometheusObserver(CollectorRegistry(), most_tasks=most)


class CountingStatsd:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.timings: list[tuple[str, float]] = []

    def incr(self, stat: str, count: int = 1) -> None:
        self.counts[stat] = self.counts.get(stat, 0) + count

    def timing(self, stat: str, delta: float) -> None:
        self.timings.append((stat, delta))

    def gauge(self, stat: str, value: float) -> None:
        raise AssertionError(stat)


def test_statsd_counts_the_same_with_labels_as_levels() -> None:
    client = CountingStatsd()
    _tell(StatsdObserver(client))

    assert client.counts == {
        "workstealing_tasks_submitted.mail.send_now": 3,
        "workstealing_task_starts.mail.send_now": 2,
        "workstealing_task_ends.mail.send_now.retry": 1,
        "workstealing_task_ends.mail.send_now.done": 1,
        "workstealing_task_ends.mail.other.forged": 1,
        "workstealing_tasks_given_up.mail.other": 1,
        "workstealing_tasks_parked.mail.new": 1,
        "workstealing_tasks_stolen.mail": 7,
        "workstealing_tasks_reassigned.mail": 4,
        "workstealing_leases_lost.mail": 1,
    }
    assert client.timings == [
        ("workstealing_task_wait.mail.send_now", 500.0),
        ("workstealing_task_run.mail.send_now", 200.0),
        ("workstealing_task_run.mail.send_now", 200.0),
    ]


def test_opentelemetry_counts_the_same_with_labels_as_attributes() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    _tell(OpenTelemetryObserver(provider.get_meter("test")))

    data = reader.get_metrics_data()
    assert data is not None
    points = {
        (metric.name, *sorted(dict(point.attributes).values())): point
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    prefix = "workstealing_"
    assert points[prefix + "tasks_submitted", "mail", "send.now"].value == 3
    assert points[prefix + "task_ends", "done", "mail", "send.now"].value == 1
    assert points[prefix + "tasks_stolen", "mail"].value == 7
    assert points[prefix + "leases_lost", "mail"].value == 1
    run = points[prefix + "task_run_seconds", "mail", "send.now"]
    assert (run.count, max(run.explicit_bounds)) == (2, 1800.0)
    assert points[prefix + "task_wait_seconds", "mail", "send.now"].count == 1


def test_logs_have_every_field_and_warn_of_what_is_wrong(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "workstealing.events")
    _tell(LoggingObserver())

    records = [record for record in caplog.records if record.levelno > logging.DEBUG]
    assert [record.getMessage().split()[0] for record in records] == [
        "TaskRetried",
        "TaskGivenUp",
        "TaskParked",
        "TasksReassigned",
        "LeaseLost",
    ]
    (ended,) = [one for one in caplog.records if "outcome=done" in one.getMessage()]
    assert vars(ended)["ws_task"] == "send.now"
    assert vars(ended)["ws_seconds"] == 0.2
