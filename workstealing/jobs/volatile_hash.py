"""A hash whose fields expire one by one.

A reader never sees a field whose time has come, whether it was removed yet or not;
`recruited()` removes up to *batch* of those. Where the server expires fields by itself
(`HPEXPIRE`: Redis >= 7.4, Valkey >= 9) that is used, and a slice finds nothing to do,
unless `on_expire` is given: then an action must run, and only a slice can run it.

`on_expire(field, value)` is called once per removed field, after the removal: a process
that dies in between has removed a field without telling.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeAlias, Union

from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.jobs.checking import checked_batch, milliseconds
from workstealing.jobs.face import AsyncRedisJob, RedisJob, duty
from workstealing.jobs.naming import beside, checked_key
from workstealing.queue.call import Call, Command, Consult, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncVolatileHash", "VolatileHash")

Value: TypeAlias = Union[str, bytes]


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
        """Set a field that lives for *ttl* seconds; tell whether it is new."""
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
        """Delete fields; return how many there were."""
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
        """Set a field that lives for *ttl* seconds; tell whether it is new."""
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
        """Delete fields; return how many there were."""
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
        self._native: bool | None = None if on_expire is None else False

    def set(self, field: Value, value: Value, ttl: float | timedelta) -> Flow[bool]:
        ttl_ms = milliseconds(ttl)
        native = yield from self._is_native()
        return (yield from ask(self._call("hash_set", bool, native, ttl_ms, field, value)))

    def get(self, field: Value) -> Call[Value | None]:
        return self._call("hash_get", lambda flat: flat[1] if flat else None, field)

    def get_all(self) -> Call[dict[Value, Value]]:
        return self._call("hash_get", _pairs)

    def touch(self, field: Value, ttl: float | timedelta) -> Flow[bool]:
        ttl_ms = milliseconds(ttl)
        native = yield from self._is_native()
        return (yield from ask(self._call("hash_touch", bool, native, ttl_ms, field)))

    def delete(self, fields: tuple[Value, ...]) -> Call[int]:
        return self._call("hash_delete", int, *fields)

    def sweep(self) -> Flow[Duty]:
        removed, *flat = yield from ask(self._call("hash_sweep", list, self._batch))
        if self._on_expire is not None:
            for field, value in _pairs(flat).items():
                yield Consult(self._on_expire, (field, value))
        return duty(removed, self._batch)

    def _is_native(self) -> Flow[int]:
        if self._native is None:
            self._native = yield from ask(
                Command(("COMMAND", "INFO", "HPEXPIREAT"), parse=_knows_command)
            )
        return int(self._native)

    def _call(self, script: str, parse: Callable[[Any], Any], *arguments: Any) -> Call[Any]:
        return Call(load_script(__package__, script), self._keys, arguments, parse)


def _pairs(flat: list[Value]) -> dict[Value, Value]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _knows_command(reply: Any) -> bool:
    """Read COMMAND INFO, whose absent entries are None or left out."""
    return any(reply.values() if isinstance(reply, dict) else reply)
