"""What ended lately, by task name: how many, how long, and after which wait."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Literal

from workstealing.inspecting.reachable_shards import read_reachable
from workstealing.queue.keys import QueueKeys
from workstealing.queue.minute_calls import (
    BOUNDS_MS,
    MINUTES_KEPT,
    NUMBERS,
    RUN_NUMBERS,
    TENS_KEPT,
    WAIT_BOUNDS_MS,
    read_stretches,
)
from workstealing.queue.steps import Flow, ask

__all__ = ("HistoryStretch", "QueueHistory", "TaskStat", "read_history")


@dataclass(frozen=True, slots=True)
class HistoryStretch:
    """What ended in one minute; over more than an hour, in ten."""

    at_ms: int
    """Its end, in milliseconds since 1970."""
    done: int
    failed: int
    """Attempts that failed, whether they are made again or not."""


@dataclass(frozen=True, slots=True)
class TaskStat:
    """How tasks of one name did, over all those minutes."""

    task: str
    """`name@version`; `*` for all names beyond a hundred."""
    done: int
    failed: int
    total_ms: int
    """How long all attempts took together."""
    histogram: tuple[int, ...]
    """Attempts by how long they took; `BOUNDS_MS` stand between the numbers."""

    waited_ms: int = 0
    """How long those had waited whose waits were sampled, together."""
    waits: tuple[int, ...] = ()
    """How many of them waited how long; `WAIT_BOUNDS_MS` stand between the numbers.

    That is from their submission, or since they were due, until a worker took them.
    """

    def quantile_ms(self, share: float) -> float:
        """Return about how long that share of attempts took at most."""
        return _quantile(self.histogram, BOUNDS_MS, self.total_ms, share)

    def wait_quantile_ms(self, share: float) -> float:
        """Return about how long that share of tasks waited at most."""
        return _quantile(self.waits, WAIT_BOUNDS_MS, self.waited_ms, share)


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """What ended lately."""

    stretches: tuple[HistoryStretch, ...]
    """The earliest first; those in which nothing ended are there too."""
    tasks: tuple[TaskStat, ...]
    """Those that took most of the time first."""
    stretch_ms: int = 60_000
    """How long each stretch is."""


def read_history(
    shards: Sequence[QueueKeys], now_ms: int, minutes: int
) -> Flow[QueueHistory]:
    """Read what ended in the last minutes, up to eight hours.

    Shards whose node is away are left out.
    """
    minutes = max(1, min(minutes, 10 * TENS_KEPT))
    length: Literal[1, 10] = 1 if minutes <= MINUTES_KEPT else 10
    stretch_ms = length * 60_000
    last = now_ms // stretch_ms
    wanted = range(last - math.ceil(minutes / length) + 1, last + 1)
    parts, _ = yield from read_reachable(
        shards, lambda keys: ask(read_stretches(keys, length, wanted))
    )
    found: list[HistoryStretch] = []
    sums: dict[str, list[int]] = {}
    for stretch, *of_shards in zip(wanted, *parts.values(), strict=True):
        done = failed = 0
        for name, numbers in chain.from_iterable(map(dict.items, of_shards)):
            # Without waits, if none was sampled.
            if len(numbers) not in (RUN_NUMBERS, NUMBERS):
                continue
            done, failed = done + numbers[0], failed + numbers[1]
            known = sums.get(name, ())
            sums[name] = list(map(sum, zip_longest(known, numbers, fillvalue=0)))
        found.append(HistoryStretch((stretch + 1) * stretch_ms, done, failed))
    stats = [
        TaskStat(
            name,
            numbers[0],
            numbers[1],
            numbers[2],
            tuple(numbers[3:RUN_NUMBERS]),
            numbers[RUN_NUMBERS] if len(numbers) == NUMBERS else 0,
            tuple(numbers[RUN_NUMBERS + 1 :]),
        )
        for name, numbers in sums.items()
    ]
    stats.sort(key=lambda one: (-one.total_ms, -one.done, one.task))
    return QueueHistory(tuple(found), tuple(stats), stretch_ms)


def _quantile(
    counts: Sequence[int], bounds_ms: Sequence[int], total_ms: int, share: float
) -> float:
    wanted, seen = share * sum(counts), 0.0
    for n, count in enumerate(counts):
        if count and seen + count >= wanted:
            # As if those of a bucket were spread evenly about their mean.
            low, mean, high = _bucket(counts, bounds_ms, total_ms, n)
            reach = min(mean - low, high - mean)
            return mean + reach * (2 * (wanted - seen) / count - 1)
        seen += count
    return 0.0


def _bucket(
    counts: Sequence[int], bounds_ms: Sequence[int], total_ms: int, n: int
) -> tuple[float, float, float]:
    """Return the lower bound of a bucket, about its mean, and the upper bound.

    How long all took together tells the mean of the bucket that took most of it; of the
    others the middle is taken.
    """
    shares = [count * _middle(bounds_ms, m) for m, count in enumerate(counts)]
    low = float(bounds_ms[n - 1]) if n else 0.0
    is_open = n == len(bounds_ms)
    high = math.inf if is_open else float(bounds_ms[n])
    mean = _middle(bounds_ms, n)
    if shares[n] == max(shares):
        left = total_ms - sum(shares) + shares[n]
        mean = min(max(low, left / counts[n]), high)
    if is_open:
        low = 2.0 ** math.floor(math.log2(mean))
        high = 2 * low
    return low, mean, high


def _middle(bounds_ms: Sequence[int], bucket: int) -> float:
    """Return the geometric middle of a bucket: each bound is twice the one before."""
    return bounds_ms[bucket - 1] * math.sqrt(2) if bucket else 0.5
