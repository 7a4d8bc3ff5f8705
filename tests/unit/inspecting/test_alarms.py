"""What is wrong with a queue is said first, in sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workstealing.inspecting import (
    ParkedStat,
    PauseStat,
    ShardStat,
    WorkerStat,
    alarms_of,
)

from .test_rates import STAT


def _headlines(**changes: Any) -> list[str]:
    return [alarm.headline for alarm in alarms_of(replace(STAT, **changes))]


def test_a_queue_that_works_has_no_alarm() -> None:
    assert _headlines(backlog=100_000, living=2) == []
    assert _headlines(backlog=0, living=0) == []


def test_tasks_that_wait_with_no_worker_are_an_alarm_unless_the_queue_is_paused() -> (
    None
):
    lonely = {"backlog": 100_000, "living": 0}

    assert _headlines(**lonely) == ["100,000 tasks wait and no worker is alive"]
    pause = PauseStat("", 1, 0, "the queue is paused")
    assert _headlines(**lonely, pauses=(pause,)) == []


def test_where_spare_moments_take_tasks_a_missing_worker_is_not_all_that_matters() -> (
    None
):
    lonely = replace(STAT, backlog=3, living=0)
    (alone,) = alarms_of(lonely)
    (spare,) = alarms_of(replace(lonely, totals=replace(STAT.totals, brief=1200)))

    assert alone.more == "Start a worker: workstealing worker APP:QUEUE"
    assert spare.headline == "3 tasks wait and no worker is alive"
    assert spare.more == (
        "Spare moments have taken 1,200 tasks so far, but only brief ones. For others,"
        " start a worker: workstealing worker APP:QUEUE"
    )


def test_parked_tasks_are_named() -> None:
    needs = tuple(ParkedStat(f"task{n}@1", n, "") for n in range(1, 6))
    (alarm,) = alarms_of(replace(STAT, parked=15, parked_abilities=needs))

    assert alarm.headline == "15 tasks are parked"
    assert "task5@1 (5), task4@1 (4), task3@1 (3) or 2 others" in alarm.more


def test_a_dead_worker_whose_tasks_nobody_takes_back_is_an_alarm() -> None:
    dead = WorkerStat("a.0", False, 3, 1, 0, 0, -300_000, "vm", 1, 0)

    assert _headlines(workers=(dead,)) == [
        "Worker a.0 has been dead for 5 min and still holds 4 tasks"
    ]
    assert _headlines(workers=(replace(dead, lease_left_ms=-1000),)) == []


def test_shards_that_cannot_be_reached_are_named_first() -> None:
    shards = tuple(ShardStat(shard, 0, 0, 1, 0) for shard in range(6))
    seen = replace(STAT, backlog=7, living=0, shards=shards, unreachable=(3, 6))

    first, second = (alarm.headline for alarm in alarms_of(seen))
    assert first == "2 of 8 shards cannot be reached: 3, 6"
    assert second == "7 tasks wait and no worker is alive"
