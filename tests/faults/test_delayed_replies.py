"""Replies come late: whoever has them in time keeps its lease, and nothing is lost.

A worker asks for one thing after another: four replies open a connection, and a round
of upkeep needs some six before the lease is renewed again. So it is kept for certain
if a reply takes less than a tenth of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from workstealing import TaskQueue, Worker, WorkerPool
from workstealing.client.task import Task
from workstealing.testing import Server, wait_until

_LEASE = 4.0
_BRIEFLY = _LEASE / 15
# More than a third of the lease, but less than all of it.
_LONG = _LEASE * 0.4
_SECONDS = 90

each_kind = pytest.mark.parametrize("kind", [None, "threads"])


class Scene:
    """A queue as those see it who have their replies late, or at once."""

    def __init__(self, name: str, url: str) -> None:
        self.queue = TaskQueue(name, url, lease=_LEASE)
        self.runs: Counter[int] = Counter()
        self.go_on = Event()
        self.note: Task[[int], int] = self.queue.task(name="note")(self._note)
        self.hold: Task[[int], int] = self.queue.task(name="hold")(self._hold)

    def _note(self, number: int) -> int:
        self.runs[number] += 1
        return number

    def _hold(self, number: int) -> int:
        self.go_on.wait(_SECONDS)
        return self._note(number)

    def lease_of(self, worker: str) -> int:
        """Return when the lease of a worker ends, by the clock of the server."""
        return self.queue.counts().leases.get(worker, 0)

    @contextmanager
    def working(self, kind: Any, name: str) -> Iterator[Any]:
        """Let a worker or a pool work here."""
        if kind is None:
            worker = Worker(self.queue, pool=name)
            thread = Thread(target=worker.run)
            thread.start()
        else:
            worker, thread = WorkerPool(self.queue, 2, kind, name=name), Thread()
            worker.start()
        try:
            yield lambda: worker.stats() if kind else worker.stats
        finally:
            self.go_on.set()
            worker.stop()
            if kind is None:
                thread.join(_SECONDS)


@pytest.fixture
def proxy(tcp_server: Server, make_proxy: Callable[..., Any]) -> Any:
    return make_proxy(tcp_server)


@pytest.fixture
def late(proxy: Any, key_prefix: str) -> Iterator[Scene]:
    """What goes by way of the proxy."""
    yield (scene := Scene(key_prefix, proxy.url))
    scene.queue.close()


@pytest.fixture
def prompt(tcp_server: Server, key_prefix: str) -> Iterator[Scene]:
    """What does not; its worker would take what a dead worker has."""
    yield (scene := Scene(key_prefix, tcp_server.url))
    scene.queue.close()


@pytest.mark.timeout(240)
@each_kind
def test_replies_that_take_a_fifteenth_of_the_lease_cost_no_lease_nor_a_second_run(
    proxy: Any, late: Scene, prompt: Scene, kind: Any
) -> None:
    with late.working(kind, "late") as stats:
        held = prompt.hold.submit(0)
        wait_until(lambda: stats().taken, 20, "it to be taken")
        proxy.delay_by(_BRIEFLY)
        began = prompt.lease_of("late.0")
        with prompt.working(None, "prompt"):
            prompt.note.submit_many([(n,) for n in range(1, 200)])
            wait_until(
                lambda: prompt.lease_of("late.0") > began + 1_000 * _LEASE,
                _SECONDS,
                "several renewals",
            )
        late.go_on.set()
        prompt.note.submit_many([(n,) for n in range(200, 300)])
        prompt.queue.wait(timeout=_SECONDS)

        assert held.result(timeout=20) == 0
        assert late.runs + prompt.runs == Counter(range(300))
        assert late.runs[0] == 1
        assert (stats().lost_leases, stats().refused, stats().failures) == (0, 0, 0)
        proxy.delay_by(0)
    counts = prompt.queue.counts()
    assert counts.stats["done"] == counts.outcomes == 300


@pytest.mark.timeout(240)
@each_kind
def test_of_replies_that_take_more_than_a_third_of_the_lease_nothing_ends_twice(
    proxy: Any, late: Scene, prompt: Scene, kind: Any
) -> None:
    """The lease may be lost, and a task be run again: it is done once all the same."""
    with late.working(kind, "late") as stats:
        held = prompt.hold.submit(0)
        wait_until(lambda: stats().taken, 20, "it to be taken")
        proxy.delay_by(_LONG)
        with prompt.working(None, "prompt"):
            # Whoever has it by then.
            prompt.go_on.set()
            prompt.note.submit_many([(n,) for n in range(1, 200)])
            late.go_on.set()
            assert held.result(timeout=_SECONDS) == 0
            prompt.queue.wait(timeout=_SECONDS)
        proxy.delay_by(0)
        # Nobody else is there for these.
        prompt.note.submit_many([(n,) for n in range(200, 300)])
        prompt.queue.wait(timeout=_SECONDS)

    assert set(late.runs + prompt.runs) == set(range(300))
    counts = prompt.queue.counts()
    assert counts.stats["done"] == counts.outcomes == 300
