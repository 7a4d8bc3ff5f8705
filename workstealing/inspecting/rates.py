"""How fast a queue goes: differences between looks, by the clock of the server."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from workstealing.inspecting.values import Stat

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
    """Remembers the looks of some seconds.

    Args:
        window: seconds that a rate is the mean of, at most.
    """

    def __init__(self, window: float = 10.0) -> None:
        self._window_ms = window * 1000
        self._seen: deque[Stat] = deque()

    def note(self, now: Stat) -> Rates | None:
        """Take another look into account; None until there are two to compare."""
        seen = self._seen
        if seen and not _follows(seen[-1], now):
            seen.clear()
        seen.append(now)
        # The last one from before the window is kept: what it covers is then whole.
        while len(seen) > 2 and now.now_ms - seen[1].now_ms >= self._window_ms:
            seen.popleft()
        first = seen[0]
        passed_ms = now.now_ms - first.now_ms
        if passed_ms <= 0:
            return None
        before, after = first.totals, now.totals

        def rate(name: str) -> float:
            number: int = getattr(after, name) - getattr(before, name)
            return number * 1000 / passed_ms

        return Rates(*map(rate, Rates.__slots__))


def _follows(before: Stat, after: Stat) -> bool:
    """Tell whether it is the same queue, later: one that was deleted begins anew."""
    return (
        after.now_ms >= before.now_ms
        and after.totals.submitted >= before.totals.submitted
        and after.totals.done >= before.totals.done
    )
