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
                low = BOUNDS_MS[n - 1] if n else 0.25
                high = BOUNDS_MS[n] if n < len(BOUNDS_MS) else low * 4
                # Within a bucket as if they were spread evenly over its powers.
                within = (wanted - seen) / count
                return float(
                    math.exp(math.log(low) + within * (math.log(high) - math.log(low)))
                )
            seen += count
        return 0.0


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
