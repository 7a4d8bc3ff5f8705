"""Unique tasks, and ids that are used again, as their callers see them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from redis import Redis

from workstealing import AsyncTaskQueue, TaskClient, TaskQueue, Unique, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.errors import InputEnded, NotUnique, QueueFull, TaskCancelled
from workstealing.queue.upkeep_calls import expire
from workstealing.tasks.outcome import State
from workstealing.tasks.submission import ClientContext
from workstealing.testing import Server, wait_until


def drain(queue: TaskQueue) -> None:
    Worker(queue).run(until_empty="all")


def keys_left(queue: TaskQueue) -> int:
    """Count the keys about unique tasks."""
    keys, driver = internals_of(queue).keys, internals_of(queue).driver
    client: Any = driver.client
    return int(client.exists(keys.uniques, keys.unique_of, keys.unique_windows))


def test_a_task_is_unique_until_it_is_done_and_then_no_longer(queue: TaskQueue) -> None:
    @queue.task(unique=Unique())
    def bill(customer: int, month: str = "may") -> int:
        # It runs, and is still unique.
        return int(bool(bill.submit(customer, month).is_new))

    first, same, other = bill.submit(7), bill.submit(7, "may"), bill.submit(8)

    assert [handle.is_new for handle in (first, same, other)] == [True, False, True]
    assert same.id == first.id
    assert same.found_ended is None
    drain(queue)
    assert same.result(timeout=5) == 0
    assert bill.submit(7).is_new
    drain(queue)
    assert keys_left(queue) == 0


def test_a_task_that_is_unique_until_started_may_wait_while_one_runs(
    queue: TaskQueue,
) -> None:
    @queue.task(unique=Unique(until="started"), retries=1)
    def sync(account: int, depth: int = 0) -> None:
        news.append(bool(sync.submit(account, depth).is_new) if not news else False)
        if len(news) == 1:
            raise OSError("tried again, and not unique again")

    news: list[bool] = []
    sync.submit(1)
    assert not sync.submit(1).is_new
    drain(queue)

    assert news == [True, False, False]
    assert keys_left(queue) == 0


def test_a_window_outlasts_the_task(queue: TaskQueue, redis_client: Redis) -> None:
    @queue.task(unique=Unique(until=timedelta(minutes=1)))
    def ping(host: str) -> str:
        return host

    first = ping.submit("a")
    drain(queue)
    second = ping.submit("a")

    assert (second.id, second.is_new) == (first.id, False)
    assert second.found_ended is State.DONE
    assert ping.options(again=True).submit("a").is_new
    internals = internals_of(queue)
    windows = redis_client.zrange(internals.keys.unique_windows, 0, -1)
    redis_client.zadd(internals.keys.unique_windows, dict.fromkeys(windows, 1))
    assert ping.submit("a").is_new
    redis_client.zadd(internals.keys.unique_windows, dict.fromkeys(windows, 1))
    drain(queue)
    internals.driver.call(expire(internals.keys, internals.settings, most=9))
    assert keys_left(queue) == 0


def test_a_task_that_waits_is_replaced_and_says_by_which(queue: TaskQueue) -> None:
    @queue.task(unique=Unique(by="page", on_conflict="replace"))
    def index(page: int, text: str) -> str:
        return text

    old = index.options(priority=2).submit(1, "old")
    new = index.options(priority=0).submit(1, "new")

    assert new.is_new
    assert new.id != old.id
    with pytest.raises(TaskCancelled, match=f"replaced by task {new.id}"):
        old.result(timeout=5)
    drain(queue)
    assert new.result(timeout=5) == "new"
    assert queue.counts().stats["done"] == 1


def test_a_task_in_the_deque_of_a_worker_is_replaced_and_one_that_runs_is_kept(
    queue: TaskQueue, make_queue: Callable[..., TaskQueue]
) -> None:
    @queue.task(unique=Unique(by="page", on_conflict="replace"))
    def index(page: int, text: str) -> str:
        if page == 0:
            replaced.append(index.submit(0, "while it runs"))
            replaced.append(index.submit(1, "new"))
        return text

    replaced: list[Any] = []
    # Another member, so that the first keeps a deque of its own.
    other = Worker(make_queue(registry=queue.registry))
    handles = index.submit_many([(0, "runs"), (1, "old"), (2, "last")])
    assert other is not None
    Worker(queue, batch=1).run(until_empty=True)

    assert [handle.is_new for handle in replaced] == [False, True]
    assert replaced[0].id == handles[0].id
    assert replaced[1].result(timeout=5) == "new"
    with pytest.raises(TaskCancelled, match="replaced by"):
        handles[1].result(timeout=5)


def test_a_task_that_waits_is_rescheduled_with_its_own_arguments(
    queue: TaskQueue,
) -> None:
    @queue.task(unique=Unique(by="page", on_conflict="reschedule"))
    def index(page: int, text: str) -> str:
        return text

    first = index.options(priority=0).submit(1, "first")
    later = index.submit_in(60, 1, "later")

    assert (later.id, later.is_new) == (first.id, False)
    assert first.state().state is State.DELAYED
    Worker(queue).run(until_empty=True)
    assert first.state().state is State.DELAYED
    index.submit(1, "now")
    Worker(queue).run(until_empty=True)
    assert first.result(timeout=5) == "first"
    assert keys_left(queue) == 0


def test_of_a_burst_only_the_last_is_run_after_a_pause(queue: TaskQueue) -> None:
    @queue.task(unique=Unique(by="page", debounce=0.2))
    def index(page: int, text: str) -> str:
        texts.append(text)
        return text

    texts: list[str] = []
    burst = [index.submit(1, text) for text in "abc"]
    drain(queue)

    assert texts == ["c"]
    assert [handle.is_new for handle in burst] == [True, True, True]
    assert burst[-1].result(timeout=5) == "c"


def test_a_burst_without_end_is_run_after_the_longest_wait(queue: TaskQueue) -> None:
    @queue.task(unique=Unique(by="page", debounce=30, longest=30.2))
    def index(page: int, number: int) -> int:
        return number

    first_due = index.submit(1, 0).state().since_ms or 0
    latest: list[int] = []

    def is_put_off_no_more() -> bool:
        latest.append(index.submit(1, len(latest) + 1).state().since_ms or 0)
        return latest[-1] - first_due >= 200

    wait_until(is_put_off_no_more, 5, "the longest wait")
    assert index.submit(1, 0).state().since_ms == first_due + 200


def test_many_unique_tasks_are_submitted_at_once(queue: TaskQueue) -> None:
    @queue.task(unique=Unique())
    def bill(customer: int) -> int:
        return customer

    bill.submit(3)
    handles = bill.submit_many([(number % 50,) for number in range(100)])

    fresh = [place for place, handle in enumerate(handles) if handle.is_new]
    assert fresh == [place for place in range(50) if place != 3]
    assert len({handle.id for handle in handles}) == 50
    drain(queue)
    assert handles[99].result(timeout=5) == 49


def test_a_full_or_ended_queue_still_knows_what_it_has(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(max_length=1)

    @queue.task(unique=Unique(by="page", on_conflict="replace"))
    def index(page: int, text: str) -> str:
        return text

    index.submit(1, "old")
    with pytest.raises(QueueFull, match="so 0 of 1 tasks were submitted"):
        index.submit(2, "too much")
    assert index.submit(1, "new").is_new
    queue.end_input()
    with pytest.raises(InputEnded):
        index.submit(1, "newest")
    drain(queue)
    assert queue.counts().stats["done"] == 1


def test_signed_tasks_can_be_unique(make_queue: Callable[..., TaskQueue]) -> None:
    queue = make_queue(secret="0123456789abcdef0123456789abcdef")

    @queue.task(unique=Unique(debounce=0.05))
    def add(left: int) -> int:
        return left + 1

    add.submit(1)
    last = add.submit(1)
    drain(queue)

    assert last.result(timeout=5) == 2


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_a_task_that_ended_badly_is_unique_no_longer(
    queue: TaskQueue, end: str
) -> None:
    @queue.task(unique=Unique())
    def bill(customer: int) -> None:
        raise ValueError("no")

    first = bill.submit(7)
    if end == "cancelled":
        first.cancel()
    drain(queue)

    assert first.state().state.value == end
    assert bill.submit(7).is_new


def test_a_dead_letter_is_not_replayed_beside_another_with_its_key(
    queue: TaskQueue,
) -> None:
    @queue.task(unique=Unique())
    def bill(customer: int) -> None:
        raise ValueError("no")

    letter = bill.submit(7)
    drain(queue)
    other = bill.submit(7)

    with pytest.raises(NotUnique, match=f"task {other.id} has its unique key"):
        queue.replay(letter.id)
    other.cancel()
    assert queue.replay(letter.id)
    assert bill.submit(7).id == letter.id
    drain(queue)
    assert queue.drop(letter.id)
    assert keys_left(queue) == 0


def test_a_replayed_task_of_a_window_can_be_rescheduled(queue: TaskQueue) -> None:
    @queue.task(unique=Unique(until=60, on_conflict="reschedule"))
    def bill(customer: int) -> None:
        raise ValueError("no")

    letter = bill.submit(7)
    drain(queue)
    assert queue.replay(letter.id)

    other = bill.options(delay=30).submit(7)

    assert (other.id, other.is_new) == (letter.id, False)
    assert other.state().state is State.DELAYED


def test_a_client_submits_unique_tasks_too(queue: TaskQueue) -> None:
    @queue.task(name="bill", unique=Unique())
    def bill(customer: int) -> int:
        return customer

    client, nobody = TaskClient(queue), ClientContext()
    first = client.submit(nobody, "bill", {"customer": 7}, int)

    assert client.submit(nobody, "bill", {"customer": 7}, int).id == first.id
    assert bill.submit(7).id == first.id


@pytest.mark.parametrize("end", ["done", "cancelled", "failed"])
def test_an_id_whose_task_has_ended_is_told_and_can_be_used_again(
    queue: TaskQueue, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.task
    def pay(amount: int) -> int:
        if amount == 1 and end == "failed":
            raise ValueError("no")
        return amount

    def warnings() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name == name]

    named = pay.options(id="invoice-7")
    first = named.submit(1)
    if end == "cancelled":
        first.cancel()
    drain(queue)
    name = "workstealing.client.unique_submission"
    with caplog.at_level(logging.WARNING, name):
        second = named.submit(2)
        wait_until(
            lambda: end == "done" or bool(warnings()), 5, "a warning to be logged"
        )

    assert not second.is_new
    assert second.found_ended is not None
    assert second.found_ended.value == end
    if end == "done":
        assert warnings() == []
    else:
        (text,) = warnings()
        assert f"invoice-7 ({end})" in text
        assert ".options(again=True)" in text
    third = pay.options(id="invoice-7", again=True).submit(3)
    fourth = pay.options(id="invoice-7", again=True).submit(4)
    assert (third.is_new, fourth.is_new) == (True, False), "one that waits is kept"
    drain(queue)
    assert third.result(timeout=5) == 3


def test_of_many_only_those_that_have_ended_are_submitted_again(
    queue: TaskQueue,
) -> None:
    @queue.task
    def pay(amount: int) -> int:
        return amount

    names = [f"id-{number}" for number in range(20)]
    pay.submit_many([(1,)] * 10, ids=names[:10])
    drain(queue)
    pay.submit_many([(2,)] * 5, ids=names[10:15])

    again = pay.options(again=True).submit_many([(3,)] * 20, ids=names)

    fresh = [handle.id for handle in again if handle.is_new]
    assert fresh == [*names[:10], *names[15:]]
    drain(queue)
    assert [handle.result(timeout=5) for handle in again] == [
        *([3] * 10),
        *([2] * 5),
        *([3] * 5),
    ]


async def test_a_coroutine_submits_unique_tasks_too(
    async_queue: AsyncTaskQueue,
) -> None:
    @async_queue.task(unique=Unique())
    async def bill(customer: int) -> int:
        return customer

    first = await bill.submit(7)
    same, other = await bill.submit_many([(7,), (8,)])

    assert (first.is_new, same.is_new, other.is_new) == (True, False, True)
    assert same.id == first.id
    await first.cancel()
    known = await bill.options(id=first.id).submit(9)
    assert known.found_ended is State.CANCELLED
    assert (await bill.options(id=first.id, again=True).submit(9)).is_new


PRODUCER = """
import sys
from racing import work

print(sum(bool(work.submit(1).is_new) for _ in range(500)))
"""
RACING = """
import time
from workstealing import TaskQueue, Unique
from redis import Redis

queue = TaskQueue({name!r}, {url!r}, lease=5)
redis = Redis.from_url({url!r})


@queue.task(name="work", unique=Unique(until={until!r}))
def work(number: int) -> None:
    if redis.incr({name!r} + ":now") > 1:
        redis.incr({name!r} + ":together")
    redis.incr({name!r} + ":runs")
    time.sleep(0.001)
    redis.decr({name!r} + ":now")
"""
CREW = "from racing import queue; from workstealing import Worker; Worker(queue).run()"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("until", ["done", "started"])
def test_four_producers_and_two_workers_never_run_it_twice_at_once(
    redis_server: Server,
    redis_client: Redis,
    key_prefix: str,
    tmp_path: Any,
    until: str,
) -> None:
    name = f"{key_prefix}-{until}"
    source = RACING.format(name=name, url=redis_server.url, until=until)
    (tmp_path / "racing.py").write_text(source)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def start(code: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)

    crew = [start(CREW) for _ in range(2)]
    try:
        producers = [start(PRODUCER) for _ in range(4)]
        new = sum(int(producer.communicate(timeout=100)[0]) for producer in producers)
        queue = TaskQueue(name, redis_server.url)
        queue.wait(timeout=20)
        runs = int(redis_client.get(f"{name}:runs") or 0)
        together = int(redis_client.get(f"{name}:together") or 0)
        assert runs == new > 1
        assert keys_left(queue) == 0
        if until == "done":
            assert together == 0
        queue.close()
    finally:
        for worker in crew:
            worker.terminate()
            worker.communicate(timeout=30)
        redis_client.delete(*(f"{name}:{what}" for what in ("now", "runs", "together")))
