"""Quiet, stop, deadline, hot: what runs ends or is handed back, and nothing waits."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from workstealing._logs import flush_logs
from workstealing.tasks.outcome import State
from workstealing.testing import wait_until
from workstealing.workers.worker_pool import WorkerPool

each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
Pools = Callable[..., WorkerPool]
Full = Callable[[Any, str], WorkerPool]


@each_kind
def test_promise_8_a_stop_hands_back_at_once_what_waits_and_finishes_what_runs(
    app: Any, with_a_full_deque: Full, see: Any, kind: Any
) -> None:
    pool = with_a_full_deque(app, kind)
    cut: list[int] = []
    stopping = Thread(target=lambda: cut.append(pool.stop(timeout=30)))

    stopping.start()
    wait_until(lambda: "mill.0" not in app.queue.counts().loads, 10, "an empty deque")
    assert stopping.is_alive()
    assert app.queue.counts().assigned == 1
    see.let_go()
    stopping.join(30)

    assert cut == [0]
    counts = app.queue.counts()
    assert (counts.stats["done"], counts.unfinished, counts.assigned) == (1, 8, 0)
    assert "mill.0" not in counts.leases
    assert len(see.begun()) == 1


@each_kind
def test_a_quiet_pool_hands_back_what_waits_and_takes_no_more(
    app: Any, with_a_full_deque: Full, see: Any, kind: Any
) -> None:
    pool = with_a_full_deque(app, kind)

    pool.quiet()
    wait_until(lambda: "mill.0" not in app.queue.counts().loads, 10, "an empty deque")
    see.let_go()
    wait_until(lambda: app.queue.counts().stats.get("done"), 20, "what ran to end")
    app.add.submit(1, 1)

    assert pool.stop() == 0
    assert app.queue.counts().stats["done"] == 1
    assert len(see.begun()) == 1


@each_kind
def test_promise_8_what_runs_beyond_the_deadline_is_handed_back_uncounted_and_named(
    app: Any, pools: Pools, see: Any, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handles = [*app.hold.submit_many([(1,)]), *app.hold_later.submit_many([(2,)])]
    pool = pools(app.queue, 2, kind)
    pool.start()
    see.wait_for(2)

    assert pool.stop(timeout=0.1) == 2
    for handle in handles:
        assert f"task {handle.id} (" in caplog.text
    assert caplog.text.count("was interrupted by the stop and goes back") == 2
    assert [h.state().state for h in handles] == [State.WAITING, State.WAITING]
    assert app.queue.counts().leases == {}

    see.let_go()
    pools(app.queue, 2, "threads").start()
    assert [handle.result(timeout=20) for handle in handles] == [1, 1]


@each_kind
def test_a_hot_stop_does_not_wait(app: Any, pools: Pools, see: Any, kind: Any) -> None:
    handle = app.hold.submit(1)
    pool = pools(app.queue, 2, kind)
    pool.start()
    see.wait_for(1)

    assert pool.stop(hot=True, timeout=1000) == 1
    assert handle.state().state is State.WAITING
    assert app.queue.counts().leases == {}


@each_kind
def test_a_hot_stop_of_an_idle_pool_cuts_nothing_off(
    app: Any, pools: Pools, kind: Any
) -> None:
    pool = pools(app.queue, 2, kind)
    pool.start()
    wait_until(lambda: app.queue.counts().leases, 20, "a worker to join")

    assert pool.stop(hot=True) == 0


@each_kind
def test_a_task_that_must_not_run_twice_is_not_handed_back(
    app: Any, pools: Pools, see: Any, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handle = app.once.submit(1)
    pool = pools(app.queue, 1, kind)
    pool.start()
    see.wait_for(1)

    pool.stop(hot=True)

    state = handle.state()
    assert state.state is State.DEAD
    assert "unknown" in str(state)
    assert flush_logs()
    lines = [r for r in caplog.records if handle.id in r.getMessage()]
    assert any("must not run twice: it is" in line.getMessage() for line in lines)
    assert not any("goes back" in line.getMessage() for line in lines)
    (error,) = [r for r in lines if "given up (outcome unknown" in r.getMessage()]
    assert error.levelname == "ERROR"


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_what_no_exception_reaches_is_handed_back_all_the_same(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    handle = app.mute.submit()
    pool = pools(app.queue, 1, kind)
    pool.start()
    wait_until(see.is_mute, 10, "it to run")

    assert pool.stop(hot=True) == 1
    assert handle.state().state is State.WAITING
    see.wake()
    wait_until(see.hears_late, 10, "the thread to end")

    assert handle.state().state is State.WAITING


@each_kind
def test_a_dead_worker_leaves_no_keys_when_its_pool_has_ended(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    app.hold.submit_many([(n,) for n in range(4)])
    pool = pools(app.queue, 2, kind, name="mill")
    pool.start()
    see.wait_for(2)

    pool.stop(hot=True)

    assert [key for key in see.all_keys() if "mill" in key] == []
