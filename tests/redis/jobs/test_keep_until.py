from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import ConfigurationError
from workstealing.jobs import AsyncKeepUntil, KeepUntil
from workstealing.testing import Server


@pytest.fixture
def leases(any_redis: Redis, key_prefix: str) -> KeepUntil:
    return KeepUntil(any_redis, key_prefix)


def lapse(client: Redis, key: str, *names: str) -> None:
    """Let the deadline of names come."""
    client.zadd(f"{{{key}}}:deadlines", dict.fromkeys(names, 1), xx=True)


def value_key(key: str, name: str) -> str:
    return f"{{{key}}}:value:{name}"


def test_a_value_is_kept_without_a_ttl_that_eviction_could_pick(
    leases: KeepUntil, any_redis: Redis, key_prefix: str
) -> None:
    leases.set("report", "42", 60)

    assert leases.get("report") == b"42"
    assert any_redis.ttl(value_key(key_prefix, "report")) == -1
    assert any_redis.ttl(f"{{{key_prefix}}}:deadlines") == -1


def test_a_reader_never_sees_a_value_after_its_deadline(
    leases: KeepUntil, any_redis: Redis, key_prefix: str
) -> None:
    leases.set("report", "42", 60)

    lapse(any_redis, key_prefix, "report")

    assert any_redis.exists(value_key(key_prefix, "report"))
    assert leases.get("report") is None


def test_a_deadline_may_be_a_moment(leases: KeepUntil) -> None:
    now = datetime.now(timezone.utc)

    leases.set("later", "1", now + timedelta(hours=1))
    leases.set("earlier", "2", now - timedelta(hours=1))

    assert leases.get("later") == b"1"
    assert leases.get("earlier") is None


def test_a_moment_without_a_time_zone_is_refused(leases: KeepUntil) -> None:
    with pytest.raises(ConfigurationError, match="time zone"):
        leases.set("report", "42", datetime(2030, 1, 1))


def test_a_slice_removes_what_is_due_and_nothing_else(
    leases: KeepUntil, any_redis: Redis, key_prefix: str
) -> None:
    leases.set("due", "1", 60)
    leases.set("kept", "2", 60)
    lapse(any_redis, key_prefix, "due")

    assert leases.recruited() is Duty.RECRUITED

    assert not any_redis.exists(value_key(key_prefix, "due"))
    assert any_redis.zrange(f"{{{key_prefix}}}:deadlines", 0, -1) == [b"kept"]
    assert leases.get("kept") == b"2"
    assert leases.recruited() is Duty.DISMISSED


def test_a_full_slice_asks_for_more(any_redis: Redis, key_prefix: str) -> None:
    leases = KeepUntil(any_redis, key_prefix, batch=2)
    for name in "abc":
        leases.set(name, "x", 60)
    lapse(any_redis, key_prefix, *"abc")

    assert leases.recruited() is Duty.MORE
    assert leases.recruited() is Duty.RECRUITED
    assert leases.recruited() is Duty.DISMISSED


@pytest.mark.parametrize("revive", ["set", "add"])
def test_a_value_set_anew_in_the_middle_of_a_slice_stays(
    leases: KeepUntil,
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    revive: str,
) -> None:
    leases.set("report", "old", 60)
    lapse(any_redis, key_prefix, "report")
    recruit = stepped(leases._driver, leases._steps.sweep())
    recruit.step()

    getattr(leases, revive)("report", "new", 60)
    recruit.finish()

    assert recruit.duty is Duty.DISMISSED
    assert leases.get("report") == b"new"


def test_extend_moves_the_deadline_of_a_living_value_only(
    leases: KeepUntil, any_redis: Redis, key_prefix: str
) -> None:
    leases.set("alive", "1", 60)
    leases.set("due", "2", 60)
    lapse(any_redis, key_prefix, "due")
    index = f"{{{key_prefix}}}:deadlines"
    before = any_redis.zscore(index, "alive")

    assert leases.extend("alive", 3600)
    assert not leases.extend("due", 3600)
    assert not leases.extend("never", 3600)

    assert any_redis.zscore(index, "alive") >= before + 3_500_000
    assert leases.get("due") is None


def test_delete_tells_whether_a_value_lived(
    leases: KeepUntil, any_redis: Redis, key_prefix: str
) -> None:
    leases.set("alive", "1", 60)
    leases.set("due", "2", 60)
    lapse(any_redis, key_prefix, "due")

    assert leases.delete("alive")
    assert not leases.delete("alive")
    assert not leases.delete("due")

    assert leases.get("alive") is None
    assert not any_redis.exists(value_key(key_prefix, "alive"))


def test_a_lease_is_held_by_one_owner_at_a_time(
    leases: KeepUntil, any_redis: Redis, key_prefix: str
) -> None:
    assert leases.add("door", "ann", 60)
    assert not leases.add("door", "bob", 60)
    assert leases.add("door", "ann", 60), "asked again, as after a lost reply"

    assert not leases.extend("door", 60, value="bob")
    assert not leases.delete("door", value="bob")
    assert leases.extend("door", 60, value="ann")
    assert leases.get("door") == b"ann"

    lapse(any_redis, key_prefix, "door")
    assert leases.add("door", "bob", 60)
    assert not leases.delete("door", value="ann")
    assert leases.delete("door", value="bob")


def test_a_value_that_vanished_does_not_hold_its_name(
    leases: KeepUntil, any_redis: Redis, key_prefix: str
) -> None:
    leases.set("door", "ann", 60)
    any_redis.unlink(value_key(key_prefix, "door"))

    assert leases.get("door") is None
    assert not leases.extend("door", 60)
    assert not leases.delete("door", value="ann")
    assert leases.add("door", "bob", 60)


def test_names_may_look_like_anything(leases: KeepUntil, any_redis: Redis) -> None:
    names = ["deadlines", "a{b}c", "ünï", "with space", "value:x", ""]
    for name in names:
        leases.set(name, f"<{name}>", 60)

    assert [leases.get(name) for name in names] == [f"<{n}>".encode() for n in names]


def test_two_recruits_at_once_remove_each_value_once(
    redis_server: Server, key_prefix: str, both_at_once: Callable[..., list[Any]]
) -> None:
    clients = [Redis.from_url(redis_server.url) for _ in range(2)]
    jobs = [KeepUntil(client, key_prefix, batch=3) for client in clients]
    names = [f"n{n}" for n in range(60)]
    for name in [*names, "kept"]:
        jobs[0].set(name, "x", 60)
    lapse(clients[0], key_prefix, *names)

    both_at_once(*(lambda j=j: [j.recruited() for _ in range(30)] for j in jobs))

    assert clients[0].zrange(f"{{{key_prefix}}}:deadlines", 0, -1) == [b"kept"]
    left = list(clients[0].scan_iter(match=value_key(key_prefix, "*")))
    assert left == [value_key(key_prefix, "kept").encode()]
    for client in clients:
        client.close()


def test_text_clients_get_text(redis_server: Server, key_prefix: str) -> None:
    with Redis.from_url(redis_server.url, decode_responses=True) as client:
        leases = KeepUntil(client, key_prefix)
        leases.set("ünï", "42", 60)
        assert leases.get("ünï") == "42"
        lapse(client, key_prefix, "ünï")

        assert leases.recruited() is Duty.RECRUITED
        assert not client.exists(value_key(key_prefix, "ünï"))


async def test_the_asyncio_face_tells_the_same_story(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    leases = AsyncKeepUntil(any_async_redis, key_prefix)
    await leases.set("due", "1", 60)
    assert await leases.add("kept", "2", 60)
    assert await leases.extend("kept", 60)
    assert not await leases.delete("kept", value="3")
    await any_async_redis.zadd(f"{{{key_prefix}}}:deadlines", {"due": 1})

    assert await leases.get("due") is None
    assert await leases.recruited() is Duty.RECRUITED

    assert not await any_async_redis.exists(value_key(key_prefix, "due"))
    assert await leases.get("kept") == b"2"
