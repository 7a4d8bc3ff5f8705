"""Uneven tasks over the queue: a pool keeps its slots busy to the end.

95 % of the tasks last 1 ms, 5 % last 200 ms, in an order that is shuffled once and the
same in each run. The ideal schedule is all the work divided by the workers; what a pool
takes beyond that is its own cost, and slots that wait while others have too much.
"""

from __future__ import annotations

import random
import time

from benchmarks.measuring import Budget, best
from workstealing.client.task_queue import TaskQueue
from workstealing.testing import Server
from workstealing.workers.worker_pool import WorkerPool

__all__ = ("measure",)

_ROUNDS = 4
_WORKERS = 4
_TASKS = 2_000
_SHORT, _LONG, _LONG_SHARE = 0.001, 0.2, 0.05


def measure() -> list[Budget]:
    """Measure how near to the ideal schedule a pool of threads comes."""
    lengths = _lengths()
    ideal = sum(lengths) / _WORKERS
    with Server(tcp=True) as server:
        seconds = [_drain(server.url, lengths) for _ in range(_ROUNDS)]
    return [
        Budget(
            f"{_TASKS:,} uneven tasks on {_WORKERS} slots / ideal schedule",
            best(seconds) / ideal,
            1.1,
        )
    ]


def _lengths() -> list[float]:
    long = round(_TASKS * _LONG_SHARE)
    lengths = [_LONG] * long + [_SHORT] * (_TASKS - long)
    random.Random(95).shuffle(lengths)
    return lengths


def _drain(url: str, lengths: list[float]) -> float:
    queue = TaskQueue("uneven", url)

    @queue.task(name="nap")
    def nap(seconds: float) -> None:
        time.sleep(seconds)

    nap.submit_many([(seconds,) for seconds in lengths])
    pool = WorkerPool(queue, _WORKERS, kind="threads")
    began_at = time.perf_counter()
    pool.start(until_empty=True)
    pool.wait()
    taken = time.perf_counter() - began_at
    queue.close()
    return taken
