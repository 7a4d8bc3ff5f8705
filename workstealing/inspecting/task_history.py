"""What ended over the last minutes or hours, by task name: how many, and how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from workstealing.queue.keys import QueueKeys
from workstealing.queue.minute_calls import (
    BOUNDS_MS,
    MINUTES_KEPT,
    NUMBERS,
    read_minutes,
)
from workstealing.queue.steps import Flow, ask

__all__ = ("MinuteStat", "QueueHistory", "TaskStat", "read_history")

# Minutes that one script reads.
_AT_ONCE = 60


@dataclass(frozen=True, slots=True)
class MinuteStat:
    """What ended in one minute."""

    at_ms: int
    """Its end, in milliseconds since 1970."""
    done: int
    failed: int
    """Attempts that failed, whether they are made again or not."""


@dataclass(frozen=True, slots=True)
class TaskStat:
    """How tasks of one name did, over all those minutes."""

    task: str
    """`name@version`; `*` for all names beyond the first hundred of a minute."""
    done: int
    failed: int
    total_ms: int
    """How long all attempts took together."""
    histogram: tuple[int, ...]
    """Attempts by how long they took; `BOUNDS_MS` stand between the numbers."""

    def quantile_ms(self, share: float) -> float:
        """Return about how long that share of attempts took at most."""
        wanted, seen = share * sum(self.histogram), 0.0
        for n, count in enumerate(self.histogram):
            if count and seen + count >= wanted:
                # As if those of a bucket were spread evenly about their mean.
                low, mean, high = self._bucket(n)
                reach = min(mean - low, high - mean)
                return mean + reach * (2 * (wanted - seen) / count - 1)
            seen += count
        return 0.0

    def _bucket(self, n: int) -> tuple[float, float, float]:
        """Return the lower bound of a bucket, about its mean, and the upper bound.

        How long all took together tells the mean of the bucket that took most of it;
        of the others the middle is taken.
        """
        shares = [count * _middle(m) for m, count in enumerate(self.histogram)]
        low = float(BOUNDS_MS[n - 1]) if n else 0.0
        is_open = n == len(BOUNDS_MS)
        high = math.inf if is_open else float(BOUNDS_MS[n])
        mean = _middle(n)
        if shares[n] == max(shares):
            left = self.total_ms - sum(shares) + shares[n]
            mean = min(max(low, left / self.histogram[n]), high)
        if is_open:
            low = 2.0 ** math.floor(math.log2(mean))
            high = 2 * low
        return low, mean, high


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """What ended lately."""

    minutes: tuple[MinuteStat, ...]
    """The earliest first; those in which nothing ended are there too."""
    tasks: tuple[TaskStat, ...]
    """Those that took most of the time first."""


def read_history(keys: QueueKeys, now_ms: int, minutes: int) -> Flow[QueueHistory]:
    """Read what ended in the last minutes, up to eight hours."""
    minutes = max(1, min(minutes, MINUTES_KEPT))
    last = now_ms // 60_000
    wanted = range(last - minutes + 1, last + 1)
    found: list[MinuteStat] = []
    sums: dict[str, list[int]] = {}
    for start in range(0, minutes, _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        read = yield from ask(read_minutes(keys, some))
        for minute, tasks in zip(some, read, strict=True):
            done = failed = 0
            for name, numbers in tasks.items():
                if len(numbers) != NUMBERS:
                    continue
                done, failed = done + numbers[0], failed + numbers[1]
                sum_of = sums.setdefault(name, [0] * NUMBERS)
                for n, number in enumerate(numbers):
                    sum_of[n] += number
            found.append(MinuteStat((minute + 1) * 60_000, done, failed))
    stats = [
        TaskStat(name, numbers[0], numbers[1], numbers[2], tuple(numbers[3:]))
        for name, numbers in sums.items()
    ]
    stats.sort(key=lambda one: (-one.total_ms, -one.done, one.task))
    return QueueHistory(tuple(found), tuple(stats))


def _middle(bucket: int) -> float:
    """Return the geometric middle of a bucket: each bound is twice the one before."""
    return BOUNDS_MS[bucket - 1] * math.sqrt(2) if bucket else 0.5
