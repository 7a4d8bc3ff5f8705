"""How many tasks a slot takes at once: as many as last about 50 ms."""

from __future__ import annotations

__all__ = ("BATCH_SECONDS", "LARGEST_BATCH", "TOGETHER_SECONDS", "Batching")

BATCH_SECONDS = 0.05
"""How long one batch should last."""
TOGETHER_SECONDS = 0.005
"""How long reports of quick tasks wait for each other, if no slot waits for a task."""
LARGEST_BATCH = 1000
"""The most tasks that fit into one call of a script."""

# Beyond some hundred, Redis searches the small hashes of held tasks from end to end.
_MOST = 100
# Batches that wait in the deque: enough to be worth a theft.
_BATCHES_KEPT = 8
_MOST_KEPT = 1000
# How much the latest batch counts for; high, since tasks come in runs of one kind.
_WEIGHT = 0.5


class Batching:
    """Learns from each batch how long tasks last.

    Args:
        most: how many tasks to hold at once, at most.
        overlaps: half of them are run while the other half is on its way.
    """

    def __init__(self, most: int = _MOST, *, overlaps: bool = False) -> None:
        self._most = most
        self._overlaps = overlaps
        self._mean: float | None = None
        self._want = 1
        self._half = 0

    @property
    def want(self) -> int:
        """How many tasks to hold at once."""
        return self._want

    @property
    def half(self) -> int:
        """How many to run while as many are on their way; 0 if tasks last too long."""
        return self._half

    @property
    def is_quick(self) -> bool:
        """Whether tasks are so short that waiting for running ones is worth it."""
        return self._mean is not None and self._mean <= 2 * TOGETHER_SECONDS

    @property
    def keep(self) -> int:
        """How many more to have in the deque, where thieves reach them."""
        return min(_MOST_KEPT, _BATCHES_KEPT * self._want)

    def lasted(self, tasks: int, seconds: float) -> None:
        """Learn how long this many tasks took."""
        if tasks <= 0:
            return
        mean = seconds / tasks
        if self._mean is not None:
            mean = _WEIGHT * mean + (1.0 - _WEIGHT) * self._mean
        self._mean = mean
        fitting = int(BATCH_SECONDS / mean) if mean > 0.0 else self._most
        # Growth is careful: what was quick so far need not stay so.
        self._want = max(1, min(fitting, 4 * self._want, self._most))
        half = self._want // 2
        self._half = half if self._overlaps and half > 1 else 0
