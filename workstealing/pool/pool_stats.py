"""What a pool reports: its numbers at one moment, and what a stop did to its work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workstealing.pool.work import Work, WorkStatus

__all__ = ("PoolStats", "StopReport")


@dataclass(frozen=True, slots=True)
class PoolStats:
    """A pool at one moment."""

    workers: int = 0
    """Workers: threads, slots or processes."""
    running: int = 0
    """Work, or tasks, that run now."""
    waiting: int = 0
    """Work, or tasks that are due, not begun yet."""
    stolen: int = 0
    """Work, or tasks, ever taken from the deque of another worker."""


@dataclass(frozen=True, slots=True)
class StopReport:
    """What `stop()`, `scale()` or `discard()` of a `Pool` did to its work."""

    not_begun: tuple[Work[Any], ...] = ()
    """Taken out before it began, in the order it was submitted. It is discarded; its
    `function`, `arguments` and `keywords` are kept, to be submitted to another pool."""
    interrupted: tuple[Work[Any], ...] = ()
    """Stopped while it ran; it is discarded."""
    running: tuple[Work[Any], ...] = ()
    """Still running: it was not interrupted, or cannot be, as inside a C call."""
    unknown: tuple[str, ...] = ()
    """Ids of no work that waits or runs: it has ended, or was never in this pool."""

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
