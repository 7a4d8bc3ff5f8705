"""The work that waits in a pool, and how much may.

This is the truth about waiting work: the first to claim a piece of it, be it a worker,
a caller that cancels or a pool that stops, is the only one to have it. The deques only
hold where a worker finds it.
"""

from __future__ import annotations

from threading import Condition, Lock
from typing import Any

from workstealing.clock import Clock
from workstealing.errors import PoolFull, PoolStopped
from workstealing.pool.work import Work

__all__ = ("WaitingWork",)


class WaitingWork:
    """Waiting work by its id, up to a limit."""

    def __init__(self, pool: str, limit: int, clock: Clock) -> None:
        self._pool = pool
        self._limit = limit
        self._clock = clock
        self._by_id: dict[str, Work[Any]] = {}
        self._lock = Lock()
        self._room = Condition(self._lock)
        self._accepted = 0
        # How many callers wait for room.
        self._blocked = 0
        self._is_closed = False

    def __len__(self) -> int:
        with self._lock:
            return len(self._by_id)

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
    def accepted(self) -> int:
        """How much work was ever added."""
        return self._accepted

    @property
    def is_closed(self) -> bool:
        """Whether no more work is accepted."""
        return self._is_closed

    def add(self, work: Work[Any], timeout: float | None, *, is_bounded: bool) -> None:
        """Add work and give it an id; if it must, wait *timeout* seconds for room.

        Raises:
            PoolFull: there was no room in time.
            PoolStopped: no more work is accepted.
        """
        with self._lock:
            if is_bounded and len(self._by_id) >= self._limit:
                self._wait_for_room(timeout)
            if self._is_closed:
                raise PoolStopped(
                    f"{self._pool} was stopped and accepts no more work: make a new"
                    " pool"
                )
            self._accepted += 1
            work.id = f"{self._pool}-{self._accepted}"
            work.submitted_at = self._clock.monotonic()
            self._by_id[work.id] = work

    def claim(self, work: Work[Any]) -> bool:
        """Take work out; False if another thread did so first."""
        with self._lock:
            is_mine = self._by_id.pop(work.id, None) is not None
            if self._blocked:
                self._room.notify()
            return is_mine

    def find(self, work_id: str) -> Work[Any] | None:
        """Return the waiting work of that id."""
        with self._lock:
            return self._by_id.get(work_id)

    def oldest_at(self) -> float | None:
        """Return when the oldest waiting work was submitted; None if none waits."""
        with self._lock:
            oldest = next(iter(self._by_id.values()), None)
            return None if oldest is None else oldest.submitted_at

    def close(self) -> None:
        """Accept no more work; callers that wait for room get `PoolStopped`."""
        with self._lock:
            self._is_closed = True
            self._room.notify_all()

    def close_unlocked(self) -> None:
        """Accept no more work, where no lock may be taken and no caller can wait."""
        self._is_closed = True

    def claim_all(self) -> list[Work[Any]]:
        """Take everything out, in the order it was submitted."""
        with self._lock:
            works = list(self._by_id.values())
            self._by_id.clear()
            self._room.notify_all()
            return works

    def left_by_parent(self) -> list[Work[Any]]:
        """Return what waits, in a forked child, where nobody may release the lock."""
        return list(self._by_id.values())

    def _wait_for_room(self, timeout: float | None) -> None:
        self._blocked += 1
        try:
            has_room = self._room.wait_for(
                lambda: self._is_closed or len(self._by_id) < self._limit, timeout
            )
        finally:
            self._blocked -= 1
        if not has_room:
            raise PoolFull(
                f"{self._pool} has {len(self._by_id):,} pieces of work waiting and its"
                f" buffer is {self._limit:,}: try again later, wait longer, or raise"
                " buffer"
            )
