"""A registry whose silent members are found and removed.

A member joins, beats, and leaves; one whose last sign of life is more than *silence*
seconds old (in the server's time) is dead, and no reader sees it any more.
`recruited()` removes up to *batch* of them and calls `on_dead(member)` for each. The
removal checks the heartbeat in the same step: a member that beat meanwhile stays.
Newest servers: a lock with `PX` expires by itself, only membership needs this.

Each death is told at least once, and only after the removal. The recruit has a minute
for telling; if it dies or the hook fails, a later recruit tells again. So a hook may be
called twice, and must bear it. Give the hook in every process that installs the job:
a recruit without one removes members and tells nobody.

A member that was removed finds out by its next `beat()`, which returns False; it may
join again. Its death is told all the same, so name members anew for each life.
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
from workstealing.jobs.wording import Value
from workstealing.queue.call import Argument, Call, Command, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncDeadMembers", "DeadMembers")

_CLAIM_MS = 60_000


class DeadMembers(RedisJob):
    """A registry with heartbeats; the sync face."""

    def __init__(
        self,
        redis: Client | str | None,
        key: str,
        *,
        silence: float | timedelta,
        batch: int = 10,
        on_dead: Callable[[Value], Any] | None = None,
    ) -> None:
        super().__init__(redis)
        self._body = _Body(key, silence, batch, on_dead)

    def join(self, member: Value) -> bool:
        """Become a member; tell whether there was no such living one."""
        return self._driver.call(self._body.join(member))

    def beat(self, member: Value) -> bool:
        """Give a sign of life; False means not a member (any more)."""
        return self._driver.call(self._body.beat(member))

    def leave(self, member: Value) -> bool:
        """End a membership in order: no death is told; tell whether there was one."""
        return self._driver.call(self._body.leave(member))

    def members(self) -> list[Value]:
        """Return all living members: as costly as they are many."""
        return self._driver.call(self._body.members())

    def recruited(self) -> Duty:
        """Remove up to *batch* silent members and tell of their deaths."""
        return self._driver.run(self._body.bury())


class AsyncDeadMembers(AsyncRedisJob):
    """A registry with heartbeats; the asyncio face."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        key: str,
        *,
        silence: float | timedelta,
        batch: int = 10,
        on_dead: Callable[[Value], Any] | None = None,
    ) -> None:
        super().__init__(redis)
        self._body = _Body(key, silence, batch, on_dead)

    async def join(self, member: Value) -> bool:
        """Become a member; tell whether there was no such living one."""
        return await self._driver.call(self._body.join(member))

    async def beat(self, member: Value) -> bool:
        """Give a sign of life; False means not a member (any more)."""
        return await self._driver.call(self._body.beat(member))

    async def leave(self, member: Value) -> bool:
        """End a membership in order: no death is told; tell whether there was one."""
        return await self._driver.call(self._body.leave(member))

    async def members(self) -> list[Value]:
        """Return all living members: as costly as they are many."""
        return await self._driver.call(self._body.members())

    async def recruited(self) -> Duty:
        """Remove up to *batch* silent members and tell of their deaths."""
        return await self._driver.run(self._body.bury())


class _Body:
    """What both faces ask of Redis."""

    def __init__(
        self,
        key: str,
        silence: float | timedelta,
        batch: int,
        on_dead: Callable[[Value], Any] | None,
    ) -> None:
        self._members = checked_key(key)
        self._untold = beside(key, "untold")
        self._silence_ms = milliseconds(silence, "silence")
        self._batch = checked_batch(batch)
        self._on_dead = on_dead

    def join(self, member: Value) -> Call[bool]:
        return self._call("members_join", bool, self._silence_ms, member)

    def beat(self, member: Value) -> Call[bool]:
        return self._call("members_beat", bool, self._silence_ms, member)

    def leave(self, member: Value) -> Command[bool]:
        return Command(("ZREM", self._members, member), parse=bool)

    def members(self) -> Call[list[Value]]:
        return self._call("members_living", list)

    def bury(self) -> Flow[Duty]:
        claim_ms = 0 if self._on_dead is None else _CLAIM_MS
        script = load_script(__package__, "members_bury")
        keys = (self._members, self._untold)
        claim, *dead = yield from ask(Call(script, keys, (self._batch, claim_ms), list))
        if self._on_dead is not None:
            told, error = yield from tell_each(self._on_dead, zip(dead))
            if told:
                yield from ask(self._forget(claim, [member for (member,) in told]))
            if error is not None:
                raise error
        return duty(len(dead), self._batch)

    def _forget(self, claim: int, members: list[Value]) -> Call[int]:
        script = load_script(__package__, "members_told")
        return Call(script, (self._untold,), (claim, *members), int)

    def _call(
        self, script: str, parse: Callable[[Any], Any], *arguments: Argument
    ) -> Call[Any]:
        keys = (self._members,)
        return Call(load_script(__package__, script), keys, arguments, parse)
