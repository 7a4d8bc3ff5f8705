"""Tasks are counted and changed in bulk: by name, state and age."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, BulkResult, TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.errors import ConfigurationError, TaskCancelled
from workstealing.queue.worker_calls import exchange, join
from workstealing.tasks.outcome import State

MakeQueue = Callable[..., TaskQueue]


class Shop:
    """A queue with two tasks, and one that fails."""

    def __init__(self, queue: TaskQueue) -> None:
        self.queue = queue
        self.bake = queue.task(name="bake")(self._bake)
        self.sell = queue.task(name="sell", version=2)(self._bake)
        self.burn = queue.task(name="burn")(self._burn)

    @staticmethod
    def _bake() -> str:
        return "bread"

    @staticmethod
    def _burn() -> None:
        raise ValueError("smoke")


@pytest.fixture
def shop(queue: TaskQueue) -> Shop:
    return Shop(queue)


def test_tasks_are_counted_by_name_and_state(shop: Shop, queue: TaskQueue) -> None:
    shop.bake.submit_many([()] * 3)
    shop.sell.submit()
    shop.bake.submit_in(60)
    for number in range(2):
        shop.burn.options(id=f"b{number}", priority=0).submit()
    held(queue, 2)

    assert queue.count() == 7
    assert queue.count(task="bake") == 4
    assert queue.count(task="sell") == queue.count(task="sell@2") == 1
    assert queue.count(task="sell@1") == queue.count(task="other") == 0
    assert queue.count(state="waiting") == 4
    assert queue.count(state=State.DELAYED) == 1
    assert queue.count(state="running") == 2
    assert queue.count(state="assigned") == 0
    assert queue.count(state=("running", "assigned"), task="burn") == 2
    assert queue.count(state=["waiting", "delayed"], task="bake") == 4


def test_paused_tasks_are_counted_as_paused(shop: Shop, queue: TaskQueue) -> None:
    shop.bake.submit_many([()] * 3)
    shop.sell.submit()
    queue.pause("bake")
    assert (queue.count(state="paused"), queue.count(state="waiting")) == (3, 1)

    Worker(queue).run(until_empty=True)

    assert (queue.count(state="paused"), queue.count(state="waiting")) == (3, 0)
    assert queue.cancel_many(state="paused") == BulkResult(matched=3, changed=3)
    shop.bake.submit()
    queue.pause()
    assert queue.count(state="paused") == 1


def held(queue: TaskQueue, number: int) -> None:
    """Let a worker take tasks, and do nothing."""
    parts = internals_of(queue)
    parts.driver.call(join(parts.keys, parts.settings, "w.0", "i", {"abilities": []}))
    call = exchange(parts.keys, parts.settings, "w.0", "i", want=number, keep=0)
    parts.driver.call(call)


def test_waiting_tasks_are_cancelled_by_name(shop: Shop, queue: TaskQueue) -> None:
    baked = shop.bake.submit_many([()] * 600)
    later = shop.bake.submit_in(60)
    sold = shop.sell.submit()

    assert queue.cancel_many(task="bake") == BulkResult(601, 601)
    assert queue.cancel_many(task="bake") == BulkResult(0, 0)
    Worker(queue).run(until_empty="all")

    assert sold.result(timeout=5) == "bread"
    for handle in (baked[0], baked[-1], later):
        with pytest.raises(TaskCancelled, match="by a bulk cancellation"):
            handle.result(timeout=5)
    assert queue.counts().stats["done"] == 1


def test_running_tasks_are_asked_to_stop(shop: Shop, queue: TaskQueue) -> None:
    shop.bake.submit_many([()] * 3)
    held(queue, 1)

    assert queue.cancel_many(state="running") == BulkResult(1, 0, asked=1)
    assert queue.cancel_many(state="waiting") == BulkResult(2, 2)
    assert queue.counts().unfinished == 1


def test_parked_tasks_are_cancelled(shop: Shop, make_queue: MakeQueue) -> None:
    shop.bake.submit_many([()] * 3)
    stranger = make_queue()
    Worker(stranger).run(until_empty=True)
    assert stranger.count(state="parked") == 3

    assert stranger.cancel_many(state="parked") == BulkResult(3, 3)
    assert stranger.counts().tasks == 0


def test_only_what_is_old_enough_is_touched(shop: Shop, queue: TaskQueue) -> None:
    shop.bake.submit()

    assert queue.count(older_than=3600) == 0
    assert queue.count(older_than=0) == 1
    assert queue.cancel_many(older_than=3600) == BulkResult(0, 0)


def test_dead_letters_are_replayed_and_dropped_by_name(
    shop: Shop, queue: TaskQueue
) -> None:
    shop.burn.submit_many([()] * 300)
    bad = queue.task(name="bad")(Shop._burn).submit()
    Worker(queue).run(until_empty=True)

    assert queue.count(state="failed") == 301
    assert queue.count(state="dead") == 0
    assert queue.replay_many(task="bad") == BulkResult(1, 1)
    assert bad.state().state is State.WAITING
    assert queue.replay_many(older_than=3600) == BulkResult(0, 0)
    assert queue.drop_many(task="burn", state="failed") == BulkResult(300, 300)
    assert queue.counts().dead == 0
    assert queue.counts().tasks == 1


def test_outcomes_are_purged_and_their_ids_are_free(
    shop: Shop, queue: TaskQueue
) -> None:
    shop.bake.options(id="once").submit()
    shop.sell.submit_many([()] * 300)
    shop.burn.submit()
    shop.bake.submit().cancel()
    Worker(queue).run(until_empty=True)

    assert queue.purge(task="sell", state="done") == BulkResult(300, 300)
    assert not shop.bake.options(id="once").submit().is_new
    assert queue.purge() == BulkResult(2, 2)
    assert shop.bake.options(id="once").submit().is_new
    assert queue.counts().dead == 1


@pytest.mark.slow
def test_a_hundred_thousand_tasks_are_counted_and_cancelled_in_slices(
    shop: Shop, queue: TaskQueue
) -> None:
    shop.bake.submit_many([()] * 100_000)
    told: list[tuple[int, int]] = []

    assert queue.count(task="bake") == 100_000
    done = queue.cancel_many(task="bake", on_progress=lambda *seen: told.append(seen))

    assert done == BulkResult(100_000, 100_000)
    assert queue.counts().tasks == 0
    assert len(told) > 100
    assert told == sorted(told)
    assert told[-1] == (100_000, 100_000)


async def test_asyncio_has_the_same(async_queue: AsyncTaskQueue) -> None:
    @async_queue.task
    def fail() -> None:
        raise ValueError

    @async_queue.task(name="idle")
    def idle() -> None: ...

    await fail.submit_many([()] * 3)
    await idle.submit_many([()] * 2)
    worker = Worker(async_queue)
    await asyncio.to_thread(worker.run, until_empty=True)
    await idle.submit()

    assert await async_queue.count(task="idle") == 3
    assert await async_queue.cancel_many(task="idle") == BulkResult(1, 1)
    assert await async_queue.purge(task="idle") == BulkResult(3, 3)
    assert await async_queue.replay_many() == BulkResult(3, 3)
    assert await async_queue.drop_many() == BulkResult(0, 0)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (
            "cancel_many",
            {"state": "done"},
            "state must be one or more of assigned, del",
        ),
        ("replay_many", {"state": "waiting"}, "one or more of dead, failed, not 'wait"),
        ("purge", {"state": []}, "state must be one or more of cancelled, done"),
        ("count", {"state": "lost"}, "not 'lost'"),
        ("count", {"older_than": -1}, "older_than must be 0 seconds or more"),
        ("count", {"task": "two words"}, "task must be 1 to 200 printable"),
    ],
)
def test_what_makes_no_sense_is_refused(
    queue: TaskQueue, method: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        getattr(queue, method)(**options)
