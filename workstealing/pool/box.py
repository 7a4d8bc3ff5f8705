"""One deque, its lock and its books."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ("Box", "Totals")

Item = TypeVar("Item")


class Totals:
    """What ever happened at a deque."""

    __slots__ = ("conflicts", "ended", "pushed", "stolen")

    def __init__(self) -> None:
        self.pushed = 0
        self.ended = 0
        self.stolen = 0
        self.conflicts = 0

    def add(self, other: Totals) -> None:
        """Keep the books of one that has left."""
        self.pushed += other.pushed
        self.ended += other.ended
        self.stolen += other.stolen
        self.conflicts += other.conflicts


class Box(Totals, Generic[Item]):
    """One worker's deque and its books, all guarded by its lock."""

    __slots__ = ("in_flight", "is_gone", "items", "lock")

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()
        self.items: deque[Item] = deque()
        self.in_flight = 0
        self.is_gone = False

    def take_in(self, items: Iterable[Item]) -> bool:
        """Put items at the back; False if the worker has left."""
        with self.lock:
            if not self.is_gone:
                self.items.extend(items)
            return not self.is_gone
