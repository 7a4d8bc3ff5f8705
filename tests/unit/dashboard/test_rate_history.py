"""The chart shows what happened, not how often somebody looked."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from workstealing.dashboard.drawings import RatePoint, rate_chart
from workstealing.dashboard.rate_history import RateHistory


def stat(now_ms: int, done: int, dead: int = 0) -> Any:
    return Mock(now_ms=now_ms, totals=Mock(done=done, dead=dead, retried=0))


def test_forty_looks_leave_the_chart_as_it_was() -> None:
    history = RateHistory()
    history.note(stat(100_000, 0))
    history.note(stat(110_000, 50, 10))
    before = history.points()

    for n in range(40):
        history.note(stat(110_100 + n, 50 + n))

    assert history.points() == before == (RatePoint(110_000, 5.0, 1.0),)


def test_ten_minutes_are_kept_and_a_new_queue_begins_anew() -> None:
    history = RateHistory()
    for n in range(200):
        history.note(stat(n * 10_000, n))
    assert len(history.points()) == 60

    history.note(stat(2_000_000, 0))

    assert history.points() == ()


def test_a_chart_has_axes_with_numbers_and_times() -> None:
    points = [RatePoint(1_800_000_000_000 + n * 10_000, 130.0, 2) for n in range(9)]

    chart = rate_chart(points, 1_800_000_000_000, 1_800_000_600_000)

    assert all(f">{mark}</text>" in chart for mark in ("0", "100", "200", "now"))
    assert ">08:00</text>" in chart
    assert 'class="area failed"' in chart
