"""A pool runs what its queue has: every kind of task, in every kind of pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, TaskQueue, Worker
from workstealing.errors import (
    ConfigurationError,
    InvalidName,
    PoolStopped,
    TaskFailed,
)
from workstealing.pool.autoscale import Autoscale
from workstealing.recruiting.recruiter import Recruiter
from workstealing.testing import Server, wait_until
from workstealing.workers.lease import Lease
from workstealing.workers.worker_pool import WorkerPool

KINDS = ("threads", "asyncio", "processes")
each_kind = pytest.mark.parametrize("kind", KINDS)
Pools = Callable[..., WorkerPool]


@each_kind
def test_functions_and_coroutines_run_in_every_kind(app: Any, kind: Any) -> None:
    with WorkerPool(app.queue, 2, kind, name="mill") as pool:
        sums = app.add.submit_many([(n, n) for n in range(20)])
        later = app.add_later.submit_many([(n, n) for n in range(20)])
        results = [handle.result(timeout=20) for handle in (*sums, *later)]
        app.queue.wait(timeout=10)

    assert results == [2 * n for n in range(20)] * 2
    assert later[0].state().worker in ("mill.0", "mill.1")
    assert app.queue.counts().leases == {}
    assert pool.stats().workers == 0


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_free_slot_begins_in_time_what_is_due_while_another_is_busy(
    app: Any, pools: Pools, see: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing else makes the pool look: neither its lease, nor a wake-up when it is due.
    monkeypatch.setattr(Lease, "renew_seconds", 60.0)
    app.queue.every(1, name="tick")(app.who)
    pool = pools(app.queue, 2, kind)
    pool.start()
    app.hold.submit(1)
    see.wait_for(1)
    app.add.submit_in(3600, 1, 1)
    engine: Any = pool._engine
    (worker,) = engine._engines

    before = worker.stats.exchanges
    for number in range(5):
        assert app.add.submit_in(0.03, number, 1).result(timeout=10) == number + 1
    wait_until(lambda: app.queue.schedules()[0].fired >= 2, 10, "two ticks")

    see.let_go()
    # For each task and tick it learns when that is due, takes it then, and reports it.
    assert worker.stats.exchanges - before <= 40
    assert pool.stats().lost_leases == 0


@each_kind
def test_as_many_run_at_once_as_there_are_workers(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    app.hold.submit_many([(1,), (2,), (3,)])
    app.hold_later.submit_many([(4,), (5,), (6,)])
    pool = pools(app.queue, 3, kind)
    pool.start(until_empty=True)

    see.wait_for(3)
    wait_until(lambda: pool.stats().running == 3, 10, "three to be seen running")
    assert (len(see.begun()), pool.stats().workers) == (3, 3)
    see.let_go()

    assert pool.wait(timeout=20)
    assert sorted(see.begun()) == [1, 2, 3, 4, 5, 6]
    assert app.queue.counts().unfinished == 0


@each_kind
def test_until_empty_a_pool_ends_by_itself(app: Any, pools: Pools, kind: Any) -> None:
    handles = app.add.submit_many([(n, 1) for n in range(50)])
    pool = pools(app.queue, 2, kind)

    pool.start(until_empty=True)

    assert pool.wait(timeout=30)
    assert [handle.result(timeout=1) for handle in handles] == list(range(1, 51))
    assert app.queue.counts().leases == {}


def test_in_an_event_loop_tasks_are_coroutines_of_that_loop(
    redis_server: Server, key_prefix: str
) -> None:
    queue = TaskQueue(key_prefix, redis_server.url)
    loops = []

    @queue.task(name="look")
    async def look() -> None:
        loops.append(asyncio.get_running_loop())

    async def main() -> bool:
        async with WorkerPool(queue, 2, "asyncio"):
            await asyncio.to_thread(look.submit().result, 10)
        return loops == [asyncio.get_running_loop()]

    assert asyncio.run(main())
    queue.close()


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_an_asyncio_queue_has_a_pool_too(
    redis_server: Server, key_prefix: str, pools: Pools, kind: Any
) -> None:
    queue = AsyncTaskQueue(key_prefix, redis_server.url)

    @queue.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    async def submit() -> list[Any]:
        handles = await add.submit_many([(1, 2), (3, 4)])
        pool = pools(queue, 2, kind)
        pool.start(until_empty=True)
        results = [await handle.result(timeout=10) for handle in handles]
        await queue.close()
        return results

    assert asyncio.run(submit()) == [3, 7]


@each_kind
def test_what_a_task_raises_ends_that_task_only(
    app: Any, pools: Pools, kind: Any
) -> None:
    pool = pools(app.queue, 2, kind)
    pool.start()

    with pytest.raises(TaskFailed, match="MemoryError"):
        app.burst.submit().result(timeout=20)

    assert app.add.submit(1, 2).result(timeout=20) == 3


def test_idle_moments_are_for_side_work(app: Any, pools: Pools) -> None:
    recruiter, moments = Recruiter(), []
    recruiter.install(lambda: moments.append(1), "side", rate=1.0)
    pool = pools(app.queue, 2, "threads", recruiter=recruiter)

    pool.start()

    wait_until(lambda: moments, 10, "some side work")


@pytest.mark.parametrize("kind", [Worker, WorkerPool])
def test_the_name_of_a_queue_is_not_a_queue(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"needs the TaskQueue .* got 'mill'"):
        kind("mill")


def test_an_unknown_way_of_ending_is_refused(app: Any) -> None:
    until: Any = "yes"

    with pytest.raises(ConfigurationError, match="True, False or \"all\", got 'yes'"):
        Worker(app.queue).run(until_empty=until)


def test_a_plain_worker_says_that_it_cannot_keep_a_time_limit(
    app: Any, see: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @app.queue.task(name="hold_briefly", timeout=0.05)
    def hold_briefly() -> None:
        app.hold(1)

    hold_briefly.submit()
    worker = Worker(app.queue)
    running = Thread(target=worker.run, kwargs={"until_empty": True})
    running.start()

    wait_until(lambda: "exceeds its time limit of 0.05 s" in caplog.text, 20, "a line")
    see.let_go()
    running.join(20)

    assert caplog.text.count("exceeds its time limit") == 1
    assert app.queue.counts().stats["done"] == 1


def test_a_pool_starts_once(app: Any, pools: Pools) -> None:
    pool = pools(app.queue, 1, "threads")
    for act in (pool.quiet, pool.wait, pool.reload):
        with pytest.raises(PoolStopped, match="not started"):
            act()
    pool.start()

    with pytest.raises(PoolStopped, match="started only once"):
        pool.start()

    pool.stop()
    assert pool.stop() == 0
    assert pool.wait(timeout=1)
    with pytest.raises(PoolStopped, match="started only once"):
        pool.start()
    with pytest.raises(PoolStopped, match="was stopped"):
        pool.scale(3)


def test_a_pool_that_never_began_can_be_stopped(app: Any, pools: Pools) -> None:
    pool = pools(app.queue, 1, "processes")

    assert pool.stop() == 0
    assert pool.stats().workers == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers must be 1 or more"),
        ({"workers": 2.5}, "workers must be a whole number"),
        ({"workers": True}, "workers must be a whole number"),
        ({"kind": "fibres"}, "kind must be one of 'threads', 'processes', 'asyncio'"),
        ({"batch": 0}, "batch must be 1 to 1000"),
        ({"max_tasks": 5}, "mean nothing to threads"),
        ({"max_memory": 5.0, "kind": "asyncio"}, "mean nothing to asyncio"),
        ({"max_tasks": 0, "kind": "processes"}, "max_tasks must be 1 or more"),
        ({"max_memory": 0, "kind": "processes"}, "max_memory must be above 0 MiB"),
        ({"max_memory": float("nan"), "kind": "processes"}, "max_memory"),
        ({"max_memory": "1G", "kind": "processes"}, "max_memory"),
        ({"recruiter": Recruiter(), "kind": "processes"}, "a recruiter stays in"),
        (
            {"start_method": "teleport", "kind": "processes"},
            "start_method must be one of",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    app: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        WorkerPool(app.queue, **options)


def test_a_name_that_is_no_name_is_refused(app: Any) -> None:
    with pytest.raises(InvalidName):
        WorkerPool(app.queue, name="a b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2), "least must be 1 or more"),
        ((3, 2), "most must be >= least"),
        ((1, 2, {"backlog": 0}), "backlog must be 1 or more"),
        ((1, 2, {"idle": -1.0}), "idle must be"),
    ],
)
def test_a_range_that_cannot_be_meant_is_refused(
    app: Any, arguments: tuple[Any, ...], message: str
) -> None:
    least, most, *options = arguments
    pool = WorkerPool(app.queue)

    with pytest.raises(ConfigurationError, match=message):
        pool.autoscale = Autoscale(least, most, **(options[0] if options else {}))


def test_a_timeout_that_cannot_be_meant_is_refused(app: Any) -> None:
    with pytest.raises(ConfigurationError, match="timeout must be"):
        WorkerPool(app.queue).stop(timeout=-1.0)


def test_processes_need_a_queue_that_they_can_import(
    redis_server: Server, key_prefix: str, pools: Pools
) -> None:
    queue = TaskQueue(key_prefix, redis_server.url)
    pool = pools(queue, 1, "processes")

    with pytest.raises(ConfigurationError, match="make it a global of a module"):
        pool.start()
