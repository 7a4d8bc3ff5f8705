"""Caches that are awaited: aiocache, a redis-py client, memoized coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiocache import Cache
from aiocache.base import BaseCache
from async_lru import alru_cache
from redis.asyncio import Redis

from workstealing import AsyncRecruiter, Recruiter, StoreGate
from workstealing.errors import ConfigurationError
from workstealing.integrations.aiocache import AiocacheEnlistPlugin
from workstealing.integrations.memoize import memoized
from workstealing.integrations.redis_client import enlist_on_hits
from workstealing.testing import Server

Missed = list[tuple[Any, ...]]
Begin = Callable[..., Any]


@pytest.fixture
def missed() -> Missed:
    """What `on_miss` was told, by `note`."""
    return []


@pytest.fixture
def note(missed: Missed) -> Callable[..., Awaitable[None]]:
    """A hook that is awaited."""

    async def note(*what: Any) -> None:
        await asyncio.sleep(0)
        missed.append(what)

    return note


@pytest.fixture(params=["memory", "redis"])
async def begin(
    request: pytest.FixtureRequest, redis_server: Server
) -> AsyncIterator[Begin]:
    """Make an aiocache, in memory or on a server."""
    caches: list[BaseCache] = []

    def begin(recruiter: AsyncRecruiter, **options: Any) -> BaseCache:
        timeout = options.pop("timeout", 5)
        plugins = [AiocacheEnlistPlugin(recruiter, **options)]
        if request.param == "memory":
            cache = Cache(Cache.MEMORY, plugins=plugins, timeout=timeout)
        else:
            client = Redis.from_url(redis_server.url, decode_responses=False)
            cache = Cache(Cache.REDIS, plugins=plugins, timeout=timeout)
            cache.client = client
        caches.append(cache)
        return cache

    yield begin
    for cache in caches:
        if request.param == "memory":
            await cache.close()
        else:
            await cache.client.aclose()  # aiocache calls a method that is deprecated


async def test_a_hit_of_aiocache_enlists_and_a_miss_is_told(
    begin: Begin,
    async_recruiter: AsyncRecruiter,
    key_prefix: str,
    missed: Missed,
    note: Any,
) -> None:
    cache = begin(async_recruiter, on_miss=note)

    assert await cache.get(key_prefix) is None
    assert async_recruiter.stats().calls == 0
    await cache.set(key_prefix, "value")
    assert await cache.get(key_prefix) == "value"

    assert async_recruiter.stats().calls == 1
    assert missed == [(key_prefix,)]


async def test_a_default_of_aiocache_is_a_miss_however_it_is_given(
    begin: Begin,
    async_recruiter: AsyncRecruiter,
    key_prefix: str,
    missed: Missed,
    note: Any,
) -> None:
    cache = begin(async_recruiter, on_miss=note)

    assert await cache.get(key_prefix, "default") == "default"
    assert await cache.get(key_prefix, default="default") == "default"

    assert missed == [(key_prefix,), (key_prefix,)]
    assert async_recruiter.stats().calls == 0


async def test_several_keys_of_aiocache_are_one_hit_and_a_miss_each(
    begin: Begin,
    async_recruiter: AsyncRecruiter,
    key_prefix: str,
    missed: Missed,
    note: Any,
) -> None:
    cache = begin(async_recruiter, on_miss=note)
    keys = [f"{key_prefix}-{letter}" for letter in "abcd"]
    await cache.multi_set([(keys[0], "a"), (keys[2], "c")])

    assert await cache.multi_get(keys) == ["a", None, "c", None]

    assert async_recruiter.stats().calls == 1
    assert missed == [(keys[1],), (keys[3],)]


async def test_nothing_that_a_hook_or_a_job_raises_is_seen(
    begin: Begin, key_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("not today")

    recruiter = AsyncRecruiter(share=None)
    recruiter.install(fail, "failing", rate=1.0)
    cache = begin(recruiter, on_miss=fail)

    assert await cache.get(key_prefix) is None
    await cache.set(key_prefix, "value")
    assert await cache.get(key_prefix) == "value"

    assert recruiter.stats().jobs["failing"].last_error == "RuntimeError('not today')"
    assert "on_miss failed" in caplog.text


async def test_a_job_that_hangs_is_over_before_the_timeout_of_the_cache(
    begin: Begin, key_prefix: str
) -> None:
    recruiter = AsyncRecruiter(share=None, deadline=50.0)

    @recruiter.job(rate=1.0)
    async def hang() -> None:
        await asyncio.Event().wait()

    cache = begin(recruiter, timeout=1.0)
    await cache.set(key_prefix, "value")

    assert await cache.get(key_prefix) == "value"

    assert recruiter.stats().jobs["hang"].drawn == 1


@pytest.mark.parametrize(
    ("begin", "heard"), [("memory", False), ("redis", True)], indirect=["begin"]
)
async def test_only_the_round_trips_to_a_store_are_heard_by_its_gate(
    begin: Begin, heard: bool, key_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recruiter = AsyncRecruiter(gate=StoreGate())
    trips: list[float] = []
    monkeypatch.setattr(
        recruiter._guard, "note_round_trip", lambda rtt, now: trips.append(rtt)
    )
    cache = begin(recruiter)
    await cache.set(key_prefix, "value")

    # Without a job, and with a gate, a stride is 64 calls.
    for _ in range(65):
        await cache.get(key_prefix)

    assert bool(trips) == heard
    assert all(trip > 0.0 for trip in trips)


async def test_a_client_that_is_awaited_enlists_on_hits(
    async_redis_client: Redis,
    async_recruiter: AsyncRecruiter,
    key_prefix: str,
    missed: Missed,
    note: Any,
) -> None:
    client = enlist_on_hits(async_redis_client, async_recruiter, on_miss=note)
    await client.set(key_prefix, "value")
    other = f"{key_prefix}-other"

    assert await client.get(key_prefix) == b"value"
    assert await client.mget(key_prefix, other) == [b"value", None]
    assert async_recruiter.stats().calls == 2
    assert await client.hget(other, "field") is None  # type: ignore[misc]
    assert await client.hgetall(other) == {}  # type: ignore[misc]

    assert async_recruiter.stats().calls == 2
    assert missed == [(other,), (other, "field"), (other,)]


async def test_a_memoized_coroutine_enlists_on_hits(
    async_recruiter: AsyncRecruiter, missed: Missed, note: Any
) -> None:
    @memoized(alru_cache(maxsize=8), async_recruiter, on_miss=note)
    async def square(number: int) -> int:
        """Multiply a number by itself."""
        await asyncio.sleep(0)
        return number * number

    assert [await square(number) for number in (2, 3, 2, 2)] == [4, 9, 4, 4]

    assert async_recruiter.stats().calls == 2
    assert missed == [(2,), (3,)]
    assert square.cache_info().hits == 2
    assert square.__doc__ == "Multiply a number by itself."


async def test_an_awaited_cache_refuses_a_recruiter_that_would_block_its_loop(
    recruiter: Recruiter, async_redis_client: Redis
) -> None:
    with pytest.raises(ConfigurationError, match="block the event loop"):
        AiocacheEnlistPlugin(recruiter)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="block the event loop"):
        enlist_on_hits(async_redis_client, recruiter)
