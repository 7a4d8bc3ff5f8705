"""A few numbers that a child process writes and its parent reads.

Shared memory with one writer: no locks, and nothing to decode when a child dies in the
middle of a word.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Any

__all__ = ("Counter", "SharedCounters")


@unique
class Counter(IntEnum):
    """Which number is where."""

    READY = 0
    """1.0 when the child has joined its queue."""
    TICKED_AT = 1
    """When its supervisor looked last, as a monotonic time that all processes share."""
    KILL_AT = 2
    """When its task should have ended at the latest; 0.0 is never."""
    RUNNING = 3
    TAKEN = 4
    STOLEN = 5
    REFUSED = 6
    LOST_LEASES = 7
    FAILURES = 8
    DUE = 9
    ANSWERED_AT = 10
    """When Redis answered the child last."""
    IMPORTED = 11
    """1.0 when it has imported its queue and opened its resources.

    From then on a task may be what kills it.
    """
    ENDED = 12
    """1.0 when it ends by itself: only then does its exit code say why."""
    REPORTED = 13
    """Tasks that ended on it."""


class SharedCounters:
    """The numbers of one child."""

    def __init__(self, context: Any) -> None:
        self._numbers = context.RawArray("d", len(Counter))

    def __getitem__(self, counter: Counter) -> float:
        return float(self._numbers[counter])

    def __setitem__(self, counter: Counter, number: float) -> None:
        self._numbers[counter] = number
