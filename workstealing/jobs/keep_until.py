"""Keys that live exactly until their deadline, even under memory pressure.

For leases, locks and results that were expensive. A value is kept under a key without
a TTL, so `volatile-*` and `noeviction` never evict it; its deadline is in a sorted set
beside it. A reader never sees a value whose deadline has passed, whether it was removed
yet or not; `recruited()` removes up to *batch* of these. Newest servers: none can
protect a key that has a TTL from eviction (redis/redis#6340, open since 2019).

Under `allkeys-*` the server evicts these keys like any other, the deadlines too: use a
second server then. With `noeviction` a full server refuses `set`; slices still work.

All keys of one `KeepUntil` share a hash tag, so in a Cluster they are on one node.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from workstealing._checks import checked_batch, checked_text, checked_time, milliseconds
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.jobs.job_keys import (
    Value,
    beside,
    checked_key,
    lossless_texts,
    sendable,
)
from workstealing.jobs.redis_job import AsyncRedisJob, RedisJob, call_script, duty_of
from workstealing.queue.steps import Call, Flow, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncKeepUntil", "KeepUntil")

Until: TypeAlias = float | timedelta | datetime


class KeepUntil(RedisJob):
    """Values that are kept until their deadline.

    *until* is seconds from now, a `timedelta`, or a `datetime` with a time zone.
    """

    def __init__(
        self, redis: Client | str | None, key: str, *, batch: int = 100
    ) -> None:
        super().__init__(redis)
        self._steps = _KeepUntilSteps(key, batch)

    def set(self, name: str, value: Value, until: Until) -> None:
        """Keep *value* under *name*, replacing any other."""
        return self._driver.call(self._steps.set(name, value, until))

    def add(self, name: str, value: Value, until: Until) -> bool:
        """Keep *value* unless there is a live one; return whether it is kept."""
        return self._driver.call(self._steps.add(name, value, until))

    def get(self, name: str) -> Value | None:
        """Return a live value, or None."""
        return self._driver.call(self._steps.get(name))

    def extend(self, name: str, until: Until, *, value: Value | None = None) -> bool:
        """Move the deadline of a live value; if *value* is given, only of that one."""
        return self._driver.call(self._steps.extend(name, until, value))

    def delete(self, name: str, *, value: Value | None = None) -> bool:
        """Delete a live value; if *value* is given, only that one."""
        return self._driver.call(self._steps.delete(name, value))

    def recruited(self) -> Duty:
        """Remove up to *batch* values whose deadline has passed."""
        return self._driver.run(self._steps.sweep())


class AsyncKeepUntil(AsyncRedisJob):
    """`KeepUntil` for asyncio."""

    def __init__(
        self, redis: AsyncClient | str | None, key: str, *, batch: int = 100
    ) -> None:
        super().__init__(redis)
        self._steps = _KeepUntilSteps(key, batch)

    async def set(self, name: str, value: Value, until: Until) -> None:
        """Keep *value* under *name*, replacing any other."""
        return await self._driver.call(self._steps.set(name, value, until))

    async def add(self, name: str, value: Value, until: Until) -> bool:
        """Keep *value* unless there is a live one; return whether it is kept."""
        return await self._driver.call(self._steps.add(name, value, until))

    async def get(self, name: str) -> Value | None:
        """Return a live value, or None."""
        return await self._driver.call(self._steps.get(name))

    async def extend(
        self, name: str, until: Until, *, value: Value | None = None
    ) -> bool:
        """Move the deadline of a live value; if *value* is given, only of that one."""
        return await self._driver.call(self._steps.extend(name, until, value))

    async def delete(self, name: str, *, value: Value | None = None) -> bool:
        """Delete a live value; if *value* is given, only that one."""
        return await self._driver.call(self._steps.delete(name, value))

    async def recruited(self) -> Duty:
        """Remove up to *batch* values whose deadline has passed."""
        return await self._driver.run(self._steps.sweep())


class _KeepUntilSteps:
    """The steps of both classes: what they ask of Redis."""

    def __init__(self, key: str, batch: int) -> None:
        self._key = checked_key(key)
        self._deadlines = beside(key, "deadlines")
        self._batch = checked_batch(batch)

    def set(self, name: str, value: Value, until: Until) -> Call[None]:
        new = {**_deadline(until), "wanted": value, "add": 0}
        return self._call("keep_set", name, lambda _: None, **new)

    def add(self, name: str, value: Value, until: Until) -> Call[bool]:
        new = {**_deadline(until), "wanted": value, "add": 1}
        return self._call("keep_set", name, bool, **new)

    def get(self, name: str) -> Call[Value | None]:
        return self._call("keep_get", name, lambda value: value)

    def extend(self, name: str, until: Until, value: Value | None) -> Call[bool]:
        only = () if value is None else (value,)
        return self._call("keep_extend", name, bool, **_deadline(until), only=only)

    def delete(self, name: str, value: Value | None) -> Call[bool]:
        only = () if value is None else (value,)
        return self._call("keep_delete", name, bool, only=only)

    def sweep(self) -> Flow[Duty]:
        due = {"due": self._deadlines}
        names = yield from ask(
            call_script("names_due", due, lossless_texts, is_raw=True, most=self._batch)
        )
        if not names:
            return Duty.DISMISSED
        # A script may not build key names, so the first step returns them.
        keys = {"deadlines": self._deadlines, "values": map(self._value, names)}
        removed = yield from ask(
            call_script("keep_sweep", keys, int, names=map(sendable, names))
        )
        return duty_of(removed, more=removed >= self._batch)

    def _value(self, name: str) -> str:
        return sendable(beside(self._key, f"value:{name}"))

    def _call(
        self, script: str, name: str, parse: Callable[[Any], Any], **arguments: Any
    ) -> Call[Any]:
        value = self._value(checked_text(name))
        keys = {"value": value, "deadlines": self._deadlines}
        return call_script(script, keys, parse, name=name, **arguments)


def _deadline(until: Until) -> dict[str, Any]:
    """Return "in" (a duration) or "at" (a time), and its milliseconds."""
    if not isinstance(until, datetime):
        return {"kind": "in", "time_ms": milliseconds(until, "until")}
    moment = checked_time(until, "until")
    return {"kind": "at", "time_ms": round(moment.timestamp() * 1000)}
