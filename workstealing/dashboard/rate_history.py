"""Remembers how fast a queue works, with one point for each ten seconds.

Reading more often adds no points, so a program that reads the API each second does not
change the chart that a person sees.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from workstealing.dashboard.drawings import RatePoint
from workstealing.inspecting import QueueStat

__all__ = ("RateHistory",)

_SLOT_MS = 10_000
_KEPT = 61


class RateHistory:
    """Tasks per second over the last ten minutes, as far as somebody looked."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int, int]] = deque(maxlen=_KEPT)

    def note(self, stat: QueueStat) -> None:
        """Add a stat, if it is the first of its ten seconds."""
        seen, totals = self._seen, stat.totals
        if seen and (stat.now_ms < seen[-1][0] or totals.done < seen[-1][1]):
            # The queue was deleted and created again.
            seen.clear()
        if not seen or stat.now_ms // _SLOT_MS > seen[-1][0] // _SLOT_MS:
            failed = totals.dead + totals.retried
            seen.append((stat.now_ms, totals.done, failed))

    def points(self) -> tuple[RatePoint, ...]:
        """Return the rates between each two looks."""
        return tuple(
            RatePoint(
                at_ms,
                (done - done_before) * 1000 / (at_ms - before_ms),
                (failed - failed_before) * 1000 / (at_ms - before_ms),
            )
            for (before_ms, done_before, failed_before), (
                at_ms,
                done,
                failed,
            ) in pairwise(self._seen)
        )
