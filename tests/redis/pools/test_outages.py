"""Processes whose server hangs, dies or is not there yet: they wait, and go on alone.

The server keeps what it has in an append-only file, as one must that holds tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from workstealing import TaskQueue
from workstealing.inspecting import Inspector
from workstealing.testing import Server, wait_until
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]

NUMBER = 200
_SHORT = """
    @queue.task(name="short")
    def short(number: int) -> int:
        begun(number)
        time.sleep(0.02)
        return 2 * number
"""


@pytest.fixture
def failing() -> Iterator[Server]:
    """A server of this test's own."""
    with Server(tcp=True, appendonly="yes", appendfsync="always") as server:
        yield server


@pytest.fixture
def look(failing: Server, key_prefix: str) -> Iterator[Callable[[], TaskQueue]]:
    """Look at the queue by a client that met no outage."""
    opened: list[TaskQueue] = []

    def look() -> TaskQueue:
        opened.append(TaskQueue(key_prefix, failing.url))
        return opened[-1]

    yield look
    for queue in opened:
        queue.close()


def begin_outage(server: Server, outage: str) -> None:
    if outage == "hangs":
        server.pause()
    else:
        server.kill()


def end_outage(server: Server, outage: str) -> None:
    if outage == "hangs":
        server.resume()
    else:
        server.start()


def pids_of(queue: TaskQueue, pool: str) -> dict[str, int]:
    workers = Inspector(queue).stat().workers
    return {w.name: w.pid for w in workers if w.name.startswith(f"{pool}.")}


def assert_all_done_once(queue: TaskQueue, see: Any) -> None:
    queue.wait(timeout=40)
    counts = queue.counts()
    assert (counts.stats["done"], counts.stats.get("dead", 0)) == (NUMBER, 0)
    assert (counts.unfinished, counts.assigned, counts.outcomes) == (0, 0, NUMBER)
    assert set(see.begun()) == set(range(NUMBER))


@pytest.mark.slow
@pytest.mark.parametrize("lease", [1.5, 15.0])
@pytest.mark.parametrize("outage", ["hangs", "dies"])
def test_processes_lose_nothing_and_complete_nothing_twice_in_an_outage(
    make_app: Callable[..., Any],
    pools: Pools,
    see: Any,
    failing: Server,
    look: Callable[[], TaskQueue],
    outage: str,
    lease: float,
) -> None:
    app = make_app(lease=lease, more=_SHORT, url=failing.url)
    pool = pools(app.queue, 2, "processes", name="mill")
    pool.start()
    wait_until(lambda: len(app.queue.counts().leases) == 2, 30, "two to join")
    before = pids_of(app.queue, "mill")
    handles = app.short.submit_many([(n,) for n in range(NUMBER)])
    see.wait_for(NUMBER // 10)

    begin_outage(failing, outage)
    assert len(see.begun()) < NUMBER
    wait_until(lambda: pool.stats().silence > 8.0, 30, "eight seconds of silence")
    end_outage(failing, outage)

    queue = look()
    assert_all_done_once(queue, see)
    results = [queue.handle(handle.id).result(timeout=10) for handle in handles]
    assert results == [2 * n for n in range(NUMBER)]
    wait_until(lambda: len(queue.counts().leases) == 2, 20, "both to be back")
    assert pids_of(queue, "mill") == before
    assert pool.stats().replaced == 0
    assert pool.stop() == 0
    assert not any(map(see.is_alive, before.values()))
    assert queue.counts().leases == {}


@pytest.mark.parametrize("outage", ["hangs", "dies"])
def test_processes_that_are_stopped_in_an_outage_end_and_others_go_on(
    make_app: Callable[..., Any],
    pools: Pools,
    see: Any,
    failing: Server,
    look: Callable[[], TaskQueue],
    outage: str,
) -> None:
    app = make_app(lease=1.5, url=failing.url)
    handles = app.hold.submit_many([(n,) for n in range(6)])
    pool = pools(app.queue, 2, "processes", name="mill")
    pool.start()
    see.wait_for(2)
    pids = pids_of(app.queue, "mill").values()

    begin_outage(failing, outage)
    cut = pool.stop(timeout=0.5)
    assert not any(map(see.is_alive, pids))
    end_outage(failing, outage)
    see.let_go()
    pools(app.queue, 2, "processes", name="other").start()

    queue = look()
    results = [queue.handle(handle.id).result(timeout=40) for handle in handles]
    assert (cut, len(pids)) == (2, 2)
    assert results == [1] * 6
    assert queue.counts().stats["done"] == 6


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_what_a_quiet_pool_could_not_hand_back_in_an_outage_it_does_after_it(
    make_app: Callable[..., Any],
    with_a_full_deque: Callable[[Any, str], WorkerPool],
    see: Any,
    failing: Server,
    look: Callable[[], TaskQueue],
    kind: str,
) -> None:
    pool = with_a_full_deque(make_app(lease=30.0, url=failing.url), kind)

    failing.kill()
    pool.quiet()
    wait_until(lambda: pool.stats().silence > 2.5, 20, "it to have tried")
    failing.start()

    queue = look()
    wait_until(lambda: "mill.0" not in queue.counts().loads, 20, "an empty deque")
    assert queue.counts().assigned == 1
    see.let_go()
    assert pool.stop() == 0
    assert queue.counts().stats["done"] == 1


def test_processes_may_start_before_their_server(
    make_app: Callable[..., Any],
    pools: Pools,
    failing: Server,
) -> None:
    app = make_app(url=failing.url)
    failing.kill()
    pool = pools(app.queue, 2, "processes")

    pool.start()
    wait_until(lambda: pool.stats().failures >= 2, 30, "them to look for it")
    failing.start()

    assert app.add.submit(1, 2).result(timeout=30) == 3
    assert pool.stats().replaced == 0
