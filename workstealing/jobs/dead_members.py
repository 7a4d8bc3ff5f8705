"""A registry whose silent members are found and removed.

A member joins, beats, and leaves; a member whose last heartbeat is more than *silence*
seconds old (in the server's time) is dead, and no reader sees it any more.
`recruited()` removes up to *batch* of them and calls `on_dead(member)` for each. The
removal checks the heartbeat in the same step: a member that beat meanwhile stays.
Newest servers: a lock with `PX` expires without help; only membership needs this job.

`on_dead` is called at least once per death, and only after the removal. The recruit has
a minute for these calls; if it dies or the hook fails, a later recruit calls it again.
So a hook may be called twice for one death. Pass the hook in every process that
installs the job: a recruit without one removes members and calls nothing.

A member that was removed finds out by its next `beat()`, which returns False; it may
join again. `on_dead` is called all the same, so use a new name each time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from workstealing._checks import checked_batch, milliseconds
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.jobs.job_keys import Value, beside, checked_key
from workstealing.jobs.redis_job import (
    AsyncRedisJob,
    RedisJob,
    call_for_each,
    call_script,
    duty_of,
)
from workstealing.queue.steps import Call, Flow, RedisCommand, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncDeadMembers", "DeadMembers")

_CLAIM_MS = 60_000


class DeadMembers(RedisJob):
    """A registry with heartbeats."""

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
        self._steps = _DeadMembersSteps(key, silence, batch, on_dead)

    def join(self, member: Value) -> bool:
        """Add a member; return whether there was no live member of that name."""
        return self._driver.call(self._steps.join(member))

    def beat(self, member: Value) -> bool:
        """Renew the heartbeat; return False if it is not a member (any more)."""
        return self._driver.call(self._steps.beat(member))

    def leave(self, member: Value) -> bool:
        """Remove a member without calling `on_dead`; return whether it was one."""
        return self._driver.call(self._steps.leave(member))

    def members(self) -> list[Value]:
        """Return all live members; the cost grows with their number."""
        return self._driver.call(self._steps.members())

    def recruited(self) -> Duty:
        """Remove up to *batch* silent members, and call `on_dead` for each."""
        return self._driver.run(self._steps.remove_dead())


class AsyncDeadMembers(AsyncRedisJob):
    """`DeadMembers` for asyncio."""

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
        self._steps = _DeadMembersSteps(key, silence, batch, on_dead)

    async def join(self, member: Value) -> bool:
        """Add a member; return whether there was no live member of that name."""
        return await self._driver.call(self._steps.join(member))

    async def beat(self, member: Value) -> bool:
        """Renew the heartbeat; return False if it is not a member (any more)."""
        return await self._driver.call(self._steps.beat(member))

    async def leave(self, member: Value) -> bool:
        """Remove a member without calling `on_dead`; return whether it was one."""
        return await self._driver.call(self._steps.leave(member))

    async def members(self) -> list[Value]:
        """Return all live members; the cost grows with their number."""
        return await self._driver.call(self._steps.members())

    async def recruited(self) -> Duty:
        """Remove up to *batch* silent members, and call `on_dead` for each."""
        return await self._driver.run(self._steps.remove_dead())


class _DeadMembersSteps:
    """The steps of both classes: what they ask of Redis."""

    def __init__(
        self,
        key: str,
        silence: float | timedelta,
        batch: int,
        on_dead: Callable[[Value], Any] | None,
    ) -> None:
        self._keys = {
            "members": checked_key(key),
            "unreported": beside(key, "unreported"),
        }
        self._silence_ms = milliseconds(silence, "silence")
        self._batch = checked_batch(batch)
        self._on_dead = on_dead

    def join(self, member: Value) -> Call[bool]:
        return self._heard_of("members_join", member)

    def beat(self, member: Value) -> Call[bool]:
        return self._heard_of("members_beat", member)

    def leave(self, member: Value) -> RedisCommand[bool]:
        return RedisCommand(("ZREM", self._keys["members"], member), parse=bool)

    def members(self) -> Call[list[Value]]:
        return call_script("members_alive", self._keys, list)

    def remove_dead(self) -> Flow[Duty]:
        claim_ms = 0 if self._on_dead is None else _CLAIM_MS
        call = call_script(
            "members_remove_dead",
            self._keys,
            list,
            most=self._batch,
            claim_ms=claim_ms,
        )
        claim, *dead = yield from ask(call)
        if self._on_dead is not None:
            reported, error = yield from call_for_each(self._on_dead, zip(dead))
            if reported:
                yield from ask(self._forget(claim, [member for (member,) in reported]))
            if error is not None:
                raise error
        return duty_of(len(dead), more=len(dead) >= self._batch)

    def _forget(self, claim: int, members: list[Value]) -> Call[int]:
        return call_script(
            "members_reported", self._keys, int, claim=claim, members=members
        )

    def _heard_of(self, script: str, member: Value) -> Call[bool]:
        until = self._silence_ms
        return call_script(script, self._keys, bool, silence=until, member=member)
