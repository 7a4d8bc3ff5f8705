"""What waits in a pool, and how much may.

The buffer is the truth about waiting work: who claims a piece of work first, be it a
worker, a canceller or a stopping pool, is the only one to have it. Where the work lies
in the deques is only how it is found.
"""

from __future__ import annotations

from threading import Condition, Lock
from typing import Any

from workstealing.clock import Clock
from workstealing.errors import PoolFull, PoolStopped
from workstealing.pool.work import Work

__all__ = ("Buffer",)


class Buffer:
    """Holds waiting work by its id, up to a limit."""

    def __init__(self, name: str, limit: int, clock: Clock) -> None:
        self._name = name
        self._limit = limit
        self._clock = clock
        self._waiting: dict[str, Work[Any]] = {}
        self._lock = Lock()
        self._room = Condition(self._lock)
        self._number = 0
        self._queuing = 0
        self._is_closed = False

    def __len__(self) -> int:
        with self._lock:
            return len(self._waiting)

    @property
    def limit(self) -> int:
        """How much may wait."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        with self._lock:
            self._limit = limit
            self._room.notify_all()

    @property
    def given(self) -> int:
        """How much work was ever taken in."""
        return self._number

    @property
    def is_closed(self) -> bool:
        """Whether no more work is taken."""
        return self._is_closed

    def add(self, work: Work[Any], patience: float | None, is_bounded: bool) -> None:
        """Take work in and give it an id; wait for room, if it must, that long.

        Raises:
            PoolFull: there was no room in time.
            PoolStopped: no more work is taken.
        """
        with self._lock:
            if is_bounded and len(self._waiting) >= self._limit:
                self._wait_for_room(patience)
            if self._is_closed:
                raise PoolStopped(
                    f"{self._name} was stopped and takes no more work: make a new one"
                )
            self._number += 1
            work.id = f"{self._name}-{self._number}"
            work.given_at = self._clock.monotonic()
            self._waiting[work.id] = work

    def claim(self, work: Work[Any]) -> bool:
        """Take work out; False if another was first."""
        with self._lock:
            is_mine = self._waiting.pop(work.id, None) is not None
            if self._queuing:
                self._room.notify()
            return is_mine

    def find(self, work_id: str) -> Work[Any] | None:
        """Return the waiting work of that id."""
        with self._lock:
            return self._waiting.get(work_id)

    def oldest_at(self) -> float | None:
        """When the work that waits longest was given; None if nothing waits."""
        with self._lock:
            oldest = next(iter(self._waiting.values()), None)
            return None if oldest is None else oldest.given_at

    def close(self) -> None:
        """Take no more work; whoever waits for room is told so."""
        with self._lock:
            self._is_closed = True
            self._room.notify_all()

    def close_unlocked(self) -> None:
        """Take no more work, from where no lock may be taken; nobody waits for room."""
        self._is_closed = True

    def claim_all(self) -> list[Work[Any]]:
        """Take everything out, in the order it came."""
        with self._lock:
            works = list(self._waiting.values())
            self._waiting.clear()
            self._room.notify_all()
            return works

    def left_by_parent(self) -> list[Work[Any]]:
        """Return what waits, in a forked child: its locks may be held for ever."""
        return list(self._waiting.values())

    def _wait_for_room(self, patience: float | None) -> None:
        self._queuing += 1
        try:
            has_room = self._room.wait_for(
                lambda: self._is_closed or len(self._waiting) < self._limit, patience
            )
        finally:
            self._queuing -= 1
        if not has_room:
            raise PoolFull(
                f"{self._name} has {len(self._waiting):,} pieces of work waiting and"
                f" its buffer is {self._limit:,}: try again later, wait longer, or"
                " raise the buffer"
            )
