"""One worker's deque: its items, its lock, and what was counted there."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

__all__ = ("DequeCounts", "StolenWork", "WorkDeque")

Item = TypeVar("Item")


class DequeCounts:
    """What was ever counted at a deque."""

    __slots__ = ("ended", "pushed", "stolen")

    def __init__(self) -> None:
        self.pushed = 0
        self.ended = 0
        self.stolen = 0

    def add(self, other: DequeCounts) -> None:
        """Add the counts of a deque that is gone."""
        self.pushed += other.pushed
        self.ended += other.ended
        self.stolen += other.stolen


class WorkDeque(DequeCounts, Generic[Item]):
    """A worker's deque and its counts, all guarded by its lock."""

    __slots__ = ("in_flight", "is_gone", "items", "lock")

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()
        self.items: deque[Item] = deque()
        self.in_flight = 0
        """Items that its worker has taken and is not done with."""
        self.is_gone = False
        """Its worker has left."""

    def extend(self, items: Iterable[Item]) -> bool:
        """Put items at the back; False if the worker has left."""
        with self.lock:
            if not self.is_gone:
                self.items.extend(items)
            return not self.is_gone


@dataclass(frozen=True, slots=True)
class StolenWork(Generic[Item]):
    """What a thief got."""

    victim: Hashable
    item: Item
    """In flight with the thief."""
    moved: int
    """How many more now wait at the back of the thief's own deque."""
    left: int
    """How many the victim still has."""
