"""Sends events to StatsD; needs the extra `statsd`."""

from __future__ import annotations

import re
from typing import Any, Protocol

from workstealing.errors import MissingExtra
from workstealing.telemetry.event_metrics import MOST_TASKS, EventMetrics
from workstealing.telemetry.events import BreakerClosed, BreakerOpened, Event

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
        self._metrics = EventMetrics(most_tasks)

    def observe(self, event: Event) -> None:
        """Send one event."""
        client = self._client
        for name, number, labels in self._metrics.counted(event):
            client.incr(_stat(name, labels), number)
        for name, seconds, labels in self._metrics.timed(event):
            client.timing(_stat(name, labels), seconds * 1000.0)
        if isinstance(event, BreakerOpened | BreakerClosed):
            is_open = int(isinstance(event, BreakerOpened))
            client.gauge(_stat("breaker_open", (event.target,)), is_open)


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


def _stat(name: str, labels: tuple[str, ...]) -> str:
    parts = (_NOT_IN_A_NAME.sub("_", label) for label in labels)
    return ".".join((f"workstealing_{name}", *parts))
