"""The limits of a queue, with their defaults.

Scripts are passed the limits that Redis enforces. Clients enforce that of a payload,
workers that of a result.
"""

from __future__ import annotations

from dataclasses import dataclass

from workstealing.tasks.outcome import MAX_RESULT

__all__ = ("QueueSettings",)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How long things are kept, and how many; durations in milliseconds."""

    retention_ms: int = 3_600_000
    """Outcomes; 0 keeps none."""
    outcomes: int = 100_000
    """Outcomes that are kept at most."""
    dead_retention_ms: int = 7 * 86_400_000
    """Dead letters."""
    dead_letters: int = 10_000
    """Dead letters that are kept at most."""
    max_length: int = 0
    """Tasks that the queue takes at most; 0 is any number."""
    max_payload: int = 1 << 20
    """Bytes of one payload."""
    max_result: int = MAX_RESULT
    """Bytes of one result."""
    lease_ms: int = 15_000
    """How long a worker is taken to be alive after its last exchange."""
    deaths: int = 3
    """Workers that a task may see die before it is given up."""
    upkeep_ms: int = 2_000
    """How long nobody may do upkeep before it is overdue."""
    replicas: int = 0
    """How many must have a submission or a settlement before it counts."""
