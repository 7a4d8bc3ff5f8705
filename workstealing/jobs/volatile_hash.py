"""A hash whose fields expire one by one.

A reader never sees an expired field, whether it was removed yet or not; `recruited()`
removes up to *batch* of these. Newest servers: `HPEXPIRE` and `HSETEX`
(Redis >= 7.4 and 8, Valkey >= 9) do all of it without a job. If the server has them,
they are used, and a slice finds nothing to do, unless `on_expire` is given: only a
slice can call it. Fields from before an upgrade of the server are still read and
removed correctly.

`on_expire(field, value)` is called once per removed field, after the removal: if a
process dies in between, it is not called for that field. If it fails for one field, it
is still called for the others. It is not called for a field that is set again before a
slice found it expired. Pass the hook in every process that writes the hash: without it,
a process leaves the expiry to the server, which calls nothing.

Write fields through this class. A plain `HSET` over a field keeps its time to live if
slices expire it, and removes it if the server does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from workstealing._checks import checked_batch, milliseconds
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.jobs.job_keys import Value, beside, checked_key, mapping_of
from workstealing.jobs.redis_job import (
    AsyncRedisJob,
    RedisJob,
    call_for_each,
    call_script,
    duty_of,
)
from workstealing.queue.steps import Call, Flow, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncVolatileHash", "VolatileHash")


class VolatileHash(RedisJob):
    """Hash fields with a time to live."""

    def __init__(
        self,
        redis: Client | str | None,
        key: str,
        *,
        batch: int = 100,
        on_expire: Callable[[Value, Value], Any] | None = None,
    ) -> None:
        super().__init__(redis)
        self._steps = _VolatileHashSteps(key, batch, on_expire)

    def set(self, field: Value, value: Value, ttl: float | timedelta) -> bool:
        """Set a field that lives for *ttl* seconds; return whether it is new."""
        return self._driver.run(self._steps.set(field, value, ttl))

    def get(self, field: Value) -> Value | None:
        """Return the value of a live field, or None."""
        return self._driver.call(self._steps.get(field))

    def get_all(self) -> dict[Value, Value]:
        """Return all live fields; the cost grows with their number."""
        return self._driver.call(self._steps.get_all())

    def touch(self, field: Value, ttl: float | timedelta) -> bool:
        """Let a live field live *ttl* seconds from now; return whether it was live."""
        return self._driver.run(self._steps.touch(field, ttl))

    def delete(self, *fields: Value) -> int:
        """Delete fields; return how many of them were live."""
        return self._driver.call(self._steps.delete(fields))

    def recruited(self) -> Duty:
        """Remove up to *batch* expired fields."""
        return self._driver.run(self._steps.sweep())


class AsyncVolatileHash(AsyncRedisJob):
    """`VolatileHash` for asyncio."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        key: str,
        *,
        batch: int = 100,
        on_expire: Callable[[Value, Value], Any] | None = None,
    ) -> None:
        super().__init__(redis)
        self._steps = _VolatileHashSteps(key, batch, on_expire)

    async def set(self, field: Value, value: Value, ttl: float | timedelta) -> bool:
        """Set a field that lives for *ttl* seconds; return whether it is new."""
        return await self._driver.run(self._steps.set(field, value, ttl))

    async def get(self, field: Value) -> Value | None:
        """Return the value of a live field, or None."""
        return await self._driver.call(self._steps.get(field))

    async def get_all(self) -> dict[Value, Value]:
        """Return all live fields; the cost grows with their number."""
        return await self._driver.call(self._steps.get_all())

    async def touch(self, field: Value, ttl: float | timedelta) -> bool:
        """Let a live field live *ttl* seconds from now; return whether it was live."""
        return await self._driver.run(self._steps.touch(field, ttl))

    async def delete(self, *fields: Value) -> int:
        """Delete fields; return how many of them were live."""
        return await self._driver.call(self._steps.delete(fields))

    async def recruited(self) -> Duty:
        """Remove up to *batch* expired fields."""
        return await self._driver.run(self._steps.sweep())


class _VolatileHashSteps:
    """The steps of both classes: what they ask of Redis."""

    def __init__(
        self, key: str, batch: int, on_expire: Callable[[Value, Value], Any] | None
    ) -> None:
        self._keys = {"map": checked_key(key), "expires": beside(key, "expires")}
        self._batch = checked_batch(batch)
        self._on_expire = on_expire
        # Only a slice can call the hook, so the server must not expire fields.
        self._native = on_expire is None

    def set(self, field: Value, value: Value, ttl: float | timedelta) -> Flow[bool]:
        return self._expiring("hash_set", ttl, field=field, value=value)

    def get(self, field: Value) -> Call[Value | None]:
        return call_script(
            "hash_get",
            self._keys,
            lambda flat: flat[1] if flat else None,
            fields=(field,),
        )

    def get_all(self) -> Call[dict[Value, Value]]:
        return call_script("hash_get", self._keys, mapping_of, fields=())

    def touch(self, field: Value, ttl: float | timedelta) -> Flow[bool]:
        return self._expiring("hash_touch", ttl, field=field)

    def delete(self, fields: tuple[Value, ...]) -> Call[int]:
        return call_script("hash_delete", self._keys, int, fields=fields)

    def sweep(self) -> Flow[Duty]:
        has_hook = int(self._on_expire is not None)
        call = call_script(
            "hash_sweep", self._keys, list, most=self._batch, has_hook=has_hook
        )
        removed, *flat = yield from ask(call)
        if self._on_expire is not None:
            _, error = yield from call_for_each(
                self._on_expire, mapping_of(flat).items()
            )
            if error is not None:
                raise error
        return duty_of(removed, more=removed >= self._batch)

    def _expiring(
        self, script: str, ttl: float | timedelta, **arguments: Any
    ) -> Flow[bool]:
        # The script finds out: only the server that runs it knows its commands.
        ttl_ms, native = milliseconds(ttl), int(self._native)
        call = call_script(
            script, self._keys, list, native=native, ttl=ttl_ms, **arguments
        )
        answer, native = yield from ask(call)
        self._native = bool(native)
        return bool(answer)
