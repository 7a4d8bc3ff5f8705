"""Workers count what ended by task name and minute, for people who look."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import pytest
from redis import Redis

from workstealing import (
    BriefTasks,
    Recruiter,
    Retry,
    Snooze,
    TaskQueue,
    Worker,
    chain,
)
from workstealing.client.queue_internals import internals_of
from workstealing.clock import SystemClock
from workstealing.inspecting import Inspector
from workstealing.inspecting.task_history import TaskStat
from workstealing.queue.minute_calls import BOUNDS_MS, NUMBERS, RUN_NUMBERS
from workstealing.queue.worker_calls import record_minute
from workstealing.tasks.attempt import Delivery
from workstealing.tasks.retry import RetryPolicy
from workstealing.telemetry import Event, TaskStarted, flush_events
from workstealing.testing import ManualClock, in_memory, wait_until
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
    assert sum(one.done for one in history.stretches) == 300
    assert len(history.stretches) == 10


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
    recorder = MinuteRecorder(lambda: parts.keys, ended, SystemClock())
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


@pytest.mark.parametrize(("minutes", "hours"), [(60, 1), (480, 8)])
def test_a_stretch_is_bounded_and_expires(
    queue: TaskQueue, redis_client: Redis[Any], minutes: int, hours: int
) -> None:
    parts = internals_of(queue)
    # The first minute of a hundred: nothing is left over from those before.
    first = now_ms() // 60_000 // 100 * 100
    for n in range(150):
        counts = {f"task{n}@1": [1] * NUMBERS}
        parts.driver.call(record_minute(parts.keys, first, counts))

    seen = Inspector(queue).history((first + 1) * 60_000, minutes)
    kind = "ten" if minutes == 60 else "hundred"
    (key,) = redis_client.keys(f"{parts.keys.prefix}{kind}_minutes:*")

    assert len(seen.tasks) == 101
    assert sum(one.done for one in seen.tasks) == 150
    assert 0 < redis_client.pttl(key) <= hours * 3_600_000


def test_eight_hours_are_told_in_stretches_of_ten_minutes(queue: TaskQueue) -> None:
    parts = internals_of(queue)
    last = now_ms() // 60_000 // 10 * 10
    for ago in (0, 3, 10, 65, 470):
        counts = {"x@1": [2, 1, *[0] * (NUMBERS - 2)]}
        parts.driver.call(record_minute(parts.keys, last - ago, counts))
    inspector = Inspector(queue)

    day = inspector.history(last * 60_000, 480)
    hour = inspector.history(last * 60_000, 60)

    assert (day.stretch_ms, len(day.stretches)) == (600_000, 48)
    assert [one.done for one in day.stretches[-3:]] == [0, 4, 2]
    assert (day.stretches[0].done, day.stretches[0].failed) == (2, 1)
    assert [(one.done, one.failed) for one in day.tasks] == [(10, 5)]
    assert (hour.stretch_ms, len(hour.stretches)) == (60_000, 60)
    assert [one.done for one in hour.stretches if one.done] == [2, 2, 2]
    assert day.stretches[-1].at_ms == (last + 10) * 60_000


def test_a_chart_of_eight_hours_reads_six_hashes_at_most(
    queue: TaskQueue, redis_client: Redis[Any]
) -> None:
    def hashes_read() -> int:
        seen = redis_client.info("commandstats").get("cmdstat_hgetall", {"calls": 0})
        return int(seen["calls"])

    for minutes, most in ((10, 2), (60, 7), (480, 6)):
        before = hashes_read()
        Inspector(queue).history(now_ms(), minutes)
        assert hashes_read() - before <= most


@pytest.mark.parametrize("odd", ["", "a b", "1 2 3", "\xff", "1" * 5000])
def test_an_odd_value_hides_nothing_else(
    queue: TaskQueue, redis_client: Redis[Any], odd: str
) -> None:
    parts = internals_of(queue)
    minute = now_ms() // 60_000
    parts.driver.call(record_minute(parts.keys, minute, {"x@1": [1] * NUMBERS}))
    for field in ("odd@1", f"{minute % 10} odd@1", "x y"):
        redis_client.hset(parts.keys.ten_minutes(minute // 10), field, odd)

    assert [one.task for one in Inspector(queue).history(now_ms(), 2).tasks] == ["x@1"]


def delivered(waited_ms: int, **more: Any) -> Delivery:
    """Return a task that was taken at 10,000,000 after so long a wait."""
    at = 10_000_000 - waited_ms
    envelope = b'{"v":1,"name":"x","version":1,"at":%d,"payload":{}}' % at
    return Delivery(
        **{"id": "a", "token": "1", "attempt": 1, "envelope": envelope} | more
    )


@pytest.mark.parametrize(
    ("waited_ms", "p50", "p95"),
    [
        ([5000] * 16, 5000, 5000),
        ([20] * 90 + [2000] * 10, 20, 2000),
        ([3_600_000] * 3, 3_600_000, 3_600_000),
        ([9_000_000] * 3, 9_000_000, 9_000_000),
        ([-5000], 0, 0),
    ],
)
def test_waits_are_sampled_by_the_time_of_the_server(
    queue: TaskQueue, waited_ms: list[int], p50: float, p95: float
) -> None:
    parts = internals_of(queue)
    ended = deque([("x@1", 1_000_000, False)])
    recorder = MinuteRecorder(lambda: parts.keys, ended, SystemClock())
    for one in waited_ms:
        recorder.sample_waits([delivered(one)], 10_000_000)
    recorder.record(parts.driver, is_last=True)

    (task,) = Inspector(queue).history(now_ms(), 2).tasks

    assert sum(task.waits) == len(waited_ms)
    assert task.wait_quantile_ms(0.5) == pytest.approx(p50, rel=0.2, abs=1)
    assert task.wait_quantile_ms(0.95) == pytest.approx(p95, rel=0.2, abs=1)


def test_few_of_a_large_batch_are_looked_at_and_none_that_says_nothing(
    queue: TaskQueue,
) -> None:
    parts = internals_of(queue)
    recorder = MinuteRecorder(
        lambda: parts.keys, deque([("x@1", 1, False)]), SystemClock()
    )
    odd = [
        delivered(5, attempt=2),
        delivered(5, envelope=b"{"),
        delivered(5, envelope=b'{"v":1,"name":"x","version":1,"payload":{}}'),
        delivered(5, envelope=b"x" * 100_000),
    ]
    recorder.sample_waits(odd, 10_000_000)
    recorder.sample_waits([delivered(5)] * 100, 10_000_000)
    recorder.record(parts.driver, is_last=True)

    (task,) = Inspector(queue).history(now_ms(), 2).tasks
    assert 0 < sum(task.waits) <= 8


def test_names_that_never_end_here_keep_out_no_others(queue: TaskQueue) -> None:
    parts = internals_of(queue)
    recorder = MinuteRecorder(
        lambda: parts.keys, deque([("x@1", 1, False)]), SystemClock()
    )
    for number in range(150):
        envelope = b'{"v":1,"name":"n%d","version":1,"at":5,"payload":{}}' % number
        recorder.sample_waits([delivered(5, envelope=envelope)], 10_000_000)
    recorder.sample_waits([delivered(5)], 10_000_000)
    recorder.record(parts.driver, is_last=True)

    (task,) = Inspector(queue).history(now_ms(), 2).tasks
    assert sum(task.waits) == 1


def test_waits_are_sampled_no_more_often_than_asked_for(queue: TaskQueue) -> None:
    parts, clock = internals_of(queue), ManualClock()
    ended = deque([("x@1", 1, False)])
    recorder = MinuteRecorder(lambda: parts.keys, ended, clock, sample_every=0.25)
    for _ in range(8):
        recorder.sample_waits([delivered(5)], 10_000_000)
        clock.advance(0.125)
    recorder.record(parts.driver, is_last=True)

    (task,) = Inspector(queue).history(now_ms(), 2).tasks
    assert sum(task.waits) == 4


def test_a_site_without_workers_tells_how_long_tasks_waited(queue: TaskQueue) -> None:
    @queue.task(name="quick", brief=True)
    def quick() -> None: ...

    quick.submit_many([()] * 5)
    spare = BriefTasks(queue)
    recruiter = Recruiter(share=None, breaker=None, deadline=5.0)
    recruiter.install(spare, "tasks", rate=1.0)
    wait_until(
        lambda: recruiter.enlist() and not queue.counts().unfinished, 30, "the tasks"
    )
    spare.close()

    (task,) = Inspector(queue).history(now_ms(), 10).tasks
    assert task.done == 5
    assert sum(task.waits) > 0


def test_a_worker_tells_how_long_tasks_waited(queue: TaskQueue) -> None:
    @queue.task(name="quick")
    def quick() -> None: ...

    quick.submit_many([()] * 50)
    handle = quick.submit()
    Worker(queue).run(until_empty=True)

    (task,) = Inspector(queue).history(now_ms(), 10).tasks
    assert sum(task.waits) > 0
    told = str(Inspector(queue).why(handle.id))
    assert "About then, half of the tasks quick@1 waited" in told


def test_numbers_of_a_former_release_are_added_and_lose_no_waits(
    queue: TaskQueue,
) -> None:
    parts, minute = internals_of(queue), now_ms() // 60_000
    for length in (RUN_NUMBERS, NUMBERS, RUN_NUMBERS):
        counts = {"x@1": [1] * length}
        parts.driver.call(record_minute(parts.keys, minute, counts))

    (task,) = Inspector(queue).history(now_ms(), 2).tasks
    assert (task.done, task.failed, task.total_ms) == (3, 3, 3)
    assert set(task.histogram) == {3}
    assert set(task.waits) == {1}


def test_the_wait_of_a_replayed_task_counts_from_its_replay() -> None:
    started: list[TaskStarted] = []
    queue = TaskQueue("replays", run="waits", observers=[_Starts(started)])
    is_broken = [True]

    @queue.task
    def mend() -> None:
        if is_broken[0]:
            raise ValueError("still broken")

    with in_memory(queue) as memory:
        handle = mend.submit()
        memory.drain()
        is_broken[0] = False
        memory.advance(3600)
        queue.replay(handle.id)
        memory.advance(5)
        inspector = Inspector(queue)
        stat = inspector.stat()
        assert stat.oldest_at_ms == stat.now_ms - 5_000
        memory.drain()
        told = str(inspector.why(handle.id))
        flush_events()

    assert [one.wait for one in started] == pytest.approx([0.0, 5.0], abs=0.1)
    assert "1 h until it was replayed" in told
    assert "waited 5 s in the inbox" in told


def test_the_wait_of_a_later_attempt_counts_from_when_it_was_due() -> None:
    started: list[TaskStarted] = []
    queue = TaskQueue("retries", run="waits", observers=[_Starts(started)])

    @queue.task(retries=1)
    def fail() -> None:
        raise Retry(after=600)

    slept: list[int] = []

    @queue.task
    def sleep() -> None:
        slept.append(1)
        if len(slept) == 1:
            raise Snooze(600)

    with in_memory(queue) as memory:
        for task in (fail, sleep):
            task.submit()
            memory.drain()
            memory.advance(3600)
            memory.drain()
        flush_events()

    # Each was due long before somebody took it, but not since its submission.
    first, again, early, late = (one.wait for one in started)
    assert (first, early) == pytest.approx((0.0, 0.0), abs=0.1)
    assert (again, late) == pytest.approx((3000.0, 3000.0), abs=0.1)


def test_a_step_does_not_wait_while_those_before_it_run() -> None:
    started: list[TaskStarted] = []
    queue = TaskQueue("steps", run="waits", observers=[_Starts(started)])

    @queue.task
    def first() -> int:
        return 1

    @queue.task
    def second(number: int) -> None: ...

    with in_memory(queue) as memory:
        chain(first.s(), second.s()).submit()
        memory.advance(60)
        memory.drain()
        flush_events()

    assert [one.wait for one in started] == [pytest.approx(60.0, abs=0.1), None]


class _Starts:
    def __init__(self, started: list[TaskStarted]) -> None:
        self._started = started

    def observe(self, event: Event) -> None:
        if isinstance(event, TaskStarted):
            self._started.append(event)
