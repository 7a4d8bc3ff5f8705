"""Handles entries of a stream whose consumers are gone.

A slice claims up to *batch* entries that were delivered to some consumer of the group
and have been silent for *idle* seconds (`XAUTOCLAIM`, from a cursor kept in Redis). For
each it calls `handle(entry_id, fields)` and acknowledges it. An entry delivered more
than *max_deliveries* times is not handled again but moved to the dead-letter stream.
Newest servers: Redis >= 8.4 claims silent entries in the consumer itself, by
`XREADGROUP … CLAIM`; this job is for older ones, and for when no consumer is left.

- At least once: an entry is acknowledged after `handle` returned. One whose handler
  raises, or whose recruit dies, stays pending and is claimed again after *idle*
  seconds. *idle* must be longer than any consumer, and `handle`, takes for an entry:
  otherwise two work on it at once.
- Moving to the dead letters and acknowledging are one step: an entry is there once.
  Its fields follow `ws-origin` (its id), `ws-group` and `ws-deliveries`. About
  *dead_most* letters are kept.
- An entry that was deleted from the stream is acknowledged, for there is nothing left.
- A handler that raises does not keep the others of its slice from being handled; the
  first error is raised at the end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.errors import ConfigurationError
from workstealing.jobs.checking import checked_batch, milliseconds
from workstealing.jobs.face import AsyncRedisJob, RedisJob, duty
from workstealing.jobs.naming import beside, checked_key, checked_name
from workstealing.jobs.telling import consult
from workstealing.jobs.wording import Value, pairs, text
from workstealing.queue.call import Argument, Call, Command, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncPendingReclaim", "PendingReclaim")

Handle: TypeAlias = Callable[[str, dict[Value, Value]], Any]
AsyncHandle: TypeAlias = Callable[[str, dict[Value, Value]], Awaitable[Any]]


class PendingReclaim(RedisJob):
    """Finishes what lost consumers began; the sync face."""

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
        limits = _Limits(milliseconds(idle, "idle"), max_deliveries, dead_most, batch)
        self._body = _Body(stream, group, handle, limits, consumer)

    def pending(self) -> int:
        """Return how many entries of the group are not acknowledged."""
        return self._driver.call(self._body.pending())

    def dead(self) -> int:
        """Return how many dead letters there are."""
        return self._driver.call(self._body.dead())

    def recruited(self) -> Duty:
        """Handle up to *batch* entries whose consumers are silent."""
        return self._driver.run(self._body.reclaim())


class AsyncPendingReclaim(AsyncRedisJob):
    """Finishes what lost consumers began; the asyncio face."""

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
        limits = _Limits(milliseconds(idle, "idle"), max_deliveries, dead_most, batch)
        self._body = _Body(stream, group, handle, limits, consumer)

    async def pending(self) -> int:
        """Return how many entries of the group are not acknowledged."""
        return await self._driver.call(self._body.pending())

    async def dead(self) -> int:
        """Return how many dead letters there are."""
        return await self._driver.call(self._body.dead())

    async def recruited(self) -> Duty:
        """Handle up to *batch* entries whose consumers are silent."""
        return await self._driver.run(self._body.reclaim())


@dataclass(frozen=True, slots=True)
class _Limits:
    idle_ms: int
    deliveries: int
    dead: int
    batch: int

    def __post_init__(self) -> None:
        checked_batch(self.batch)
        if self.deliveries < 1 or self.dead < 1:
            raise ConfigurationError("max_deliveries and dead_most must be 1 or more")


@dataclass(frozen=True, slots=True)
class _Entry:
    id: str
    deliveries: int
    parts: list[Value]


class _Body:
    """What both faces ask of Redis and of the handler."""

    def __init__(
        self,
        stream: str,
        group: str,
        handle: Handle,
        limits: _Limits,
        consumer: str,
    ) -> None:
        self._stream = checked_key(stream)
        self._cursor = beside(stream, f"reclaim:{group}")
        self._dead = beside(stream, f"dead:{group}")
        self._group = checked_name(group)
        self._handle = handle
        self._limits = limits
        self._consumer = checked_name(consumer)

    def pending(self) -> Command[int]:
        return Command(("XPENDING", self._stream, self._group), _total)

    def dead(self) -> Command[int]:
        return Command(("XLEN", self._dead), int)

    def reclaim(self) -> Flow[Duty]:
        found, *flat = yield from ask(self._claim())
        first: Exception | None = None
        for entry in _entries(flat):
            if entry.deliveries > self._limits.deliveries:
                yield from ask(self._bury(entry))
                continue
            try:
                yield from consult(self._handle, entry.id, pairs(entry.parts))
            except Exception as error:  # noqa: BLE001 - raised below, after the others
                first = first or error
            else:
                acknowledge = ("XACK", self._stream, self._group, entry.id)
                yield from ask(Command(acknowledge, int))
        if first is not None:
            raise first
        return duty(found, self._limits.batch)

    def _claim(self) -> Call[list[Any]]:
        limits = (self._limits.idle_ms, self._limits.batch)
        arguments = (self._group, self._consumer, *limits)
        keys = (self._stream, self._cursor)
        return Call(load_script(__package__, "reclaim_claim"), keys, arguments, list)

    def _bury(self, entry: _Entry) -> Call[bool]:
        about = (self._group, entry.id, entry.deliveries, self._limits.dead)
        arguments: tuple[Argument, ...] = (*about, *entry.parts)
        keys = (self._stream, self._dead)
        return Call(load_script(__package__, "reclaim_bury"), keys, arguments, bool)


def _entries(flat: list[Any]) -> list[_Entry]:
    entries = []
    while flat:
        identifier, deliveries, length, *flat = flat
        parts, flat = flat[:length], flat[length:]
        entries.append(_Entry(text(identifier), deliveries, parts))
    return entries


def _total(reply: Any) -> int:
    """Read XPENDING, which redis-py turns into a dictionary."""
    return int(reply["pending"] if isinstance(reply, dict) else reply[0])
