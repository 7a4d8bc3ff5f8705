"""What a pool of processes and its children tell each other.

The pool starts a child with `ChildOrders`, and sends `STOP` or `HOT` through a pipe.
The child shows what it does in `ChildNumbers`; its `ExitCode` says why it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Any

from workstealing.workers.identity import UntilEmpty
from workstealing.workers.queue_choice import LocatedChoice

__all__ = ("HOT", "STOP", "ChildNumber", "ChildNumbers", "ChildOrders", "ExitCode")

STOP = b"stop"
"""Finish the running task, then end."""
HOT = b"hot"
"""End now, and hand back the running task."""


@dataclass(frozen=True, slots=True)
class ChildOrders:
    """What a child needs to know when it starts."""

    choice: LocatedChoice
    pool: str
    index: int
    incarnation: str
    batch: int
    until_empty: UntilEmpty
    max_tasks: int | None
    max_memory: float | None
    log_levels: Mapping[str, int]


class ExitCode(IntEnum):
    """How a child tells its parent why it ended.

    A task may exit with any of these, too; `ChildNumber.ENDED` says that none did.
    """

    STOPPED = 0
    """It was asked to."""
    EMPTY = 9
    """There is nothing left to do for a worker that ends then."""
    RECYCLED = 10
    """It has run as many tasks, or holds as much memory, as it should."""
    CUT_OFF = 11
    """It was told to end at once, and a task was ended with it."""
    GIVEN_UP = 12
    """A task exceeded its time limit, or ignored its cancellation."""
    NOT_OPENED = 13
    """A resource could not be opened; the pipe says which."""
    NAME_TAKEN = 14
    """Another process has joined under its name, and is not to be displaced in turn."""


@unique
class ChildNumber(IntEnum):
    """The place of each number in `ChildNumbers`."""

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


class ChildNumbers:
    """The numbers that a child writes and its pool reads.

    They are in shared memory with a single writer, so they need no lock, and there is
    nothing to decode if a child dies in the middle of a write.
    """

    def __init__(self, context: Any) -> None:
        self._numbers = context.RawArray("d", len(ChildNumber))

    def __getitem__(self, which: ChildNumber) -> float:
        return float(self._numbers[which])

    def __setitem__(self, which: ChildNumber, number: float) -> None:
        self._numbers[which] = number
