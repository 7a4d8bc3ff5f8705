"""Rates are differences between stats."""

from __future__ import annotations

from dataclasses import replace

from workstealing.inspecting.counting import RateMeter
from workstealing.inspecting.views import QueueStat, QueueTotals, UpkeepStat

NOTHING = QueueTotals(*[0] * 11)
STAT = QueueStat(
    queue="q",
    run="default",
    server="here",
    is_known=True,
    now_ms=1_000_000,
    input_ended=False,
    waiting=0,
    inbox=(0, 0, 0),
    oldest_at_ms=None,
    assigned=0,
    running=0,
    delayed=0,
    parked=0,
    paused=0,
    held_back=0,
    dead=0,
    outcomes=0,
    unfinished=0,
    backlog=0,
    living=0,
    backlog_per_worker=0.0,
    workers=(),
    parked_abilities=(),
    pauses=(),
    task_names=(),
    totals=NOTHING,
    upkeep=UpkeepStat({}, {}),
    bytes=None,
)


def _stat(seconds: float, **totals: int) -> QueueStat:
    now_ms = STAT.now_ms + round(seconds * 1000)
    return replace(STAT, now_ms=now_ms, totals=replace(NOTHING, **totals))


def test_one_stat_gives_no_rate() -> None:
    assert RateMeter().note(_stat(0, done=500)) is None


def test_two_stats_give_tasks_per_second() -> None:
    meter = RateMeter()
    meter.note(_stat(0, submitted=100, done=50, stolen=1))

    rates = meter.note(_stat(2, submitted=100, done=60, stolen=2))

    assert rates is not None
    assert (rates.submitted, rates.done, rates.stolen) == (0.0, 5.0, 0.5)


def test_a_rate_is_the_mean_of_the_window_and_forgets_what_was_before() -> None:
    meter = RateMeter(window=10)
    for second in range(20):
        busy = meter.note(_stat(second, done=100 * second))
    assert busy is not None
    assert busy.done == 100.0

    for second in range(20, 31):
        quiet = meter.note(_stat(second, done=1900))
    assert quiet is not None
    assert quiet.done == 0.0


def test_stats_that_are_far_apart_are_compared_all_the_same() -> None:
    meter = RateMeter(window=10)
    meter.note(_stat(0))

    rates = meter.note(_stat(100, done=100))

    assert rates is not None
    assert rates.done == 1.0


def test_a_queue_that_was_deleted_starts_over() -> None:
    meter = RateMeter()
    meter.note(_stat(0, submitted=100, done=100))

    assert meter.note(_stat(1, submitted=1)) is None
    rates = meter.note(_stat(2, submitted=3))
    assert rates is not None
    assert rates.submitted == 2.0


def test_two_stats_of_the_same_moment_give_no_rate() -> None:
    meter = RateMeter()
    meter.note(_stat(0))

    assert meter.note(_stat(0, done=1)) is None
