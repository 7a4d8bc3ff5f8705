from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import ConfigurationError
from workstealing.jobs import AsyncWindowTrimmer, WindowTrimmer
from workstealing.testing import ScriptedChance, Server

NODE = 100
"""Entries in one node of a stream, as servers are configured by default."""


def server_ms(client: Redis) -> int:
    seconds, microseconds = client.time()
    return seconds * 1000 + microseconds // 1000


def fill_stream(client: Redis, key: str, count: int, first_ms: int = 1) -> None:
    for n in range(count):
        client.xadd(key, {"n": n}, id=f"{first_ms + n}-0")


def oldest_ms(client: Redis, key: str) -> int:
    ((entry, _),) = client.xrange(key, count=1)
    return int(entry.split(b"-")[0])


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 1000)])
def test_a_sorted_set_is_trimmed_to_a_time_window(
    any_redis: Redis, key_prefix: str, unit: Any, per_second: int
) -> None:
    now = server_ms(any_redis) / 1000
    ages = {"now": 0, "young": 50, "old": 70, "older": 7000}
    scores = {name: (now - age) * per_second for name, age in ages.items()}
    any_redis.zadd(key_prefix, scores)
    trimmer = WindowTrimmer(any_redis, key_prefix, age=60, unit=unit)

    assert trimmer.recruited() is Duty.RECRUITED

    assert any_redis.zrange(key_prefix, 0, -1) == [b"young", b"now"]
    assert trimmer.recruited() is Duty.DISMISSED


def test_a_sorted_set_is_trimmed_to_a_length(any_redis: Redis, key_prefix: str) -> None:
    any_redis.zadd(key_prefix, {f"m{n}": n for n in range(10)})
    trimmer = WindowTrimmer(any_redis, key_prefix, length=7)

    assert trimmer.recruited() is Duty.RECRUITED

    assert any_redis.zrange(key_prefix, 0, -1)[0] == b"m3"
    assert any_redis.zcard(key_prefix) == 7
    assert trimmer.recruited() is Duty.DISMISSED


@pytest.mark.parametrize("bound", [{"age": 60}, {"length": 1}])
def test_a_slice_removes_no_more_than_its_batch_and_the_oldest_first(
    any_redis: Redis, key_prefix: str, bound: dict[str, Any]
) -> None:
    any_redis.zadd(key_prefix, {f"m{n}": n for n in range(5)})
    any_redis.zadd(key_prefix, {"young": server_ms(any_redis) / 1000})
    trimmer = WindowTrimmer(any_redis, key_prefix, batch=2, **bound)

    assert trimmer.recruited() is Duty.MORE
    assert any_redis.zrange(key_prefix, 0, -1) == [b"m2", b"m3", b"m4", b"young"]
    assert trimmer.recruited() is Duty.MORE
    assert trimmer.recruited() is Duty.RECRUITED
    assert any_redis.zrange(key_prefix, 0, -1) == [b"young"]


def test_a_stream_is_trimmed_to_a_time_window_by_whole_nodes(
    any_redis: Redis, key_prefix: str
) -> None:
    fill_stream(any_redis, key_prefix, 2 * NODE)
    young = server_ms(any_redis)
    fill_stream(any_redis, key_prefix, NODE + 50, first_ms=young)
    trimmer = WindowTrimmer(any_redis, key_prefix, age=60)

    assert trimmer.recruited() is Duty.MORE
    assert trimmer.recruited() is Duty.MORE
    assert trimmer.recruited() is Duty.DISMISSED

    assert oldest_ms(any_redis, key_prefix) == young
    assert any_redis.xlen(key_prefix) == NODE + 50


def test_a_stream_is_trimmed_to_a_length_and_keeps_up_to_a_node_more(
    any_redis: Redis, key_prefix: str
) -> None:
    fill_stream(any_redis, key_prefix, 3 * NODE + 10)
    trimmer = WindowTrimmer(any_redis, key_prefix, length=NODE)

    drain(trimmer)

    assert NODE <= any_redis.xlen(key_prefix) < 2 * NODE + 10


def test_a_batch_smaller_than_a_node_still_trims_a_stream(
    any_redis: Redis, key_prefix: str
) -> None:
    fill_stream(any_redis, key_prefix, 2 * NODE)
    trimmer = WindowTrimmer(any_redis, key_prefix, length=1, batch=5)

    assert trimmer.recruited() is Duty.MORE

    assert any_redis.xlen(key_prefix) == NODE


def test_a_key_that_does_not_exist_needs_no_trimming(
    any_redis: Redis, key_prefix: str
) -> None:
    assert WindowTrimmer(any_redis, key_prefix, length=0).recruited() is Duty.DISMISSED
    assert not any_redis.exists(key_prefix)


def test_several_keys_are_drawn_by_chance(any_redis: Redis, key_prefix: str) -> None:
    keys = [f"{key_prefix}:{n}" for n in range(3)]
    for key in keys:
        any_redis.zadd(key, {"a": 1, "b": 2})
    trimmer = WindowTrimmer(
        any_redis, *keys, length=1, chance=ScriptedChance(0.99, 0.0)
    )

    trimmer.recruited()
    trimmer.recruited()

    assert [any_redis.zcard(key) for key in keys] == [1, 2, 1]


def test_a_recruit_stays_with_a_full_key_but_not_forever(
    any_redis: Redis, key_prefix: str
) -> None:
    keys = [f"{key_prefix}:{n}" for n in range(2)]
    for key in keys:
        any_redis.zadd(key, {f"m{n}": n for n in range(9)})
    first, stay, leave, second = 0.0, 0.5, 0.95, 0.5
    chance = ScriptedChance(first, stay, leave, second)
    trimmer = WindowTrimmer(any_redis, *keys, length=1, batch=2, chance=chance)

    for _ in range(3):
        assert trimmer.recruited() is Duty.MORE

    assert [any_redis.zcard(key) for key in keys] == [5, 7]


def test_two_recruits_at_once_trim_to_the_length_and_not_below(
    redis_server: Server, key_prefix: str, both_at_once: Callable[..., list[Any]]
) -> None:
    clients = [Redis.from_url(redis_server.url) for _ in range(2)]
    jobs = [WindowTrimmer(c, key_prefix, length=10, batch=3) for c in clients]
    clients[0].zadd(key_prefix, {f"m{n}": n for n in range(100)})

    both_at_once(*(lambda j=j: drain(j) for j in jobs))

    kept = [f"m{n}".encode() for n in range(90, 100)]
    assert clients[0].zrange(key_prefix, 0, -1) == kept
    for client in clients:
        client.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"age": 60, "length": 5},
        {"age": 0},
        {"length": -1},
        {"length": True},
        {"length": 1.5},
        {"age": 60, "unit": "minutes"},
        {"length": 1, "batch": 0},
    ],
)
def test_wrong_bounds_are_refused(fake_redis: Redis, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        WindowTrimmer(fake_redis, "window", **wrong)


def test_a_trimmer_without_keys_is_refused(fake_redis: Redis) -> None:
    with pytest.raises(ConfigurationError, match="at least one key"):
        WindowTrimmer(fake_redis, length=1)


async def test_the_asyncio_face_tells_the_same_story(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    await any_async_redis.zadd(key_prefix, {f"m{n}": n for n in range(5)})
    trimmer = AsyncWindowTrimmer(any_async_redis, key_prefix, length=1, batch=3)

    assert await trimmer.recruited() is Duty.MORE
    assert await trimmer.recruited() is Duty.RECRUITED

    assert await any_async_redis.zrange(key_prefix, 0, -1) == [b"m4"]


def drain(job: WindowTrimmer) -> None:
    while job.recruited() is not Duty.DISMISSED:
        pass
