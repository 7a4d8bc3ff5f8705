"""More workers, fewer workers, at once or when they are done; nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from workstealing.pool.autoscale import Autoscale
from workstealing.tasks.outcome import State
from workstealing.testing import wait_until
from workstealing.workers.worker_pool import WorkerPool

each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
Pools = Callable[..., WorkerPool]


@each_kind
def test_a_pool_grows_and_shrinks_when_its_surplus_is_done(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    handles = app.hold.submit_many([(n,) for n in range(6)])
    pool = pools(app.queue, 1, kind)
    pool.start()
    see.wait_for(1)

    pool.scale(3)
    see.wait_for(3)
    pool.scale(1)
    wait_until(lambda: pool.stats().running == 3, 10, "three still running")
    see.let_go()
    app.queue.wait(timeout=20)

    assert [handle.result(timeout=5) for handle in handles] == [1] * 6
    wait_until(lambda: pool.stats().workers == 1, 10, "one to be left")
    see.hold_again()
    app.hold.submit_many([(1,), (2,)])
    see.wait_for(1)
    wait_until(lambda: pool.stats().running == 1, 10, "one to be seen running")
    assert see.begun() == [1]


@each_kind
def test_a_hot_scale_hands_back_what_it_cuts_off_uncounted(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    handles = app.hold.submit_many([(1,), (2,)])
    handles += app.hold_later.submit_many([(3,)])
    pool = pools(app.queue, 3, kind)
    pool.start()
    see.wait_for(3)

    pool.scale(1, hot=True)
    wait_until(
        lambda: [h.state().state for h in handles].count(State.RUNNING) == 1,
        20,
        "two to be handed back",
    )
    assert len(see.begun()) == 3
    see.let_go()
    app.queue.wait(timeout=20)

    assert [handle.result(timeout=5) for handle in handles] == [1, 1, 1]
    assert len(see.begun()) == 5
    assert pool.stop() == 0


@each_kind
def test_a_pool_scales_by_itself_with_its_backlog(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    pool = pools(app.queue, 1, kind)
    pool.autoscale = Autoscale(1, 3, backlog=1, idle=0.0)
    pool.start()

    app.hold.submit_many([(n,) for n in range(4)])
    see.wait_for(3)
    wait_until(lambda: pool.stats().workers == 3, 10, "three workers")
    assert pool.stats().backlog == pytest.approx(4 / 3)
    see.let_go()

    wait_until(lambda: pool.stats().workers == 1, 20, "one worker")
    assert app.queue.counts().unfinished == 0


@each_kind
def test_a_pool_scales_by_itself_when_a_task_waits(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    pool = pools(app.queue, 1, kind)
    pool.autoscale = Autoscale(1, 2, wait=0.1, step=1, backlog=100)
    pool.start()

    app.hold.submit_many([(n,) for n in range(2)])
    see.wait_for(2)
    see.let_go()

    app.queue.wait(timeout=20)
    wait_until(lambda: pool.stats().ended == 2, 10, "both to be reported")


@each_kind
def test_a_thousand_quick_scales_under_load_lose_nothing(
    app: Any, pools: Pools, kind: Any
) -> None:
    draw, most = Random(1000), 3 if kind == "processes" else 8
    handles = app.add.submit_many([(n, 0) for n in range(3000)])
    pool = pools(app.queue, most, kind, name="mill")
    pool.start()
    wait_until(lambda: pool.stats().taken, 20, "the load to begin")

    for _ in range(1000):
        pool.scale(draw.randint(1, most), hot=draw.random() < 0.5)
    pool.scale(2)
    app.queue.wait(timeout=40)

    counts = app.queue.counts()
    assert (counts.stats["done"], counts.outcomes) == (3000, 3000)
    assert (counts.tasks, counts.assigned) == (0, 0)
    assert [handle.result(timeout=5) for handle in handles[::100]] == list(
        range(0, 3000, 100)
    )
    assert pool.stats().refused == pool.stats().zombies == 0
    wait_until(lambda: pool.stats().workers == 2, 20, "two workers")
    pool.stop()
    assert app.queue.counts().leases == {}
