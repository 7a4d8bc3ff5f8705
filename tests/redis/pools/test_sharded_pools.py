"""Pools of each kind work for a queue with shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workstealing import gather_results
from workstealing.client.queue_internals import internals_of
from workstealing.testing import wait_until
from workstealing.workers.worker_pool import WorkerPool

KINDS = ("threads", "processes", "asyncio")
SHARDS = 4
MORE = f"""
    from workstealing import AsyncTaskQueue

    queue_of_shards = TaskQueue(NAME, queue._internals.source.redis, shards={SHARDS},
        registry=queue.registry, lease=3.0)
    """


@pytest.fixture
def sharded(make_app: Callable[..., Any]) -> Any:
    app = make_app(3.0, MORE)
    yield app
    app.queue_of_shards.close()


def tasks_of(app: Any, name: str) -> Any:
    definition = app.queue.registry.find(name, 1)
    return type(app.add)(app.queue_of_shards, definition)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_runs_the_tasks_of_all_shards(
    sharded: Any, pools: Callable[..., WorkerPool], kind: str
) -> None:
    add = tasks_of(sharded, "add")
    handles = [add.submit(n, n) for n in range(3 * SHARDS)]
    handles += add.submit_many([(n, n) for n in range(800)])
    pool = pools(sharded.queue_of_shards, 2, kind)
    pool.start()

    expected = [2 * n for n in (*range(3 * SHARDS), *range(800))]
    assert gather_results(handles, timeout=90) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_that_ends_when_empty_has_emptied_all_shards(
    sharded: Any, pools: Callable[..., WorkerPool], kind: str
) -> None:
    add = tasks_of(sharded, "add")
    for n in range(5 * SHARDS):
        add.submit(n, n)
    pool = pools(sharded.queue_of_shards, 2, kind)

    pool.start(until_empty=True)

    assert pool.wait(90)
    counted = sharded.queue_of_shards.counts()
    assert counted.unfinished == 0
    assert counted.stats["done"] == 5 * SHARDS
    assert counted.leases == {}


@pytest.mark.parametrize(
    ("kind", "name"), [("threads", "hold"), ("asyncio", "hold_later")]
)
def test_a_long_task_keeps_no_free_slot_from_other_shards(
    sharded: Any, pools: Callable[..., WorkerPool], see: Any, kind: str, name: str
) -> None:
    queue = sharded.queue_of_shards
    pool = pools(queue, 3, kind)
    pool.start()
    long = tasks_of(sharded, name).submit(1)
    see.wait_for(1)

    add = tasks_of(sharded, "add")
    handles = [add.submit(n, n) for n in range(2 * SHARDS)]

    assert gather_results(handles, timeout=90) == [2 * n for n in range(2 * SHARDS)]
    assert long.state().state == "running"
    see.let_go()
    assert long.result(60) == 1
    assert pool.stats().lost_leases == 0
    assert pool.stats().refused == 0


@pytest.mark.parametrize(
    ("kind", "name"), [("threads", "hold"), ("asyncio", "hold_later")]
)
def test_a_task_that_was_left_behind_in_another_shard_goes_back_at_a_stop(
    sharded: Any, pools: Callable[..., WorkerPool], see: Any, kind: str, name: str
) -> None:
    queue = sharded.queue_of_shards
    pool = pools(queue, 2, kind)
    pool.start()
    long = tasks_of(sharded, name).submit(1)
    see.wait_for(1)
    add = tasks_of(sharded, "add")
    handles = [add.submit(n, n) for n in range(2 * SHARDS)]
    gather_results(handles, timeout=90)

    assert pool.stop(hot=True) == 1

    counted = queue.counts()
    assert (counted.unfinished, counted.assigned, counted.leases) == (1, 0, {})
    assert long.state().state == "waiting"


def test_a_process_that_dies_in_any_shard_loses_nothing(
    sharded: Any, pools: Callable[..., WorkerPool]
) -> None:
    leave, add = tasks_of(sharded, "leave"), tasks_of(sharded, "add")
    handles = [add.submit(n, n) for n in range(2 * SHARDS)]
    dies = [leave.submit() for _ in range(SHARDS)]
    pool = pools(sharded.queue_of_shards, 2, "processes")
    pool.start()

    assert gather_results(handles, timeout=90) == [2 * n for n in range(2 * SHARDS)]
    assert gather_results(dies, timeout=90) == ["stayed"] * SHARDS


def test_members_of_a_pool_have_homes_of_their_own(
    sharded: Any, pools: Callable[..., WorkerPool]
) -> None:
    queue = sharded.queue_of_shards
    parts = internals_of(queue)
    pools(queue, SHARDS, "processes").start()

    def members() -> list[int]:
        return [parts.driver.client.zcard(keys.workers) for keys in parts.shards.all]

    wait_until(lambda: members() == [1] * SHARDS, 60, "one process in each shard")
