"""A few numbers that a child process writes and its parent reads.

Shared memory, one writer per board: no locks, and nothing to decode when a child dies
in the middle of a word.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Any

__all__ = ("Board", "Line")


@unique
class Line(IntEnum):
    """What is written where."""

    READY = 0
    """1.0 when it has joined its queue."""
    PULSE = 1
    """When its heart beat last, as a monotonic time that all processes share."""
    KILL_AT = 2
    """When what it runs should have ended at the latest; 0.0 is never."""
    RUNNING = 3
    TAKEN = 4
    STOLEN = 5
    REFUSED = 6
    LOST_LEASES = 7
    FAILURES = 8
    DUE = 9
    ANSWERED = 10
    """When Redis answered it last."""
    BORN = 11
    """1.0 when it has imported its queue: from then on a task may be what kills it."""


class Board:
    """The numbers of one child."""

    def __init__(self, context: Any) -> None:
        self._numbers = context.RawArray("d", len(Line))

    def __getitem__(self, line: Line) -> float:
        return float(self._numbers[line])

    def __setitem__(self, line: Line, number: float) -> None:
        self._numbers[line] = number
