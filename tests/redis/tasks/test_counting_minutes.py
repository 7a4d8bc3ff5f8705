"""Workers count what ended by task name and minute, for people who look."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import pytest
from redis import Redis

from workstealing import TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.clock import SystemClock
from workstealing.inspecting import Inspector
from workstealing.inspecting.task_history import TaskStat
from workstealing.queue.minute_calls import BOUNDS_MS, NUMBERS
from workstealing.queue.worker_calls import record_minute
from workstealing.tasks.retry import RetryPolicy
from workstealing.workers.minute_recorder import MinuteRecorder


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_what_ended_is_counted_by_name_with_how_long_it_took(queue: TaskQueue) -> None:
    @queue.task(name="quick")
    def quick() -> None: ...

    @queue.task(
        name="flaky", retries=RetryPolicy(retries=1, initial_delay=0.01, max_delay=0.01)
    )
    def flaky() -> None:
        raise ValueError

    quick.submit_many([()] * 300)
    flaky.submit()
    Worker(queue).run(until_empty="all")

    history = Inspector(queue).history(now_ms(), 10)

    found = {one.task: one for one in history.tasks}
    assert (found["quick@1"].done, found["quick@1"].failed) == (300, 0)
    assert (found["flaky@1"].done, found["flaky@1"].failed) == (0, 2)
    assert sum(found["quick@1"].histogram) == 300
    assert sum(one.done for one in history.minutes) == 300
    assert len(history.minutes) == 10


@pytest.mark.parametrize(
    ("lasted_ms", "p50", "p95"),
    [
        ([5000] * 16, 5000, 5000),
        ([20] * 50, 20, 20),
        ([20] * 90 + [2000] * 10, 20, 2000),
        ([3_600_000] * 3, 3_600_000, 3_600_000),
        ([0.2] * 9, 0.2, 0.2),
        (list(range(1, 1000)), 500, 950),
    ],
)
def test_quantiles_are_not_far_from_the_truth(
    queue: TaskQueue, lasted_ms: list[float], p50: float, p95: float
) -> None:
    parts = internals_of(queue)
    ended = deque(("x@1", int(ms * 1_000_000), False) for ms in lasted_ms)
    recorder = MinuteRecorder(parts.keys, ended, SystemClock())
    recorder.record(parts.driver, is_last=True)

    (task,) = Inspector(queue).history(now_ms(), 2).tasks

    if p50 < 1:
        assert task.quantile_ms(0.95) <= 1
    else:
        assert task.quantile_ms(0.5) == pytest.approx(p50, rel=0.2)
        assert task.quantile_ms(0.95) == pytest.approx(p95, rel=0.2)


def test_an_odd_total_leaves_quantiles_within_their_bucket() -> None:
    counts = [0] * len(BOUNDS_MS) + [0]
    counts[BOUNDS_MS.index(64)] = 90
    counts[BOUNDS_MS.index(4096)] = 10

    for total_ms in (0, 9000, 10**12):
        task = TaskStat("x@1", 100, 0, total_ms, tuple(counts))
        assert 32 <= task.quantile_ms(0.5) <= 64
        assert 2048 <= task.quantile_ms(0.95) <= 4096


def test_a_minute_is_bounded_and_expires(
    queue: TaskQueue, redis_client: Redis[Any]
) -> None:
    parts = internals_of(queue)
    for n in range(150):
        counts = {f"task{n}@1": [1] * NUMBERS}
        parts.driver.call(record_minute(parts.keys, now_ms() // 60_000, counts))

    tasks = Inspector(queue).history(now_ms(), 2).tasks
    (key,) = redis_client.keys(f"{parts.keys.prefix}minute:*")

    assert 100 < len(tasks) <= 102
    assert sum(one.done for one in tasks) == 150
    assert 0 < redis_client.pttl(key) <= 8 * 3_600_000


@pytest.mark.parametrize("odd", ["", "a b", "1 2 3", "\xff", "1" * 5000])
def test_an_odd_value_hides_nothing_else(
    queue: TaskQueue, redis_client: Redis[Any], odd: str
) -> None:
    parts = internals_of(queue)
    minute = now_ms() // 60_000
    parts.driver.call(record_minute(parts.keys, minute, {"x@1": [1] * NUMBERS}))
    redis_client.hset(parts.keys.minute(minute), "odd@1", odd)

    assert [one.task for one in Inspector(queue).history(now_ms(), 2).tasks] == ["x@1"]
