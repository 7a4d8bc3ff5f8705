from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import ConfigurationError, HookFailed
from workstealing.jobs import AsyncDeadMembers, DeadMembers
from workstealing.testing import Server, wait_until


@pytest.fixture
def told() -> list[bytes]:
    return []


@pytest.fixture
def workers(any_redis: Redis, key_prefix: str, told: list[bytes]) -> DeadMembers:
    return DeadMembers(any_redis, key_prefix, silence=60, on_dead=told.append)


def silence(client: Redis, key: str, *members: str) -> None:
    """Let the silence of members be too long."""
    client.zadd(key, dict.fromkeys(members, 1), xx=True)


def run_out(client: Redis, key: str) -> None:
    """Let all claims to tell a death run out."""
    unreported = f"{{{key}}}:unreported"
    client.zadd(unreported, dict.fromkeys(client.zrange(unreported, 0, -1), 1))


def pass_a_moment(client: Redis) -> None:
    """Let a millisecond go by on the server, as nobody can die twice within one."""
    seconds, microseconds = client.time()
    later = (
        seconds + (microseconds + 2000) // 1_000_000,
        (microseconds + 2000) % 1_000_000,
    )
    wait_until(lambda: client.time() > later, 5, "the server's clock to move")


def test_members_join_beat_and_leave(workers: DeadMembers) -> None:
    assert workers.join("ann")
    assert not workers.join("ann")
    assert workers.join("bob")
    assert workers.beat("ann")
    assert not workers.beat("eve")

    assert sorted(workers.members()) == [b"ann", b"bob"]
    assert workers.leave("ann")
    assert not workers.leave("ann")
    assert not workers.beat("ann")
    assert workers.members() == [b"bob"]


def test_a_reader_never_sees_a_silent_member(
    workers: DeadMembers, any_redis: Redis, key_prefix: str
) -> None:
    workers.join("ann")
    workers.join("bob")

    silence(any_redis, key_prefix, "ann")

    assert workers.members() == [b"bob"]


def test_a_slice_removes_silent_members_and_tells_of_each(
    workers: DeadMembers, any_redis: Redis, key_prefix: str, told: list[bytes]
) -> None:
    for member in ("ann", "bob", "eve"):
        workers.join(member)
    silence(any_redis, key_prefix, "ann", "eve")

    assert workers.recruited() is Duty.RECRUITED
    assert workers.recruited() is Duty.DISMISSED

    assert sorted(told) == [b"ann", b"eve"]
    assert any_redis.zrange(key_prefix, 0, -1) == [b"bob"]
    assert not any_redis.exists(f"{{{key_prefix}}}:unreported")
    assert not workers.beat("ann")
    assert workers.join("ann")


def test_a_member_that_beats_before_the_removal_stays(
    workers: DeadMembers, any_redis: Redis, key_prefix: str, told: list[bytes]
) -> None:
    workers.join("ann")
    silence(any_redis, key_prefix, "ann")

    assert workers.beat("ann")

    assert workers.recruited() is Duty.DISMISSED
    assert workers.members() == [b"ann"]
    assert told == []


def test_a_member_that_left_is_not_told_dead(
    workers: DeadMembers, any_redis: Redis, key_prefix: str, told: list[bytes]
) -> None:
    workers.join("ann")
    silence(any_redis, key_prefix, "ann")
    workers.leave("ann")

    assert workers.recruited() is Duty.DISMISSED
    assert told == []


def test_a_full_slice_asks_for_more(any_redis: Redis, key_prefix: str) -> None:
    workers = DeadMembers(any_redis, key_prefix, silence=60, batch=2)
    for member in "abc":
        workers.join(member)
    silence(any_redis, key_prefix, *"abc")

    assert workers.recruited() is Duty.MORE
    assert workers.recruited() is Duty.RECRUITED
    assert workers.recruited() is Duty.DISMISSED
    assert not any_redis.exists(key_prefix, f"{{{key_prefix}}}:unreported")


def test_a_death_that_a_dying_recruit_did_not_tell_is_told_by_a_later_one(
    workers: DeadMembers,
    any_redis: Redis,
    key_prefix: str,
    told: list[bytes],
    stepped: Callable[..., Any],
) -> None:
    workers.join("ann")
    silence(any_redis, key_prefix, "ann")
    stepped(workers._driver, workers._steps.remove_dead()).step()

    assert workers.recruited() is Duty.DISMISSED, "the claim still holds"
    assert told == []
    run_out(any_redis, key_prefix)

    assert workers.recruited() is Duty.RECRUITED
    assert told == [b"ann"]
    assert workers.recruited() is Duty.DISMISSED


def test_a_failing_hook_is_asked_again_and_the_others_are_told(
    any_redis: Redis, key_prefix: str
) -> None:
    asked: list[bytes] = []

    def hook(member: bytes) -> None:
        asked.append(member)
        if asked.count(b"ann") == 1 and member == b"ann":
            raise ValueError("no")

    workers = DeadMembers(any_redis, key_prefix, silence=60, on_dead=hook)
    workers.join("ann")
    workers.join("bob")
    silence(any_redis, key_prefix, "ann", "bob")

    with pytest.raises(HookFailed, match="ValueError: no"):
        workers.recruited()
    assert asked == [b"ann", b"bob"]
    run_out(any_redis, key_prefix)
    workers.recruited()

    assert asked == [b"ann", b"bob", b"ann"]
    assert not any_redis.exists(f"{{{key_prefix}}}:unreported")


def test_deaths_left_by_others_count_toward_the_batch(
    any_redis: Redis, key_prefix: str, told: list[bytes], stepped: Callable[..., Any]
) -> None:
    workers = DeadMembers(
        any_redis, key_prefix, silence=60, batch=2, on_dead=told.append
    )
    for member in "ab":
        workers.join(member)
    silence(any_redis, key_prefix, *"ab")
    stepped(workers._driver, workers._steps.remove_dead()).step()
    run_out(any_redis, key_prefix)
    for member in "cd":
        workers.join(member)
    silence(any_redis, key_prefix, *"cd")

    assert workers.recruited() is Duty.MORE
    assert told == [b"a", b"b"]
    assert workers.recruited() is Duty.MORE
    assert told == [b"a", b"b", b"c", b"d"]


def test_a_second_death_is_not_forgotten_with_the_first(
    workers: DeadMembers,
    any_redis: Redis,
    key_prefix: str,
    told: list[bytes],
    stepped: Callable[..., Any],
) -> None:
    workers.join("ann")
    silence(any_redis, key_prefix, "ann")
    slow = stepped(workers._driver, workers._steps.remove_dead())
    slow.step()
    pass_a_moment(any_redis)
    workers.join("ann")
    silence(any_redis, key_prefix, "ann")
    run_out(any_redis, key_prefix)
    stepped(workers._driver, workers._steps.remove_dead()).step()

    slow.finish()
    told.clear()
    run_out(any_redis, key_prefix)
    workers.recruited()

    assert told == [b"ann"]


def test_two_recruits_at_once_tell_each_death_once(
    redis_server: Server,
    key_prefix: str,
    told: list[bytes],
    both_at_once: Callable[..., list[Any]],
) -> None:
    clients = [Redis.from_url(redis_server.url) for _ in range(2)]
    jobs = [
        DeadMembers(c, key_prefix, silence=60, batch=3, on_dead=told.append)
        for c in clients
    ]
    members = [f"m{n}" for n in range(60)]
    for member in [*members, "alive"]:
        jobs[0].join(member)
    silence(clients[0], key_prefix, *members)

    both_at_once(*(lambda j=j: drain(j) for j in jobs))

    assert sorted(member.decode() for member in told) == sorted(members)
    assert jobs[0].members() == [b"alive"]
    for client in clients:
        client.close()


def test_no_silence_at_all_is_refused(fake_redis: Redis) -> None:
    with pytest.raises(ConfigurationError, match="silence"):
        DeadMembers(fake_redis, "workers", silence=0)


async def test_the_asyncio_face_tells_the_same_story(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    told = []

    async def hook(member: bytes) -> None:
        told.append(member)

    workers = AsyncDeadMembers(any_async_redis, key_prefix, silence=60, on_dead=hook)
    assert await workers.join("ann")
    assert await workers.join("bob")
    assert await workers.join("eve")
    assert await workers.beat("bob")
    assert await workers.leave("eve")
    await any_async_redis.zadd(key_prefix, {"ann": 1})

    assert await workers.members() == [b"bob"]
    assert await workers.recruited() is Duty.RECRUITED

    assert told == [b"ann"]
    assert not await any_async_redis.exists(f"{{{key_prefix}}}:unreported")


def drain(job: DeadMembers) -> None:
    while job.recruited() is not Duty.DISMISSED:
        pass
