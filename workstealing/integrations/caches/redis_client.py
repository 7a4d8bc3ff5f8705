"""Hooks on a redis-py client that is used as a cache: GET, GETEX, MGET, HGET and so on.

A read that finds something enlists, with its round trip for the store gate; a read that
finds nothing calls `on_miss`. Other commands, SET among them, go straight through, and
so do pipelines: their replies come later. Any client with `execute_command` will do,
also of a Cluster, also valkey-py.

The client stays the same object, so whoever holds it enlists too. Jobs need a client of
their own: `connect()` makes one that does not wait and does not retry.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from workstealing.errors import ConfigurationError
from workstealing.integrations.caches.hooks import AsyncHooks, Hooks, OnMiss, adopt
from workstealing.recruiting.recruiter import Recruiter

if TYPE_CHECKING:
    from workstealing.recruiting.aio import AsyncRecruiter

__all__ = ("enlists_on_hits",)

AnyClient = TypeVar("AnyClient")

_READS = frozenset({"GET", "GETEX", "HGET", "HGETALL", "HMGET", "MGET"})


def enlists_on_hits(
    client: AnyClient,
    recruiter: Recruiter | AsyncRecruiter,
    *,
    on_miss: OnMiss | None = None,
) -> AnyClient:
    """Let a client enlist when a read finds something; returns the same client.

    An asyncio client needs an `AsyncRecruiter`. A miss calls `on_miss(key)`, or
    `on_miss(key, field)` for a field of a hash; once for each that was missing.
    """
    execute = getattr(client, "execute_command", None)
    if execute is None:
        raise ConfigurationError(f"{client!r} has no execute_command: no Redis client")
    if inspect.iscoroutinefunction(execute):
        awaited = AsyncHooks(recruiter, on_miss)
        return adopt(client, lambda own: _async_enlisting(own, awaited))
    hooks = Hooks(recruiter, on_miss)
    return adopt(client, lambda own: _enlisting(own, hooks))


def _enlisting(own: Any, hooks: Hooks) -> type:
    class Enlisting(own):  # type: ignore[misc]
        def execute_command(self, *args: Any, **options: Any) -> Any:
            if args[0] not in _READS:
                return super().execute_command(*args, **options)
            begun = perf_counter()
            reply = super().execute_command(*args, **options)
            rtt = perf_counter() - begun
            is_hit, missing = _judged(args, reply)
            if is_hit:
                hooks.hit(None, rtt)
            for what in missing:
                hooks.miss(*what)
            return reply

    return Enlisting


def _async_enlisting(own: Any, hooks: AsyncHooks) -> type:
    class Enlisting(own):  # type: ignore[misc]
        async def execute_command(self, *args: Any, **options: Any) -> Any:
            if args[0] not in _READS:
                return await super().execute_command(*args, **options)
            begun = perf_counter()
            reply = await super().execute_command(*args, **options)
            rtt = perf_counter() - begun
            is_hit, missing = _judged(args, reply)
            if is_hit:
                await hooks.hit(None, rtt)
            for what in missing:
                await hooks.miss(*what)
            return reply

    return Enlisting


def _judged(args: Sequence[Any], reply: Any) -> tuple[bool, Sequence[Sequence[Any]]]:
    """Tell a hit, and return what `on_miss` is told, once for each that was missing."""
    if reply is None:
        return False, (args[1:3] if args[0] == "HGET" else args[1:2],)
    if isinstance(reply, list):
        of_hash = args[0] == "HMGET"
        names, prefix = (args[2:], args[1:2]) if of_hash else (args[1:], ())
        values = zip(names, reply, strict=False)
        missing = [(*prefix, name) for name, value in values if value is None]
        return len(missing) < len(reply), missing
    if reply or args[0] != "HGETALL":
        return True, ()
    return False, (args[1:2],)
