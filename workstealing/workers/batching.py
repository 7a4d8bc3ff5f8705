"""How much to take at once: as much as lasts about 50 ms, and one if tasks are long.

So no more than that is ever out of reach of a thief, and a crash repeats no more.
"""

from __future__ import annotations

__all__ = ("LARGEST_BATCH", "SPAN_SECONDS", "Batching")

SPAN_SECONDS = 0.05
# More than that does not fit into one call of a script.
LARGEST_BATCH = 1000
# Beyond some hundred, Redis searches the small hashes of what is held from end to end.
_MOST = 100
# Batches that wait in the deque: enough to be worth a theft.
_BATCHES_KEPT = 8
_MOST_KEPT = 1000
# How much the latest batch counts for; high, since tasks come in runs of one kind.
_WEIGHT = 0.5


class Batching:
    """Learns from each batch how long tasks last."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._mean: float | None = None
        self._want = 1

    @property
    def want(self) -> int:
        """How many tasks to hold at once."""
        return self._want

    @property
    def keep(self) -> int:
        """How many more to have in the deque, where thieves reach them."""
        return min(_MOST_KEPT, _BATCHES_KEPT * self._want)

    def lasted(self, tasks: int, seconds: float) -> None:
        """Learn that so many tasks took so long."""
        if tasks <= 0:
            return
        mean = seconds / tasks
        if self._mean is not None:
            mean = _WEIGHT * mean + (1.0 - _WEIGHT) * self._mean
        self._mean = mean
        fitting = int(SPAN_SECONDS / mean) if mean > 0.0 else self._most
        # Growth is careful: what was quick so far need not stay so.
        self._want = max(1, min(fitting, 4 * self._want, self._most))
