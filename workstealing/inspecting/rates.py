"""How fast a queue works: differences between two stats, by the server's clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from workstealing.inspecting.views import QueueStat

__all__ = ("RateMeter", "Rates")


@dataclass(frozen=True, slots=True)
class Rates:
    """Tasks per second."""

    submitted: float
    done: float
    dead: float
    cancelled: float
    retried: float
    reassigned: float
    stolen: float


class RateMeter:
    """Turns a series of stats into rates.

    Args:
        window: a rate is the mean over at most this many seconds.
    """

    def __init__(self, window: float = 10.0) -> None:
        self._window_ms = window * 1000
        self._seen: deque[QueueStat] = deque()

    def note(self, now: QueueStat) -> Rates | None:
        """Add a stat and return the rates; None until there are two to compare."""
        seen = self._seen
        if seen and not _follows(seen[-1], now):
            seen.clear()
        seen.append(now)
        # One from before the window is kept, so that the window is covered entirely.
        while len(seen) > 2 and now.now_ms - seen[1].now_ms >= self._window_ms:
            seen.popleft()
        first = seen[0]
        passed_ms = now.now_ms - first.now_ms
        if passed_ms <= 0:
            return None
        before, after = first.totals, now.totals

        def per_second(name: str) -> float:
            number: int = getattr(after, name) - getattr(before, name)
            return number * 1000 / passed_ms

        return Rates(*map(per_second, Rates.__slots__))


def _follows(before: QueueStat, after: QueueStat) -> bool:
    """Return False if the queue was deleted and created again in between."""
    return (
        after.now_ms >= before.now_ms
        and after.totals.submitted >= before.totals.submitted
        and after.totals.done >= before.totals.done
    )
