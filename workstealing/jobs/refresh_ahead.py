"""Cached values that are recomputed before they expire.

`get(name)` returns the value. Shortly before it expires, a read may recompute it, by
the lottery of `XFetch`; slices do so for names that expire within *ahead* seconds and
were read since they were computed. One process computes a name at a time, under a
lease; the others get the existing value, even for *stale* seconds after it expired.
Newest servers: none computes; a plain `SET … EX` is enough where a stampede at expiry
does no harm.

- A value whose lease was lost while it was computed is discarded, not stored: it cannot
  replace a newer one. The caller that computed it gets it all the same.
- `get` returns None only if there is no value at all and another process is computing
  the first one; it never waits.
- If computing fails, `get` returns the existing value, and raises only if there is
  none; slices raise. Slices try a name that failed again after *lease* seconds.
- Names that are not read are not refreshed; they expire, and leave no keys behind.

A slice takes as long as `compute` does. Use it for values that take a few
milliseconds, or run the slices where nobody waits. All values of one `RefreshAhead`
share a hash tag, so in a Cluster they are on one node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

from workstealing._checks import checked_batch, checked_text, milliseconds
from workstealing._printing import escaping_logger
from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.errors import Conflict, HookFailed
from workstealing.jobs.job_keys import (
    Value,
    beside,
    checked_key,
    lossless_text,
    lossless_texts,
    sendable,
)
from workstealing.jobs.job_leases import AbandonedLeases, releasing_on_error
from workstealing.jobs.redis_job import (
    AsyncRedisJob,
    RedisJob,
    call_hook,
    call_script,
    duty_of,
)
from workstealing.jobs.xfetch import XFETCH, XFetch
from workstealing.queue.steps import Call, Flow, RedisCommand, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncRefreshAhead", "RefreshAhead")

logger = escaping_logger(__name__)

Compute: TypeAlias = Callable[[str], Value]
AsyncCompute: TypeAlias = Callable[[str], Awaitable[Value]]

_OURS, _HELD, _UNREAD = 1, 0, -2


class RefreshAhead(RedisJob):
    """Cached values that are recomputed in time.

    *ttl*, *stale* (as long as *ttl* by default), *ahead* (a tenth of it) and *lease*
    are seconds; the lease must be longer than computing ever takes.
    """

    def __init__(
        self,
        redis: Client | str | None,
        key: str,
        compute: Compute,
        *,
        ttl: float | timedelta,
        stale: float | timedelta | None = None,
        ahead: float | timedelta | None = None,
        lease: float | timedelta = 30.0,
        xfetch: XFetch = XFETCH,
        batch: int = 1,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        super().__init__(redis)
        times = _RefreshTimes.of(ttl, stale, ahead, lease)
        self._steps = _RefreshAheadSteps(key, compute, times, xfetch, batch, chance)

    def get(self, name: str) -> Value | None:
        """Return the value of a name, computing it if there is none or it is due."""
        return self._driver.run(self._steps.get(name))

    def forget(self, name: str) -> bool:
        """Delete a value, and discard one being computed; return if there was one."""
        return self._driver.call(self._steps.forget(name))

    def pending(self) -> int:
        """Return how many names slices keep fresh."""
        return self._driver.call(self._steps.pending())

    def recruited(self) -> Duty:
        """Compute up to *batch* values that expire soon."""
        return self._driver.run(self._steps.refresh())


class AsyncRefreshAhead(AsyncRedisJob):
    """`RefreshAhead` for asyncio."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        key: str,
        compute: Compute | AsyncCompute,
        *,
        ttl: float | timedelta,
        stale: float | timedelta | None = None,
        ahead: float | timedelta | None = None,
        lease: float | timedelta = 30.0,
        xfetch: XFetch = XFETCH,
        batch: int = 1,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        super().__init__(redis)
        times = _RefreshTimes.of(ttl, stale, ahead, lease)
        self._steps = _RefreshAheadSteps(key, compute, times, xfetch, batch, chance)

    async def get(self, name: str) -> Value | None:
        """Return the value of a name, computing it if there is none or it is due."""
        return await self._driver.run(self._steps.get(name))

    async def forget(self, name: str) -> bool:
        """Delete a value, and discard one being computed; return if there was one."""
        return await self._driver.call(self._steps.forget(name))

    async def pending(self) -> int:
        """Return how many names slices keep fresh."""
        return await self._driver.call(self._steps.pending())

    async def recruited(self) -> Duty:
        """Compute up to *batch* values that expire soon."""
        return await self._driver.run(self._steps.refresh())


@dataclass(frozen=True, slots=True)
class _RefreshTimes:
    """The durations of a `RefreshAhead`, in milliseconds."""

    ttl: int
    stale: int
    ahead: int
    lease: int

    @classmethod
    def of(
        cls,
        ttl: float | timedelta,
        stale: float | timedelta | None,
        ahead: float | timedelta | None,
        lease: float | timedelta,
    ) -> _RefreshTimes:
        ttl_ms = milliseconds(ttl)
        return cls(
            ttl_ms,
            ttl_ms if stale is None else milliseconds(stale, "stale"),
            ttl_ms // 10 if ahead is None else milliseconds(ahead, "ahead"),
            milliseconds(lease, "lease"),
        )


@dataclass(frozen=True, slots=True)
class _CachedValue:
    """A value, how long it took to compute, when it expires, and the time left."""

    value: Value
    took: int
    expires: str
    left: int


class _RefreshAheadSteps:
    """The steps of both classes: what they ask of Redis and of the user's function."""

    def __init__(
        self,
        key: str,
        compute: Callable[[str], Any],
        times: _RefreshTimes,
        xfetch: XFetch,
        batch: int,
        chance: Chance,
    ) -> None:
        self._key = checked_key(key)
        self._due = beside(key, "due")
        self._compute = compute
        self._times = times
        self._xfetch = xfetch
        self._batch = checked_batch(batch)
        self._chance = chance
        self._abandoned = AbandonedLeases()

    def get(self, name: str) -> Flow[Value | None]:
        yield from self._abandoned.release_all()
        kept = yield from ask(self._read(checked_text(name)))
        if kept is None:
            return (yield from self._get_first(name))
        ttl = self._times.ttl
        if self._xfetch.is_due(kept.left, kept.took, ttl, self._chance):
            try:
                _, value = yield from self._renew(name, kept.expires)
            except Exception:
                logger.warning(
                    "'%s' could not be recomputed; its old value is kept",
                    name,
                    exc_info=True,
                )
            else:
                return kept.value if value is None else value
        return kept.value

    def forget(self, name: str) -> Call[bool]:
        return self._call("fresh_forget", bool, checked_text(name))

    def pending(self) -> RedisCommand[int]:
        return RedisCommand(("ZCARD", self._due), int)

    def refresh(self) -> Flow[Duty]:
        yield from self._abandoned.release_all()
        names = yield from ask(self._due_names())
        verdicts = []
        for name in names:
            verdict, _ = yield from self._renew(name, "due")
            verdicts.append(verdict)
        done = verdicts.count(_OURS) + verdicts.count(_UNREAD)
        if _HELD in verdicts and not done:
            raise Conflict("another process is computing the values that are due")
        return duty_of(done, more=done >= self._batch)

    def _get_first(self, name: str) -> Flow[Value | None]:
        error: BaseException | None = None
        try:
            _, value = yield from self._renew(name, "")
        except HookFailed as failed:
            error = failed.__cause__
        if error is not None:
            # The caller of `get` is not a slice: it gets what its own function raised.
            raise error
        if value is None:
            # Another process has just computed it, or is computing it.
            kept = yield from ask(self._read(name))
            return None if kept is None else kept.value
        return value

    def _renew(self, name: str, seen: str) -> Flow[tuple[int, Value | None]]:
        """Compute and store a value, if we get its lease."""
        work = partial(self._renew_as, name, seen)
        return (yield from self._abandoned.watching(self._lease(name), work))

    def _renew_as(
        self, name: str, seen: str, token: str
    ) -> Flow[tuple[int, Value | None]]:
        lease = {"token": token, "lease_ms": self._times.lease, "seen": seen}
        verdict, started = yield from ask(
            self._call("fresh_lease", list, name, **lease)
        )
        if verdict != _OURS:
            return verdict, None
        work = self._compute_and_put(name, token, started)
        return verdict, (yield from releasing_on_error(self._lease(name), token, work))

    def _compute_and_put(self, name: str, token: str, started: int) -> Flow[Value]:
        value: Value = yield from call_hook(self._compute, name)
        call = self._call(
            "fresh_put",
            bool,
            name,
            token=token,
            computed=value,
            started=started,
            ttl_ms=self._times.ttl,
            stale_ms=self._times.stale,
            ahead_ms=self._times.ahead,
        )
        yield from ask(call)
        return value

    def _due_names(self) -> Call[list[str]]:
        due = {"due": self._due}
        return call_script(
            "names_due", due, lossless_texts, is_raw=True, most=self._batch
        )

    def _read(self, name: str) -> Call[_CachedValue | None]:
        return call_script("fresh_get", {"value": self._value(name)}, _kept)

    def _value(self, name: str) -> str:
        return sendable(beside(self._key, f"value:{name}"))

    def _lease(self, name: str) -> str:
        return sendable(beside(self._key, f"lease:{name}"))

    def _call(
        self, script: str, parse: Callable[[Any], Any], name: str, **rest: Any
    ) -> Call[Any]:
        value, lease = self._value(name), self._lease(name)
        keys = {"value": value, "due": self._due, "lease": lease}
        return call_script(script, keys, parse, name=sendable(name), **rest)


def _kept(flat: list[Any]) -> _CachedValue | None:
    if not flat:
        return None
    value, took, expires, left = flat
    return _CachedValue(value, int(took), lossless_text(expires), int(left))
