"""What a user's function raises is blamed on the job, never on the Redis server."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing.errors import Conflict, HookFailed
from workstealing.jobs import (
    AsyncCounterFlush,
    CounterFlush,
    DeadMembers,
    IndexRepair,
    PendingReclaim,
    QueueTracker,
    RefreshAhead,
    VolatileHash,
)
from workstealing.recruiting.protection import is_outage


class Away(ConnectionError):
    """What a database driver raises."""


def away(*_: Any) -> Any:
    raise Away("my SQL is away")


def broken_cursor(*_: Any) -> Iterator[str]:
    yield "1"
    away()


def flush(redis: Redis, key: str, hook: Any) -> CounterFlush:
    counters = CounterFlush(redis, key, hook)
    counters.increment("a")
    return counters


def expire(redis: Redis, key: str, hook: Any) -> VolatileHash:
    fields = VolatileHash(redis, key, on_expire=hook)
    fields.set("a", "1", 100)
    redis.zadd(f"{{{key}}}:expires", {"a": 1})
    return fields


def bury(redis: Redis, key: str, hook: Any) -> DeadMembers:
    redis.zadd(key, {"a": 1})
    return DeadMembers(redis, key, silence=10, on_dead=hook)


def follow(redis: Redis, key: str, hook: Any) -> QueueTracker:
    return QueueTracker(redis, key, next_rows=hook, still_there=hook)


def forget(redis: Redis, key: str, hook: Any) -> QueueTracker:
    tracker = QueueTracker(redis, key, next_rows=lambda *_: "7", still_there=hook)
    tracker.recruited()
    return tracker


def refresh(redis: Redis, key: str, hook: Any) -> RefreshAhead:
    RefreshAhead(redis, key, str, ttl=100).get("a")
    redis.hset(f"{{{key}}}:value:a", "read", 1)
    redis.zadd(f"{{{key}}}:due", {"a": 1})
    return RefreshAhead(redis, key, hook, ttl=100)


def reclaim(redis: Redis, key: str, hook: Any) -> PendingReclaim:
    redis.xgroup_create(key, "g", mkstream=True)
    entry = redis.xadd(key, {"a": "1"})
    redis.xreadgroup("g", "c", {key: ">"})
    redis.xclaim(key, "g", "c", 0, [entry], idle=90_000)
    return PendingReclaim(redis, key, "g", hook)


def repair(redis: Redis, key: str, hook: Any) -> IndexRepair:
    redis.sadd(key, "a")
    return IndexRepair(redis, key, key_of=hook)


JOBS = [flush, expire, bury, follow, forget, refresh, reclaim, repair]


@pytest.mark.parametrize("job_with", JOBS)
def test_a_hook_whose_own_store_is_away_does_not_look_like_redis_being_away(
    redis_client: Redis, key_prefix: str, job_with: Callable[..., Any]
) -> None:
    job = job_with(redis_client, key_prefix, away)

    with pytest.raises(HookFailed, match="Away: my SQL is away") as caught:
        job.recruited()

    assert isinstance(caught.value.__cause__, Away)
    assert not is_outage(caught.value)


@pytest.mark.parametrize("job_with", [follow, forget])
def test_rows_that_break_off_while_they_are_read_are_a_failure_of_the_hook(
    redis_client: Redis, key_prefix: str, job_with: Callable[..., Any]
) -> None:
    with pytest.raises(HookFailed, match="broken_cursor"):
        job_with(redis_client, key_prefix, broken_cursor).recruited()


@pytest.mark.parametrize("job_with", JOBS)
def test_a_hook_may_say_that_another_is_at_it(
    redis_client: Redis, key_prefix: str, job_with: Callable[..., Any]
) -> None:
    def busy(*_: Any) -> None:
        raise Conflict("the table is locked")

    with pytest.raises(Conflict, match="locked"):
        job_with(redis_client, key_prefix, busy).recruited()


async def test_a_coroutine_hook_is_blamed_alike(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    async def sink(*_: Any) -> None:
        raise TimeoutError("my SQL is slow")

    counters = AsyncCounterFlush(any_async_redis, key_prefix, sink)
    await counters.increment("a")

    with pytest.raises(HookFailed, match="TimeoutError: my SQL is slow") as caught:
        await counters.recruited()

    assert not is_outage(caught.value)


def test_a_reader_gets_what_its_own_function_raised(
    any_redis: Redis, key_prefix: str
) -> None:
    with pytest.raises(Away):
        RefreshAhead(any_redis, key_prefix, away, ttl=100).get("a")


def test_the_failure_of_a_hook_can_cross_processes(
    any_redis: Redis, key_prefix: str
) -> None:
    with pytest.raises(HookFailed) as caught:
        flush(any_redis, key_prefix, away).recruited()

    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
