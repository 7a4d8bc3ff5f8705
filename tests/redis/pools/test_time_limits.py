"""Tasks that run too long or do not heed a cancellation, as docs/pools.md tells."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from workstealing.errors import TaskCancelled, TaskFailed
from workstealing.inspecting.tracebacks import where_raised
from workstealing.testing import wait_until
from workstealing.workers import supervisor
from workstealing.workers.worker_pool import WorkerPool

each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
Pools = Callable[..., WorkerPool]


@each_kind
@pytest.mark.parametrize("task", ["endless", "endless_later"])
def test_a_task_that_runs_too_long_is_ended_and_its_neighbours_go_on(
    app: Any, pools: Pools, kind: Any, task: str
) -> None:
    pool = pools(app.queue, 2, kind)
    pool.start()
    too_long = getattr(app, task).submit()

    with pytest.raises(TaskFailed, match=r"ran for longer than 0\.3 s") as caught:
        too_long.result(timeout=20)
    assert where_raised(caught.value.traceback).endswith(f"in {task}")

    assert app.add.submit(1, 2).result(timeout=20) == 3
    stats = pool.stats()
    assert (stats.zombies, stats.replaced) == (0, 0)
    # It failed; nothing was cut off by the stop.
    assert pool.stop() == 0


@each_kind
def test_somebody_is_told_of_a_task_that_is_given_up_for_its_time_limit(
    app: Any, pools: Pools, redis_client: Any, kind: Any
) -> None:
    pools(app.queue, 1, kind).start()
    too_long = app.endless.submit()
    told = f"{app.NAME}:told"

    wait_until(lambda: redis_client.llen(told), 20, "somebody to be told")

    (words,) = redis_client.lrange(told, 0, -1)
    assert words.decode().startswith(f"{too_long.id} TimeoutError: it ran for longer")
    redis_client.delete(told)


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_slot_whose_task_cannot_be_stopped_is_replaced_and_its_outcome_refused(
    app: Any,
    pools: Pools,
    see: Any,
    kind: Any,
    caplog: pytest.LogCaptureFixture,
    clock: Any,
) -> None:
    pool = pools(app.queue, 1, kind, clock=clock)
    pool.start()
    deaf = app.deaf.submit()
    wait_until(lambda: pool.stats().running, 10, "it to run")

    def is_given_up() -> bool:
        clock.ahead += supervisor.GRACE_SECONDS / 50
        return pool.stats().zombies == 1

    wait_until(is_given_up, 20, "it to be given up")
    with pytest.raises(TaskFailed, match=r"ran for longer than 0\.3 s"):
        deaf.result(timeout=10)
    assert app.add.submit(1, 2).result(timeout=10) == 3
    assert (pool.stats().zombies, pool.stats().workers) == (1, 1)
    assert "cannot be stopped: it runs on, another slot takes" in caplog.text

    see.wake()
    wait_until(lambda: "ended after it was given up" in caplog.text, 10, "its end")
    with pytest.raises(TaskFailed) as caught:
        deaf.result(timeout=1)
    assert " in deaf\n" in caught.value.traceback
    lines = [record.getMessage() for record in caplog.records]
    assert sum("failed permanently" in line for line in lines) == 1
    assert not any(deaf.id in line and "done in" in line for line in lines)
    assert app.queue.counts().stats.get("done", 0) == 1


def test_a_process_whose_task_cannot_be_stopped_ends_with_it(
    app: Any, pools: Pools
) -> None:
    pool = pools(app.queue, 1, "processes")
    pool.start()
    first = app.who.submit().result(timeout=20)

    with pytest.raises(TaskFailed, match=r"ran for longer than 0\.3 s") as caught:
        app.deaf.submit().result(timeout=20)
    assert " in deaf\n" in caught.value.traceback

    assert app.who.submit().result(timeout=20) != first
    assert app.queue.counts().stats.get("dead", 0) == 1


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_task_that_does_not_heed_its_cancellation_is_interrupted(
    app: Any, pools: Pools, see: Any, kind: Any, clock: Any
) -> None:
    pool = pools(app.queue, 2, kind, clock=clock)
    pool.start()
    handles = [app.hold.submit(1), app.hold_later.submit(2)]
    see.wait_for(2)

    assert [handle.cancel() for handle in handles] == ["asked", "asked"]

    def is_over() -> bool:
        clock.ahead += supervisor.GRACE_SECONDS / 50
        return app.queue.counts().unfinished == 0

    wait_until(is_over, 20, "both to end")
    for handle in handles:
        with pytest.raises(TaskCancelled):
            handle.result(timeout=5)
    assert pool.stats().zombies == 0


def test_a_process_that_does_not_heed_a_cancellation_ends(
    make_app: Callable[..., Any], pools: Pools, see: Any, clock: Any
) -> None:
    # Its clock cannot be moved from here, so its patience is shorter.
    app = make_app(
        more="""
        from functools import partial
        from workstealing.workers import engine
        engine.Supervisor = partial(engine.Supervisor, grace=0.2)
        """
    )
    pool = pools(app.queue, 1, "processes")
    pool.start()
    handle = app.hold.submit(1)
    see.wait_for(1)

    handle.cancel()

    with pytest.raises(TaskCancelled):
        handle.result(timeout=20)
    assert app.add.submit(1, 2).result(timeout=20) == 3


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_coroutine_that_blocks_its_loop_does_not_keep_a_stop_waiting(
    app: Any, pools: Pools, see: Any, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @app.queue.task(name="block")
    async def block() -> None:
        app.mute()

    handle = block.submit()
    pool = pools(app.queue, 1, kind)
    pool.start()
    wait_until(lambda: pool.stats().running, 10, "it to run")

    with caplog.at_level(logging.ERROR):
        assert pool.stop(hot=True) == 1

    assert handle.state().state.value == "waiting"
    see.wake()
    wait_until(see.hears_late, 10, "the thread to end")
