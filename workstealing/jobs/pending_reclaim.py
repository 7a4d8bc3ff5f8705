"""Handles entries of a stream whose consumers have died.

A slice claims up to *batch* entries that were delivered to a consumer of the group and
not acknowledged for *idle* seconds (`XAUTOCLAIM`, from a cursor kept in Redis). For
each it calls `handle(entry_id, fields)` and acknowledges it. An entry delivered more
than *max_deliveries* times is not handled again but moved to the dead-letter stream.
Newest servers: Redis >= 8.4 claims idle entries in the consumer itself, by
`XREADGROUP … CLAIM`; this job is for older ones, and for when no consumer is left.

- At least once: an entry is acknowledged after `handle` returned. If that
  raises, or the recruit dies, it stays pending and is claimed again after *idle*
  seconds. *idle* must be longer than any consumer takes for what it has read, and than
  `handle` takes for *batch* entries: otherwise two may process an entry at once.
- Moving to the dead letters and acknowledging are one step: no entry is there twice.
  Its fields follow `ws-origin` (its id), `ws-group` and `ws-deliveries`. About
  *dead_most* letters are kept.
- An entry that was deleted from the stream is acknowledged.
- A handler that raises does not keep the others of its slice from being handled; the
  first error is raised at the end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from workstealing._checks import (
    checked_batch,
    checked_text,
    checked_whole,
    milliseconds,
)
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.jobs.job_keys import (
    Value,
    beside,
    checked_key,
    lossless_text,
    mapping_of,
)
from workstealing.jobs.redis_job import (
    AsyncRedisJob,
    RedisJob,
    call_hook,
    call_script,
    duty_of,
)
from workstealing.queue.steps import Call, Flow, RedisCommand, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncPendingReclaim", "PendingReclaim")

Handle: TypeAlias = Callable[[str, dict[Value, Value]], Any]
AsyncHandle: TypeAlias = Callable[[str, dict[Value, Value]], Awaitable[Any]]


class PendingReclaim(RedisJob):
    """Handles the entries of dead consumers."""

    def __init__(
        self,
        redis: Client | str | None,
        stream: str,
        group: str,
        handle: Handle,
        *,
        idle: float | timedelta = 60.0,
        max_deliveries: int = 5,
        dead_most: int = 100_000,
        consumer: str = "workstealing",
        batch: int = 10,
    ) -> None:
        super().__init__(redis)
        idle_ms = milliseconds(idle, "idle")
        limits = _ReclaimLimits(idle_ms, max_deliveries, dead_most, batch)
        self._steps = _PendingReclaimSteps(stream, group, handle, limits, consumer)

    def pending(self) -> int:
        """Return how many entries of the group are not acknowledged."""
        return self._driver.call(self._steps.pending())

    def dead(self) -> int:
        """Return how many dead letters there are."""
        return self._driver.call(self._steps.dead())

    def recruited(self) -> Duty:
        """Handle up to *batch* entries whose consumers are dead."""
        return self._driver.run(self._steps.reclaim())


class AsyncPendingReclaim(AsyncRedisJob):
    """`PendingReclaim` for asyncio."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        stream: str,
        group: str,
        handle: Handle | AsyncHandle,
        *,
        idle: float | timedelta = 60.0,
        max_deliveries: int = 5,
        dead_most: int = 100_000,
        consumer: str = "workstealing",
        batch: int = 10,
    ) -> None:
        super().__init__(redis)
        idle_ms = milliseconds(idle, "idle")
        limits = _ReclaimLimits(idle_ms, max_deliveries, dead_most, batch)
        self._steps = _PendingReclaimSteps(stream, group, handle, limits, consumer)

    async def pending(self) -> int:
        """Return how many entries of the group are not acknowledged."""
        return await self._driver.call(self._steps.pending())

    async def dead(self) -> int:
        """Return how many dead letters there are."""
        return await self._driver.call(self._steps.dead())

    async def recruited(self) -> Duty:
        """Handle up to *batch* entries whose consumers are dead."""
        return await self._driver.run(self._steps.reclaim())


@dataclass(frozen=True, slots=True)
class _ReclaimLimits:
    idle_ms: int
    deliveries: int
    dead: int
    batch: int

    def __post_init__(self) -> None:
        checked_batch(self.batch)
        checked_whole(self.deliveries, "max_deliveries", 1)
        checked_whole(self.dead, "dead_most", 1)


@dataclass(frozen=True, slots=True)
class _PendingEntry:
    id: str
    deliveries: int
    parts: list[Value]


class _PendingReclaimSteps:
    """The steps of both classes: what they ask of Redis and of the handler."""

    def __init__(
        self,
        stream: str,
        group: str,
        handle: Handle,
        limits: _ReclaimLimits,
        consumer: str,
    ) -> None:
        self._stream = checked_key(stream)
        self._dead = beside(stream, f"dead:{group}")
        self._keys = {
            "stream": self._stream,
            "cursor": beside(stream, f"reclaim:{group}"),
            "dead": self._dead,
        }
        self._group = checked_text(group)
        self._handle = handle
        self._limits = limits
        self._consumer = checked_text(consumer)

    def pending(self) -> RedisCommand[int]:
        return RedisCommand(("XPENDING", self._stream, self._group), _total)

    def dead(self) -> RedisCommand[int]:
        return RedisCommand(("XLEN", self._dead), int)

    def reclaim(self) -> Flow[Duty]:
        found, *flat = yield from ask(self._claim())
        first: Exception | None = None
        for entry in _entries(flat):
            if entry.deliveries > self._limits.deliveries:
                yield from ask(self._give_up(entry))
                continue
            try:
                yield from call_hook(self._handle, entry.id, mapping_of(entry.parts))
            except Exception as error:  # noqa: BLE001 - raised below, after the others
                first = first or error
            else:
                acknowledge = ("XACK", self._stream, self._group, entry.id)
                yield from ask(RedisCommand(acknowledge, int))
        if first is not None:
            raise first
        return duty_of(found, more=found >= self._limits.batch)

    def _claim(self) -> Call[list[Any]]:
        return call_script(
            "reclaim_claim",
            self._keys,
            list,
            group=self._group,
            consumer=self._consumer,
            idle=self._limits.idle_ms,
            most=self._limits.batch,
        )

    def _give_up(self, entry: _PendingEntry) -> Call[bool]:
        return call_script(
            "reclaim_give_up",
            self._keys,
            bool,
            group=self._group,
            id=entry.id,
            deliveries=entry.deliveries,
            most=self._limits.dead,
            fields=entry.parts,
        )


def _entries(flat: list[Any]) -> list[_PendingEntry]:
    entries = []
    while flat:
        identifier, deliveries, length, *flat = flat
        parts, flat = flat[:length], flat[length:]
        entries.append(_PendingEntry(lossless_text(identifier), deliveries, parts))
    return entries


def _total(reply: Any) -> int:
    """Read XPENDING, which redis-py turns into a dictionary."""
    return int(reply["pending"] if isinstance(reply, dict) else reply[0])
