"""What a pool costs and gains against `concurrent.futures.ThreadPoolExecutor`."""

from __future__ import annotations

import time
from concurrent.futures import Executor, ThreadPoolExecutor

from benchmarks.measuring import Budget, alternate, best
from workstealing.pool.pool import Pool

__all__ = ("measure",)

_WORKERS = 4
_CALLS = 100_000
_ROUNDS = 40
_SHORT_S, _LONG_S = 0.0002, 0.05
_UNEVEN = ([_SHORT_S] * 100 + [_LONG_S]) * 10


def measure() -> list[Budget]:
    """Measure all that concerns the pool."""
    return [_calls(), _uneven()]


def _calls() -> Budget:
    """Compare 10⁵ calls of nothing several times over, by the CPU of all threads."""

    def give(executor: Executor) -> None:
        works = [executor.submit(_nothing) for _ in range(_CALLS * 4 // _ROUNDS)]
        for work in works:
            work.result()

    with ThreadPoolExecutor(_WORKERS) as theirs, Pool(_WORKERS) as ours:
        seconds = alternate(
            _ROUNDS,
            {"theirs": lambda: give(theirs), "ours": lambda: give(ours)},
            time.process_time,
        )
    ratio = best(seconds["ours"]) / best(seconds["theirs"])
    return Budget("10⁵ empty calls / ThreadPoolExecutor's", ratio, 1.3)


def _uneven() -> Budget:
    """Feed one worker 1,000 short and 10 long ones, and let it wait for them."""

    def feed(executor: Executor) -> None:
        works = [executor.submit(time.sleep, seconds) for seconds in _UNEVEN]
        for work in works:
            work.result()

    def run(executor: Executor) -> None:
        executor.submit(feed, executor).result()

    with ThreadPoolExecutor(_WORKERS) as theirs, Pool(_WORKERS) as ours:
        seconds = alternate(
            8, {"theirs": lambda: run(theirs), "ours": lambda: run(ours)}
        )
    ratio = best(seconds["ours"]) / best(seconds["theirs"])
    return Budget("1,000 short and 10 long, fed to one worker / its", ratio, 1.0)


def _nothing() -> None:
    return None
