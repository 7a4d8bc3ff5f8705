"""Folds what ended into a few numbers per task name, until the next heartbeat.

Slots append, the loop folds and takes away: no thread waits for another. A task costs
an append here and nothing in Redis; each worker adds its numbers to the hash of the
minute every few seconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

__all__ = ("BOUNDS_MS", "NUMBERS", "MinuteTally")

BOUNDS_MS = (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536)
"""Where one bucket of the histogram ends and the next one begins; ten of them."""
NUMBERS = 3 + len(BOUNDS_MS) + 1
"""How many numbers there are of a task: done, failed, milliseconds, the histogram."""

# A worker that ends more between two looks of its loop loses count of some.
_MOST = 100_000
_NS = 1_000_000


class MinuteTally:
    """What ended on one worker since it was last taken away."""

    def __init__(self) -> None:
        self._ended: deque[tuple[str, int, bool]] = deque(maxlen=_MOST)
        self.note = self._ended.append
        """Called with `name@version`, nanoseconds, and whether it failed."""

    def __bool__(self) -> bool:
        return bool(self._ended)

    def take(self) -> dict[str, list[int]]:
        """Take away the numbers of each task; see `NUMBERS`."""
        found: dict[str, list[int]] = {}
        ended = self._ended
        # Others append meanwhile.
        for _ in range(len(ended)):
            ability, took_ns, is_failed = ended.popleft()
            numbers = found.get(ability)
            if numbers is None:
                numbers = found[ability] = [0] * NUMBERS
            took_ns = max(0, took_ns)
            numbers[is_failed] += 1
            numbers[2] += took_ns
            numbers[3 + bisect_right(BOUNDS_MS, took_ns / _NS)] += 1
        for numbers in found.values():
            # At the end: many quick ones make a millisecond, too.
            numbers[2] //= _NS
        return found
