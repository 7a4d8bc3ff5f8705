"""Cached values that are computed anew before they expire.

`get(name)` returns the value. Near its end a read may compute it anew early, by the
lottery of `XFetch`; slices do so for names that expire within *ahead* seconds and were
read since they were computed. One process computes a name at a time, under a lease;
the others are served the value there is, also for *stale* seconds after its end.
Newest servers: none computes; a plain `SET … EX` is enough where a stampede at expiry
does not hurt.

- A value that was computed while its lease was lost is discarded, not stored: it
  cannot replace a newer one. The caller that computed it gets it all the same.
- `get` returns None only if there is no value at all and another process computes the
  first one at this moment; nobody waits.
- If computing fails, `get` serves what there is, and raises only if there is nothing;
  slices raise. A name that fails is tried again by slices after *lease* seconds.
- Names that nobody reads are not refreshed; they expire, and nothing is left of them.

A slice takes as long as `compute` does. Use it for values that are computed in a few
milliseconds, or run the slices where nobody waits. All values of one `RefreshAhead`
share a hash tag, so in a Cluster they are on one node.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.errors import Conflict, HookFailed
from workstealing.jobs.checking import checked_batch, milliseconds
from workstealing.jobs.face import AsyncRedisJob, RedisJob, duty
from workstealing.jobs.leasing import Leases, guarded, new_token
from workstealing.jobs.naming import beside, checked_key, checked_name
from workstealing.jobs.telling import consult
from workstealing.jobs.wording import Value, sendable, text, texts
from workstealing.jobs.xfetch import XFETCH, XFetch
from workstealing.queue.call import Argument, Call, Command, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncRefreshAhead", "RefreshAhead")

logger = logging.getLogger(__name__)

Compute: TypeAlias = Callable[[str], Value]
AsyncCompute: TypeAlias = Callable[[str], Awaitable[Value]]

_OURS, _HELD, _UNREAD = 1, 0, -2


class RefreshAhead(RedisJob):
    """Values that are computed anew in time; the sync face.

    *ttl*, *stale* (as long as *ttl* by default), *ahead* (a tenth of it) and *lease*
    are seconds; a lease is longer than computing ever takes.
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
        times = _Times.of(ttl, stale, ahead, lease)
        self._body = _Body(key, compute, times, xfetch, batch, chance)

    def get(self, name: str) -> Value | None:
        """Return the value of a name, computing it if there is none or it is due."""
        return self._driver.run(self._body.get(name))

    def forget(self, name: str) -> bool:
        """Forget a value and discard what is being computed; tell if there was one."""
        return self._driver.call(self._body.forget(name))

    def pending(self) -> int:
        """Return how many names slices look after."""
        return self._driver.call(self._body.pending())

    def recruited(self) -> Duty:
        """Compute up to *batch* values that expire soon."""
        return self._driver.run(self._body.refresh())


class AsyncRefreshAhead(AsyncRedisJob):
    """Values that are computed anew in time; the asyncio face.

    *ttl*, *stale* (as long as *ttl* by default), *ahead* (a tenth of it) and *lease*
    are seconds; a lease is longer than computing ever takes.
    """

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
        times = _Times.of(ttl, stale, ahead, lease)
        self._body = _Body(key, compute, times, xfetch, batch, chance)

    async def get(self, name: str) -> Value | None:
        """Return the value of a name, computing it if there is none or it is due."""
        return await self._driver.run(self._body.get(name))

    async def forget(self, name: str) -> bool:
        """Forget a value and discard what is being computed; tell if there was one."""
        return await self._driver.call(self._body.forget(name))

    async def pending(self) -> int:
        """Return how many names slices look after."""
        return await self._driver.call(self._body.pending())

    async def recruited(self) -> Duty:
        """Compute up to *batch* values that expire soon."""
        return await self._driver.run(self._body.refresh())


@dataclass(frozen=True, slots=True)
class _Times:
    """How long things last, in milliseconds."""

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
    ) -> _Times:
        ttl_ms = milliseconds(ttl)
        return cls(
            ttl_ms,
            ttl_ms if stale is None else milliseconds(stale, "stale"),
            ttl_ms // 10 if ahead is None else milliseconds(ahead, "ahead"),
            milliseconds(lease, "lease"),
        )


@dataclass(frozen=True, slots=True)
class _Kept:
    """A value, how long it took, when it expires, and how long that is from now."""

    value: Value
    took: int
    expires: str
    left: int


class _Body:
    """What both faces ask of Redis and of the user's function."""

    def __init__(
        self,
        key: str,
        compute: Callable[[str], Any],
        times: _Times,
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
        self._leases = Leases()

    def get(self, name: str) -> Flow[Value | None]:
        yield from self._leases.give_back()
        kept = yield from ask(self._read(checked_name(name)))
        if kept is None:
            return (yield from self._get_first(name))
        ttl = self._times.ttl
        if self._xfetch.is_due(kept.left, kept.took, ttl, self._chance):
            try:
                _, value = yield from self._renew(name, kept.expires)
            except Exception:
                logger.warning("kept the old value of %r", name, exc_info=True)
            else:
                return kept.value if value is None else value
        return kept.value

    def forget(self, name: str) -> Call[bool]:
        return self._call("fresh_forget", bool, checked_name(name))

    def pending(self) -> Command[int]:
        return Command(("ZCARD", self._due), int)

    def refresh(self) -> Flow[Duty]:
        yield from self._leases.give_back()
        names = yield from ask(self._due_names())
        verdicts = []
        for name in names:
            verdict, _ = yield from self._renew(name, "due")
            verdicts.append(verdict)
        done = verdicts.count(_OURS) + verdicts.count(_UNREAD)
        if _HELD in verdicts and not done:
            raise Conflict("another process computes the values that are due")
        return duty(done, self._batch)

    def _get_first(self, name: str) -> Flow[Value | None]:
        error: BaseException | None = None
        try:
            _, value = yield from self._renew(name, "")
        except HookFailed as failed:
            error = failed.__cause__
        if error is not None:
            # Who calls `get` is no slice: it gets what its own function raised.
            raise error
        if value is None:
            # Somebody else has just computed it, or is about to.
            kept = yield from ask(self._read(name))
            return None if kept is None else kept.value
        return value

    def _renew(self, name: str, seen: str) -> Flow[tuple[int, Value | None]]:
        """Compute and store a value, if it is on us to do so."""
        token, lease = new_token(), self._lease(name)
        work = self._renew_as(token, name, seen)
        return (yield from self._leases.noting(lease, token, work))

    def _renew_as(
        self, token: str, name: str, seen: str
    ) -> Flow[tuple[int, Value | None]]:
        verdict, started = yield from ask(
            self._call("fresh_lease", list, name, token, self._times.lease, seen)
        )
        if verdict != _OURS:
            return verdict, None
        work = self._compute_and_put(name, token, started)
        return verdict, (yield from guarded(self._lease(name), token, work))

    def _compute_and_put(self, name: str, token: str, started: int) -> Flow[Value]:
        value: Value = yield from consult(self._compute, name)
        times = (self._times.ttl, self._times.stale, self._times.ahead)
        yield from ask(
            self._call("fresh_put", bool, name, token, value, started, *times)
        )
        return value

    def _due_names(self) -> Call[list[str]]:
        script = load_script(__package__, "fresh_due")
        return Call(script, (self._due,), (self._batch,), texts, is_raw=True)

    def _read(self, name: str) -> Call[_Kept | None]:
        script = load_script(__package__, "fresh_get")
        return Call(script, (self._value(name),), (), _kept)

    def _value(self, name: str) -> str:
        return sendable(beside(self._key, f"value:{name}"))

    def _lease(self, name: str) -> str:
        return sendable(beside(self._key, f"lease:{name}"))

    def _call(
        self, script: str, parse: Callable[[Any], Any], name: str, *rest: Argument
    ) -> Call[Any]:
        keys = (self._value(name), self._due, self._lease(name))
        arguments = (sendable(name), *rest)
        return Call(load_script(__package__, script), keys, arguments, parse)


def _kept(flat: list[Any]) -> _Kept | None:
    if not flat:
        return None
    value, took, expires, left = flat
    return _Kept(value, int(took), text(expires), int(left))
