"""What a pool tells about itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workstealing.pool.work import Work, WorkStatus

__all__ = ("PoolStats", "StopReport")


@dataclass(frozen=True, slots=True)
class PoolStats:
    """A pool at one moment."""

    active: int
    """Workers that are at work."""
    total: int
    """Workers."""
    waiting: int
    """Work not begun."""
    stolen: int
    """Work that ever went from one worker's deque to another worker."""


@dataclass(frozen=True, slots=True)
class StopReport:
    """What became of work that was in the way of a stop."""

    not_begun: tuple[Work[Any], ...] = ()
    """Taken out before it was begun, in the order it came. It is discarded; its
    `function`, `arguments` and `keywords` are kept, to be given to another pool."""
    interrupted: tuple[Work[Any], ...] = ()
    """Stopped while it ran; it is discarded."""
    running: tuple[Work[Any], ...] = ()
    """Still running: nobody interrupted it, or it could not be, as inside a C call."""
    unknown: tuple[str, ...] = ()
    """Ids of no work that waits or runs: it was over, or never here."""

    @classmethod
    def of(
        cls,
        running: Iterable[Work[Any]],
        *,
        not_begun: Iterable[Work[Any]] = (),
        unknown: Iterable[str] = (),
    ) -> StopReport:
        """Sort what ran when the stop began by how far it is now."""
        # Without what was cancelled just before it would have run.
        ran = [(work, work.status()) for work in running if not work.cancelled()]
        return cls(
            tuple(not_begun),
            tuple(work for work, status in ran if status is WorkStatus.DISCARDED),
            tuple(work for work, _ in ran if not work.done()),
            tuple(unknown),
        )
