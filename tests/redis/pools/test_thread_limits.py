"""Where the system starts no further thread, a pool says so, and no task is harmed."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from workstealing.errors import PoolBroken
from workstealing.testing import wait_until
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]


class Limit:
    """Refuses to start some threads, as the system does at a limit.

    Args:
        patch: of the class of threads, as long as the limit holds.
        name: what is in the names of threads that are refused.
        number: how many of them are started all the same.
        is_in_force: whether others are refused by now.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        *names: str,
        number: int = 0,
        is_in_force: Callable[[], bool] = lambda: True,
    ) -> None:
        self.started: list[Thread] = []
        start = Thread.start

        def start_or_refuse(thread: Thread) -> None:
            if any(name in thread.name for name in names) and is_in_force():
                if len(self.started) >= number:
                    raise RuntimeError("can't start new thread")
                self.started.append(thread)
            start(thread)

        patch.setattr(Thread, "start", start_or_refuse)

    def have_ended(self) -> bool:
        return not any(thread.is_alive() for thread in self.started)


@pytest.mark.parametrize(
    ("task", "name"), [("hold", "/thread"), ("quick_once", "asyncio_")]
)
def test_coroutines_without_a_thread_for_a_task_hand_it_back_and_end(
    app: Any, pools: Pools, see: Any, task: str, name: str
) -> None:
    see.let_go()
    handles = getattr(app, task).submit_many([(n,) for n in range(20)])
    with pytest.MonkeyPatch.context() as patch:
        Limit(patch, name)
        pool = pools(app.queue, 4, "asyncio")
        pool.start(until_empty=True)
        with pytest.raises(PoolBroken, match="use fewer workers"):
            pool.wait(30)

    counts = app.queue.counts()
    assert (counts.tasks, counts.assigned, counts.dead, counts.leases) == (20, 0, 0, {})
    pool = pools(app.queue, 4, "asyncio")
    pool.start(until_empty=True)
    assert {handle.result(timeout=20) for handle in handles} == {1}


def test_what_runs_already_ends_before_a_pool_that_lacks_threads(
    app: Any, pools: Pools, see: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Limit(monkeypatch, "/thread", is_in_force=lambda: bool(see.begun()))
    running = app.once.submit(1)
    pool = pools(app.queue, 4, "asyncio")
    pool.start()
    see.wait_for(1)
    app.add.submit_many([(n, 0) for n in range(20)])
    wait_until(lambda: pool.stats().workers == 0, 20, "the slots to leave")
    assert not pool.wait(0.0)

    see.let_go()

    assert running.result(timeout=20) == 1
    with pytest.raises(PoolBroken, match="use fewer workers"):
        pool.wait(20)
    counts = app.queue.counts()
    assert (counts.tasks, counts.assigned, counts.dead, counts.leases) == (20, 0, 0, {})


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *(("threads", number) for number in range(5)),
        *(("asyncio", number) for number in range(4)),
        *(("processes", number) for number in range(2)),
    ],
)
def test_a_pool_without_room_for_its_threads_does_not_start_and_leaves_none(
    app: Any, pools: Pools, monkeypatch: pytest.MonkeyPatch, kind: str, number: int
) -> None:
    limit = Limit(monkeypatch, "mill", "supervisor", "wake-ups", number=number)
    pool = pools(app.queue, 2, kind, name="mill")

    with pytest.raises(PoolBroken, match="pool mill cannot start another thread"):
        pool.start()

    assert len(limit.started) == number
    wait_until(limit.have_ended, 20, "them to end")
    assert app.queue.counts().leases == {}
