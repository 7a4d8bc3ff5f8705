"""Keys that live exactly until their time, also under memory pressure.

For leases, locks and results that were expensive. A value is kept under a key without
a TTL, so `volatile-*` and `noeviction` never evict it; its deadline is in a sorted set
beside it. A reader never sees a value whose deadline has come, whether it was removed
yet or not; `recruited()` removes up to *batch* of those. Newest servers: none can
protect a key that has a TTL from eviction (redis/redis#6340, open since 2019).

Under `allkeys-*` the server evicts our keys like any other, the deadlines too: use a
second server then. With `noeviction` a full server refuses `set`; slices still work.

All keys of one `KeepUntil` share a hash tag, so in a Cluster they are on one node.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.errors import ConfigurationError
from workstealing.jobs.checking import checked_batch, milliseconds
from workstealing.jobs.face import AsyncRedisJob, RedisJob, duty
from workstealing.jobs.naming import beside, checked_key, checked_name
from workstealing.jobs.wording import Value, sendable, texts
from workstealing.queue.call import Argument, Call, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncKeepUntil", "KeepUntil")

Until: TypeAlias = float | timedelta | datetime


class KeepUntil(RedisJob):
    """Values that are kept until their deadline; the sync face.

    *until* is seconds from now, a `timedelta`, or a `datetime` with a time zone.
    """

    def __init__(
        self, redis: Client | str | None, key: str, *, batch: int = 100
    ) -> None:
        super().__init__(redis)
        self._body = _Body(key, batch)

    def set(self, name: str, value: Value, until: Until) -> None:
        """Keep *value* under *name*, in place of what was there."""
        return self._driver.call(self._body.set(name, value, until))

    def add(self, name: str, value: Value, until: Until) -> bool:
        """Keep *value* unless another one lives; tell whether it is kept now."""
        return self._driver.call(self._body.add(name, value, until))

    def get(self, name: str) -> Value | None:
        """Return a living value."""
        return self._driver.call(self._body.get(name))

    def extend(self, name: str, until: Until, *, value: Value | None = None) -> bool:
        """Move the deadline of a living value, only if it is *value* when given."""
        return self._driver.call(self._body.extend(name, until, value))

    def delete(self, name: str, *, value: Value | None = None) -> bool:
        """Delete a living value, only if it is *value* when given."""
        return self._driver.call(self._body.delete(name, value))

    def recruited(self) -> Duty:
        """Remove up to *batch* values whose deadline has come."""
        return self._driver.run(self._body.sweep())


class AsyncKeepUntil(AsyncRedisJob):
    """Values that are kept until their deadline; the asyncio face.

    *until* is seconds from now, a `timedelta`, or a `datetime` with a time zone.
    """

    def __init__(
        self, redis: AsyncClient | str | None, key: str, *, batch: int = 100
    ) -> None:
        super().__init__(redis)
        self._body = _Body(key, batch)

    async def set(self, name: str, value: Value, until: Until) -> None:
        """Keep *value* under *name*, in place of what was there."""
        return await self._driver.call(self._body.set(name, value, until))

    async def add(self, name: str, value: Value, until: Until) -> bool:
        """Keep *value* unless another one lives; tell whether it is kept now."""
        return await self._driver.call(self._body.add(name, value, until))

    async def get(self, name: str) -> Value | None:
        """Return a living value."""
        return await self._driver.call(self._body.get(name))

    async def extend(
        self, name: str, until: Until, *, value: Value | None = None
    ) -> bool:
        """Move the deadline of a living value, only if it is *value* when given."""
        return await self._driver.call(self._body.extend(name, until, value))

    async def delete(self, name: str, *, value: Value | None = None) -> bool:
        """Delete a living value, only if it is *value* when given."""
        return await self._driver.call(self._body.delete(name, value))

    async def recruited(self) -> Duty:
        """Remove up to *batch* values whose deadline has come."""
        return await self._driver.run(self._body.sweep())


class _Body:
    """What both faces ask of Redis."""

    def __init__(self, key: str, batch: int) -> None:
        self._key = checked_key(key)
        self._deadlines = beside(key, "deadlines")
        self._batch = checked_batch(batch)

    def set(self, name: str, value: Value, until: Until) -> Call[None]:
        arguments = (*_deadline(until), name, value, 0)
        return self._call("keep_set", name, lambda _: None, *arguments)

    def add(self, name: str, value: Value, until: Until) -> Call[bool]:
        return self._call("keep_set", name, bool, *_deadline(until), name, value, 1)

    def get(self, name: str) -> Call[Value | None]:
        return self._call("keep_get", name, lambda value: value, name)

    def extend(self, name: str, until: Until, value: Value | None) -> Call[bool]:
        only = () if value is None else (value,)
        return self._call("keep_extend", name, bool, *_deadline(until), name, *only)

    def delete(self, name: str, value: Value | None) -> Call[bool]:
        only = () if value is None else (value,)
        return self._call("keep_delete", name, bool, name, *only)

    def sweep(self) -> Flow[Duty]:
        due = load_script(__package__, "keep_due")
        call = Call(due, (self._deadlines,), (self._batch,), texts, is_raw=True)
        names = yield from ask(call)
        if not names:
            return Duty.DISMISSED
        # A script may not build key names, so its keys are told by the first step.
        keys = (self._deadlines, *map(self._value, names))
        sweep = load_script(__package__, "keep_sweep")
        removed = yield from ask(Call(sweep, keys, tuple(map(sendable, names)), int))
        return duty(removed, self._batch)

    def _value(self, name: str) -> str:
        return sendable(beside(self._key, f"value:{name}"))

    def _call(
        self, script: str, name: str, parse: Callable[[Any], Any], *arguments: Argument
    ) -> Call[Any]:
        keys = (self._value(checked_name(name)), self._deadlines)
        return Call(load_script(__package__, script), keys, arguments, parse)


def _deadline(until: Until) -> tuple[str, int]:
    """Say whether the time is a duration or a moment, and its milliseconds."""
    if not isinstance(until, datetime):
        return "in", milliseconds(until, "until")
    if until.tzinfo is None:
        raise ConfigurationError(f"until needs a time zone: {until!r}")
    return "at", round(until.timestamp() * 1000)
