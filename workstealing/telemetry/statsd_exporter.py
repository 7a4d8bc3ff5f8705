"""Sends events to StatsD; needs the extra `statsd`."""

from __future__ import annotations

import re
from typing import Any, Protocol

from workstealing.errors import MissingExtra
from workstealing.telemetry.events import (
    BreakerClosed,
    BreakerOpened,
    Event,
    RateAdapted,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)
from workstealing.telemetry.task_events import TaskEnded
from workstealing.telemetry.task_metrics import MOST_TASKS, TaskMetrics

__all__ = ("StatsdObserver",)

# A dot would open a new level, a colon or bar would end the name.
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class StatsdObserver:
    """Sends events to a StatsD client, by default one for localhost:8125.

    Counters: `workstealing_enlist_calls`, `workstealing_slices.<job>.<outcome>`,
    `workstealing_slice_overruns.<job>`, `workstealing_setup_failures`,
    `workstealing_rate_changes.<job>`. Timer, in milliseconds:
    `workstealing_slice.<job>`. Gauge: `workstealing_breaker_open.<target>`.

    Of tasks, the counters that `PrometheusObserver` has, with the values of the labels
    after the name: `workstealing_task_ends.<queue>.<task>.<outcome>`; and the timers
    `workstealing_task_wait.<queue>.<task>` and `workstealing_task_run.<queue>.<task>`.
    """

    def __init__(
        self, client: _StatsdClient | None = None, *, most_tasks: int = MOST_TASKS
    ) -> None:
        self._client = client or _default_statsd()
        self._tasks = TaskMetrics(most_tasks)

    def observe(self, event: Event) -> None:
        """Send one event."""
        client = self._client
        counted = self._tasks.counted(event)
        if counted is not None:
            name, number, labels = counted
            parts = [_metric_part(label) for label in labels]
            client.incr(".".join((f"workstealing_{name}", *parts)), number)
            if isinstance(event, TaskEnded):
                of = ".".join(parts[:2])
                if event.wait is not None:
                    client.timing(f"workstealing_task_wait.{of}", event.wait * 1000.0)
                if event.seconds is not None:
                    client.timing(f"workstealing_task_run.{of}", event.seconds * 1000.0)
        elif isinstance(event, SliceEnded | SliceRefused):
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
        elif isinstance(event, RateAdapted):
            client.incr(f"workstealing_rate_changes.{_metric_part(event.job)}")


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
