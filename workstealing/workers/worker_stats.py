"""What the loop of a worker has counted, and what a pool tells of its workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from workstealing.pool.work import PoolStats

__all__ = ("LoopStats", "WorkerStats")


@dataclass(slots=True)
class LoopStats:
    """What the loop of one worker has counted since it began."""

    exchanges: int = 0
    taken: int = 0
    ended: int = 0
    """Tasks whose reports Redis has."""
    stolen: int = 0
    refused: int = 0
    """Reports that came too late: another worker had the task by then."""
    lost_leases: int = 0
    failures: int = 0
    """Exchanges that Redis did not answer, or that too few replicas have."""
    due: int = 0
    """Tasks of the queue that were due and had not ended, at the last exchange."""

    @staticmethod
    def total(parts: Sequence[LoopStats]) -> LoopStats:
        """Add up what the loops of several queues have counted."""
        return LoopStats(
            *(
                sum(getattr(part, one.name) for part in parts)
                for one in fields(LoopStats)
            )
        )


@dataclass(frozen=True, slots=True)
class WorkerStats(PoolStats):
    """What a `WorkerPool` does now, and what it has counted since it began.

    Its workers are slots or processes; `waiting` is how many tasks of the queue were
    due and had not ended, at the last look.
    """

    taken: int = 0
    ended: int = 0
    """Tasks that its workers have reported: done, failed, or going back."""
    refused: int = 0
    """Reports that came too late: another worker had the task by then."""
    lost_leases: int = 0
    failures: int = 0
    """Exchanges that Redis did not answer, or that too few replicas have."""
    zombies: int = 0
    """Tasks that could not be stopped, and were given up."""
    replaced: int = 0
    """Processes that died and were replaced."""
    silence: float = 0.0
    """Seconds since Redis answered last."""

    @property
    def backlog(self) -> float:
        """Tasks per worker, due and not ended: what an autoscaler wants to know."""
        return self.waiting / max(1, self.workers)
