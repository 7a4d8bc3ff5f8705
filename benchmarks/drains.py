"""The ways to run tasks beside each other: each kind of pool against a plain `Worker`.

Rates are read from the outcomes, between the first tenth of the tasks and the last:
what it takes to start and stop threads and processes is not counted.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from functools import partial
from operator import truediv

import msgspec

from benchmarks.measuring import Budget
from workstealing.client.queue_internals import internals_of
from workstealing.client.task import Task
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.connect import VARIABLES
from workstealing.testing import Server
from workstealing.workers.worker import Worker
from workstealing.workers.worker_pool import Kind, WorkerPool

__all__ = ("measure",)

_ROUNDS = 5
_TASKS = 20_000
_COROUTINES = 50

# Child processes import it from here.
queue = TaskQueue("drains")


@queue.task
def noop(number: int) -> int:
    """Do nothing."""
    return number


@queue.task
async def noop_async(number: int) -> int:
    """Do nothing, in an event loop."""
    return number


def measure() -> list[Budget]:
    """Measure how much each kind drains, in turn with a plain worker."""
    rates: dict[str, list[float]] = {}
    with Server(tcp=True) as server:
        os.environ[VARIABLES[0]] = server.url
        plain = partial(Worker(queue).run, until_empty=True)
        for _ in range(_ROUNDS):
            rates.setdefault("plain", []).append(_rate(noop, plain))
            for what, task, kind, workers, _ in _KINDS:
                pool = partial(_run_pool, kind, workers)
                rates.setdefault(what, []).append(_rate(task, pool))
        queue.close()
    return [
        Budget(
            f"drain with {what} / a plain worker",
            statistics.median(map(truediv, rates[what], rates["plain"])),
            least,
            at_least=True,
        )
        for what, *_, least in _KINDS
    ]


_KINDS: tuple[tuple[str, Task[[int], int], Kind, int, float], ...] = (
    ("4 threads", noop, "threads", 4, 0.5),
    (f"{_COROUTINES} coroutines", noop_async, "asyncio", _COROUTINES, 0.5),
    ("2 processes", noop, "processes", 2, 1.0),
)


def _run_pool(kind: Kind, workers: int) -> None:
    pool = WorkerPool(queue, workers, kind=kind)
    pool.start(until_empty=True)
    pool.wait()
    pool.stop()


def _rate(task: Task[[int], int], drain: Callable[[], None]) -> float:
    """Return how many tasks ended per second."""
    internals = internals_of(queue)
    client = internals.driver.client
    client.flushdb()
    task.submit_many([(number,) for number in range(_TASKS)])
    drain()
    outcomes = client.hvals(internals.keys.done)
    ended = sorted(int(msgspec.json.decode(one)["ended"]) for one in outcomes)
    assert len(ended) == _TASKS, "some have no outcome"
    first, last = _TASKS // 10, _TASKS * 9 // 10
    return (last - first) * 1000 / (ended[last] - ended[first])
