"""Ready-made side work for Redis: one job a file, each in a sync and an asyncio face.

Every job keeps its state in Redis, uses the server's time, does a bounded slice, and
may run in any number of processes at once.
"""

from __future__ import annotations

from workstealing.jobs.volatile_hash import AsyncVolatileHash, VolatileHash

__all__ = ("AsyncVolatileHash", "VolatileHash")
