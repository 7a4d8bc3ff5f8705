"""Hooks on a redis-py client that is used as a cache: GET, GETEX, MGET, HGET and so on.

A read that finds something enlists, with its round trip for the store gate; a read that
finds nothing calls `on_miss`. Other commands, such as SET, and pipelines are left
alone. Any client with an `execute_command` will do, including those of a Cluster and of
valkey-py.

The client stays the same object, so all code that uses it enlists. Jobs need a client
of their own: `connect()` makes one with short timeouts that does not retry.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from workstealing.errors import ConfigurationError
from workstealing.integrations.cache_hooks import (
    AsyncCacheHooks,
    CacheHooks,
    OnMiss,
    derive_class,
)
from workstealing.recruiting.recruiter import Recruiter

if TYPE_CHECKING:
    from workstealing.recruiting.async_recruiter import AsyncRecruiter

__all__ = ("enlist_on_hits",)

AnyClient = TypeVar("AnyClient")

_READS = frozenset({"GET", "GETEX", "HGET", "HGETALL", "HMGET", "MGET"})


def enlist_on_hits(
    client: AnyClient,
    recruiter: Recruiter | AsyncRecruiter,
    *,
    on_miss: OnMiss | None = None,
) -> AnyClient:
    """Let a client enlist when a read finds something; returns the same client.

    An asyncio client needs an `AsyncRecruiter`. A miss calls `on_miss(key)`, or
    `on_miss(key, field)` for a field of a hash; once for each missing one.
    """
    execute = getattr(client, "execute_command", None)
    if execute is None:
        raise ConfigurationError(
            f"{client!r} is not a Redis client: it has no execute_command"
        )
    if inspect.iscoroutinefunction(execute):
        awaited = AsyncCacheHooks(recruiter, on_miss)
        return derive_class(client, lambda own: _async_enlisting(own, awaited))
    hooks = CacheHooks(recruiter, on_miss)
    return derive_class(client, lambda own: _enlisting(own, hooks))


def _enlisting(own: Any, hooks: CacheHooks) -> type:
    class RedisEnlistClient(own):  # type: ignore[misc]
        def execute_command(self, *args: Any, **options: Any) -> Any:
            if args[0] not in _READS:
                return super().execute_command(*args, **options)
            began_at = perf_counter()
            reply = super().execute_command(*args, **options)
            rtt = perf_counter() - began_at
            is_hit, missing = _hit_and_missing(args, reply)
            if is_hit:
                hooks.hit(None, rtt)
            for names in missing:
                hooks.miss(*names)
            return reply

    return RedisEnlistClient


def _async_enlisting(own: Any, hooks: AsyncCacheHooks) -> type:
    class AsyncRedisEnlistClient(own):  # type: ignore[misc]
        async def execute_command(self, *args: Any, **options: Any) -> Any:
            if args[0] not in _READS:
                return await super().execute_command(*args, **options)
            began_at = perf_counter()
            reply = await super().execute_command(*args, **options)
            rtt = perf_counter() - began_at
            is_hit, missing = _hit_and_missing(args, reply)
            if is_hit:
                await hooks.hit(None, rtt)
            for names in missing:
                await hooks.miss(*names)
            return reply

    return AsyncRedisEnlistClient


def _hit_and_missing(
    args: Sequence[Any], reply: Any
) -> tuple[bool, Sequence[Sequence[Any]]]:
    """Return whether it is a hit, and the arguments of `on_miss` for each miss."""
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
