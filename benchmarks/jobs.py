"""A slice of each ready-made job over 10⁶ items against the same slice over 10³.

Both sides are on one server that has nothing else, in two of its databases. Between
the slices, garbage is put back, as much as a slice clears away: so the data stays as
large as it is, and both sides do the same work. What is put back is not timed.
"""

from __future__ import annotations

import gc
import statistics
import time

from benchmarks.job_data import ALL, Data, Make
from benchmarks.measuring import Budget
from workstealing.drivers.connect import connect
from workstealing.recruiting.job import Duty
from workstealing.testing import Server, wait_until

__all__ = ("measure",)

SMALL, LARGE = 10**3, 10**6
_ROUNDS = 300
_WARM_UP = 50
_SETTLE_SECONDS = 60.0


def measure() -> list[Budget]:
    """Measure all ready-made jobs."""
    return [
        Budget(f"{what}: {LARGE:,} / {SMALL:,}", _ratio(make), 2)
        for what, make in ALL.items()
    ]


def _ratio(make: Make) -> float:
    with Server(tcp=True) as server:
        address = server.url.removesuffix("/0")
        small = make(connect(f"{address}/0", profile="tasks"), SMALL)
        large = make(connect(f"{address}/1", profile="tasks"), LARGE)
        _settle(large)
        seconds = _alternate(small, large)
        for data in (small, large):
            data.client.close()
    small_seconds, large_seconds = map(statistics.median, seconds)
    return large_seconds / small_seconds


def _settle(data: Data) -> None:
    """Wait until the table of keys that has just grown is in order again."""
    rehashing = "mem_overhead_db_hashtable_rehashing"  # only newer servers tell
    wait_until(
        lambda: not data.client.info("memory").get(rehashing),
        _SETTLE_SECONDS,
        "the server to end rehashing",
    )


def _alternate(*sides: Data) -> list[list[float]]:
    """Return the seconds of each slice, side by side."""
    seconds: list[list[float]] = [[] for _ in sides]
    worked = 0
    gc.collect()
    gc.disable()
    try:
        for _ in range(_WARM_UP + _ROUNDS):
            for data, taken in zip(sides, seconds, strict=True):
                data.litter()
                began_at = time.perf_counter()
                duties = [data.job.recruited() for _ in range(data.turns)]
                taken.append(time.perf_counter() - began_at)
                worked += any(duty is not Duty.DISMISSED for duty in duties)
    finally:
        gc.enable()
    # A sample may happen to miss all garbage, but not often.
    assert worked > 0.95 * len(sides) * (_WARM_UP + _ROUNDS), worked
    return [taken[_WARM_UP:] for taken in seconds]
