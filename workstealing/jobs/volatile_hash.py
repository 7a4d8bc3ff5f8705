"""A hash whose fields expire one by one.

A reader never sees a field whose time has come, whether it was removed yet or not;
`recruited()` removes up to *batch* of those. Newest servers: `HPEXPIRE` and `HSETEX`
(Redis >= 7.4 and 8, Valkey >= 9) do all of it without a job. Where they are found
they are used, and a slice finds nothing to do, unless `on_expire` is given: then an
action must run, and only a slice can run it. Fields from before an upgrade of the
server are still read and swept right.

`on_expire(field, value)` is called once per removed field, after the removal: a process
that dies in between has removed a field without telling. A hook that fails does not
keep the other fields from being told. A field that is set again before a slice found it
expired is not told. Give the hook in every process that writes the hash: without it, a
process leaves the expiry to the server, which tells nobody.

Write fields through this class. A plain `HSET` over a field keeps its time where we
expire it, and takes it away where the server does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.jobs.checking import checked_batch, milliseconds
from workstealing.jobs.face import AsyncRedisJob, RedisJob, duty
from workstealing.jobs.naming import beside, checked_key
from workstealing.jobs.telling import tell_each
from workstealing.jobs.wording import Value, pairs
from workstealing.queue.call import Argument, Call, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncVolatileHash", "VolatileHash")


class VolatileHash(RedisJob):
    """Hash fields with a time to live; the sync face."""

    def __init__(
        self,
        redis: Client | str | None,
        key: str,
        *,
        batch: int = 100,
        on_expire: Callable[[Value, Value], Any] | None = None,
    ) -> None:
        super().__init__(redis)
        self._body = _Body(key, batch, on_expire)

    def set(self, field: Value, value: Value, ttl: float | timedelta) -> bool:
        """Set a field that lives for *ttl* seconds; tell whether there was none."""
        return self._driver.run(self._body.set(field, value, ttl))

    def get(self, field: Value) -> Value | None:
        """Return the value of a living field."""
        return self._driver.call(self._body.get(field))

    def get_all(self) -> dict[Value, Value]:
        """Return all living fields: as costly as the hash is large."""
        return self._driver.call(self._body.get_all())

    def touch(self, field: Value, ttl: float | timedelta) -> bool:
        """Give a living field *ttl* more seconds from now; tell whether it lives."""
        return self._driver.run(self._body.touch(field, ttl))

    def delete(self, *fields: Value) -> int:
        """Delete fields; return how many of them lived."""
        return self._driver.call(self._body.delete(fields))

    def recruited(self) -> Duty:
        """Remove up to *batch* expired fields."""
        return self._driver.run(self._body.sweep())


class AsyncVolatileHash(AsyncRedisJob):
    """Hash fields with a time to live; the asyncio face."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        key: str,
        *,
        batch: int = 100,
        on_expire: Callable[[Value, Value], Any] | None = None,
    ) -> None:
        super().__init__(redis)
        self._body = _Body(key, batch, on_expire)

    async def set(self, field: Value, value: Value, ttl: float | timedelta) -> bool:
        """Set a field that lives for *ttl* seconds; tell whether there was none."""
        return await self._driver.run(self._body.set(field, value, ttl))

    async def get(self, field: Value) -> Value | None:
        """Return the value of a living field."""
        return await self._driver.call(self._body.get(field))

    async def get_all(self) -> dict[Value, Value]:
        """Return all living fields: as costly as the hash is large."""
        return await self._driver.call(self._body.get_all())

    async def touch(self, field: Value, ttl: float | timedelta) -> bool:
        """Give a living field *ttl* more seconds from now; tell whether it lives."""
        return await self._driver.run(self._body.touch(field, ttl))

    async def delete(self, *fields: Value) -> int:
        """Delete fields; return how many of them lived."""
        return await self._driver.call(self._body.delete(fields))

    async def recruited(self) -> Duty:
        """Remove up to *batch* expired fields."""
        return await self._driver.run(self._body.sweep())


class _Body:
    """What both faces ask of Redis."""

    def __init__(
        self, key: str, batch: int, on_expire: Callable[[Value, Value], Any] | None
    ) -> None:
        self._keys = (checked_key(key), beside(key, "expires"))
        self._batch = checked_batch(batch)
        self._on_expire = on_expire
        # An action at expiry needs a slice, so the server must not be quicker.
        self._native = on_expire is None

    def set(self, field: Value, value: Value, ttl: float | timedelta) -> Flow[bool]:
        return self._expiring("hash_set", milliseconds(ttl), field, value)

    def get(self, field: Value) -> Call[Value | None]:
        return self._call("hash_get", lambda flat: flat[1] if flat else None, field)

    def get_all(self) -> Call[dict[Value, Value]]:
        return self._call("hash_get", pairs)

    def touch(self, field: Value, ttl: float | timedelta) -> Flow[bool]:
        return self._expiring("hash_touch", milliseconds(ttl), field)

    def delete(self, fields: tuple[Value, ...]) -> Call[int]:
        return self._call("hash_delete", int, *fields)

    def sweep(self) -> Flow[Duty]:
        tell = int(self._on_expire is not None)
        call = self._call("hash_sweep", list, self._batch, tell)
        removed, *flat = yield from ask(call)
        if self._on_expire is not None:
            _, error = yield from tell_each(self._on_expire, pairs(flat).items())
            if error is not None:
                raise error
        return duty(removed, self._batch)

    def _expiring(self, script: str, ttl_ms: int, *arguments: Value) -> Flow[bool]:
        # The script tries: only the server that runs it knows what it can do.
        call = self._call(script, list, int(self._native), ttl_ms, *arguments)
        answer, native = yield from ask(call)
        self._native = bool(native)
        return bool(answer)

    def _call(
        self, script: str, parse: Callable[[Any], Any], *arguments: Argument
    ) -> Call[Any]:
        return Call(load_script(__package__, script), self._keys, arguments, parse)
