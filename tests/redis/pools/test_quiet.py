"""A pool that takes no more keeps nothing from others, whatever they give to it.

Others do not know that it is quiet: upkeep feeds it as one that starves, and who cannot
run a task hands it over.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from threading import enumerate as all_threads
from typing import Any

import pytest
from redis import Redis

from workstealing.client.queue_internals import internals_of
from workstealing.queue import worker_calls
from workstealing.queue.worker_calls import Exchanged, exchange, route
from workstealing.testing import wait_until
from workstealing.workers.upkeep import WorkStealer
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]
each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
in_this_process = pytest.mark.parametrize("kind", ["threads", "asyncio"])


class WorkerInfo:
    """Another worker, which does nothing by itself."""

    name = "fellow.0"

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        description: dict[str, list[str]] = {"abilities": []}
        call = worker_calls.join(
            internals_of(queue).keys,
            internals_of(queue).settings,
            self.name,
            "i",
            description,
        )
        internals_of(queue).driver.call(call)

    def take(self, *, want: int, keep: int) -> Exchanged:
        queue = self._queue
        call = exchange(
            internals_of(queue).keys,
            internals_of(queue).settings,
            self.name,
            "i",
            want=want,
            keep=keep,
        )
        exchanged = internals_of(queue).driver.call(call)
        assert isinstance(exchanged, Exchanged)
        return exchanged

    def route(self, to: str) -> None:
        """Take a task and give it to another."""
        (task,) = self.take(want=1, keep=0).tasks
        queue = self._queue
        assert internals_of(queue).driver.call(
            route(internals_of(queue).keys, self.name, task, to)
        )

    def leave(self) -> None:
        queue = self._queue
        internals_of(queue).driver.call(
            worker_calls.leave(internals_of(queue).keys, self.name, "i", final=True)
        )


def is_without_load(app: Any, worker: str) -> Callable[[], bool]:
    return lambda: worker not in app.queue.counts().loads


def wait_for_renewal(app: Any, worker: str) -> None:
    before = app.queue.counts().leases[worker]
    wait_until(
        lambda: app.queue.counts().leases[worker] > before, 10, "a lease to be renewed"
    )


@each_kind
@pytest.mark.parametrize("how", ["quiet", "stop"])
def test_what_is_routed_to_one_that_finishes_its_last_task_comes_back(
    app: Any, pools: Pools, see: Any, kind: Any, how: str
) -> None:
    fellow = WorkerInfo(app.queue)
    app.hold.submit_many([(n,) for n in range(9)])
    pool = pools(app.queue, 1, kind, name="mill")
    pool.start()
    see.wait_for(1)
    wait_until(lambda: app.queue.counts().loads.get("mill.0"), 20, "a full deque")
    ending = Thread(target=pool.quiet if how == "quiet" else pool.stop)
    ending.start()
    wait_until(is_without_load(app, "mill.0"), 10, "an empty deque")

    for _ in range(2):
        fellow.route("mill.0")
        wait_until(is_without_load(app, "mill.0"), 10, "it to be handed back")
        assert app.queue.counts().assigned == 1

    see.let_go()
    ending.join(30)
    wait_until(lambda: app.queue.counts().stats.get("done"), 20, "what ran to end")
    assert len(see.begun()) == 1


@in_this_process
def test_what_upkeep_feeds_to_an_idle_quiet_pool_is_run_by_another(
    app: Any, pools: Pools, kind: Any
) -> None:
    pool = pools(app.queue, 1, kind, name="mill")
    pool.start()
    wait_until(lambda: "mill.0" in app.queue.counts().leases, 10, "it to join")
    pool.quiet()
    # What was on its way to Redis before may still have wanted something.
    for _ in range(2):
        wait_for_renewal(app, "mill.0")
    fellow = WorkerInfo(app.queue)
    handles = app.add.submit_many([(n, 0) for n in range(20)])
    fellow.take(want=1, keep=100)
    rich = app.queue.counts().loads[fellow.name]

    WorkStealer(app.queue).recruited()
    assert app.queue.counts().loads[fellow.name] < rich
    wait_until(is_without_load(app, "mill.0"), 10, "them to be handed back")
    assert pool.stats().taken == 0

    fellow.leave()
    pools(app.queue, 1, kind, name="other").start()
    assert [handle.result(timeout=20) for handle in handles] == list(range(20))
    assert pool.stats().taken == 0


@in_this_process
def test_a_quiet_pool_leaves_wake_ups_to_others(
    app: Any, pools: Pools, redis_client: Redis, kind: Any
) -> None:
    pool = pools(app.queue, 2, kind)
    pool.start()
    wait_until(lambda: app.queue.counts().leases, 10, "it to join")

    pool.quiet()
    wait_until(lambda: not listeners(), 10, "it to listen no more")
    app.add.submit(1, 2)

    assert redis_client.llen(internals_of(app.queue).keys.bell) > 0


def listeners() -> list[Thread]:
    return [
        thread for thread in all_threads() if thread.name == "workstealing-wake-ups"
    ]
