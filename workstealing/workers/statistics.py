"""What a pool counts since it began."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("PoolStats",)


@dataclass(frozen=True, slots=True)
class PoolStats:
    """What is so now, and what was counted since the pool began."""

    workers: int = 0
    """Slots, or processes."""
    running: int = 0
    """Tasks that run now."""
    taken: int = 0
    stolen: int = 0
    refused: int = 0
    """Reports that came too late: another had the task by then."""
    lost_leases: int = 0
    failures: int = 0
    """Exchanges that Redis did not answer."""
    due: int = 0
    """Tasks of the queue that were due and had not ended, when last looked."""
    zombies: int = 0
    """Tasks that could not be stopped, and were given up."""
    replaced: int = 0
    """Processes that died and were replaced."""
    silence: float = 0.0
    """Seconds since Redis answered last."""

    @property
    def backlog(self) -> float:
        """Tasks per worker, due and not ended: what an autoscaler wants to know."""
        return self.due / max(1, self.workers)
