"""StatsD metrics of the events. Needs the extra `statsd`, or a client like it.

Counters `workstealing_enlist_calls`, `workstealing_slices.<job>.<outcome>`,
`workstealing_slice_overruns.<job>`, `workstealing_setup_failures`; the timer
`workstealing_slice.<job>`, in milliseconds; the gauge
`workstealing_breaker_open.<target>`.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from workstealing.errors import MissingExtra
from workstealing.telemetry.events import (
    BreakerClosed,
    BreakerOpened,
    Event,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)

__all__ = ("StatsdObserver",)

# A dot would open a new level, a colon or bar would end the name.
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class _Client(Protocol):
    def incr(self, stat: str, count: int = 1) -> Any: ...
    def timing(self, stat: str, delta: float) -> Any: ...
    def gauge(self, stat: str, value: float) -> Any: ...


class StatsdObserver:
    """Sends events to a StatsD client; one for localhost:8125 unless given."""

    def __init__(self, client: _Client | None = None) -> None:
        self._client = client or _default_client()

    def observe(self, event: Event) -> None:
        """Send one event."""
        client = self._client
        if isinstance(event, SliceEnded | SliceRefused):
            job = _name(event.job)
            client.incr("workstealing_enlist_calls", event.calls)
            client.incr(f"workstealing_slices.{job}.{event.outcome.value}")
            if isinstance(event, SliceEnded):
                client.timing(f"workstealing_slice.{job}", event.seconds * 1000.0)
                if event.overran:
                    client.incr(f"workstealing_slice_overruns.{job}")
        elif isinstance(event, BreakerOpened):
            client.gauge(f"workstealing_breaker_open.{_name(event.target)}", 1)
        elif isinstance(event, BreakerClosed):
            client.gauge(f"workstealing_breaker_open.{_name(event.target)}", 0)
        elif isinstance(event, SetupFailed):
            client.incr("workstealing_setup_failures")


def _default_client() -> _Client:
    try:
        from statsd import StatsClient
    except ImportError as error:
        raise MissingExtra("statsd", "statsd") from error
    client: _Client = StatsClient()
    return client


def _name(text: str) -> str:
    return _NOT_A_NAME.sub("_", text)
