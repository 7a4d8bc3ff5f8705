from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import ConfigurationError, HookFailed
from workstealing.jobs import AsyncVolatileHash, VolatileHash
from workstealing.testing import Server, wait_until

from .conftest import expires_fields


class Told:
    """A hook; with one, fields expire by slices and not by the server."""

    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []

    def __call__(self, field: bytes, value: bytes) -> None:
        self.fields.append((field, value))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def sessions(any_redis: Redis, key_prefix: str, told: Told) -> VolatileHash:
    """A hash whose fields are expired by slices."""
    return VolatileHash(any_redis, key_prefix, on_expire=told)


@pytest.fixture
def native(any_redis: Redis, key_prefix: str) -> VolatileHash:
    """The same hash, whose fields are expired by the server."""
    return VolatileHash(any_redis, key_prefix)


@pytest.fixture
def old_client(
    redis_server: Server, redis_client: Redis, key_prefix: str
) -> Iterator[Redis]:
    """A client to which the server denies field expiry, if it is not an old server."""
    if not expires_fields(redis_client):
        yield redis_client
        return
    commands = ["+@all", "-hpexpireat", "-hpersist"]
    redis_client.acl_setuser(key_prefix, enabled=True, nopass=True, keys=["*"])
    redis_client.execute_command("ACL", "SETUSER", key_prefix, *commands)
    with Redis.from_url(redis_server.url, username=key_prefix, password="") as client:
        yield client
    redis_client.acl_deluser(key_prefix)


def expire(client: Redis, key: str, *fields: str) -> None:
    """Let the time of fields come."""
    client.zadd(f"{{{key}}}:expires", dict.fromkeys(fields, 1), xx=True)


def test_a_field_can_be_read_until_its_time(sessions: VolatileHash) -> None:
    assert sessions.set("ann", "blue", 60)
    assert not sessions.set("ann", "red", timedelta(minutes=1))

    assert sessions.get("ann") == b"red"
    assert sessions.get("bob") is None
    assert sessions.get_all() == {b"ann": b"red"}


def test_a_reader_never_sees_an_expired_field(
    sessions: VolatileHash, any_redis: Redis, key_prefix: str
) -> None:
    sessions.set("ann", "blue", 60)
    sessions.set("bob", "red", 60)

    expire(any_redis, key_prefix, "ann")

    assert any_redis.hexists(key_prefix, "ann")
    assert sessions.get("ann") is None
    assert sessions.get_all() == {b"bob": b"red"}


def test_a_slice_removes_what_expired_and_nothing_else(
    sessions: VolatileHash, any_redis: Redis, key_prefix: str
) -> None:
    sessions.set("ann", "blue", 60)
    sessions.set("bob", "red", 60)
    expire(any_redis, key_prefix, "ann")

    assert sessions.recruited() is Duty.RECRUITED

    assert any_redis.hgetall(key_prefix) == {b"bob": b"red"}
    assert any_redis.zrange(f"{{{key_prefix}}}:expires", 0, -1) == [b"bob"]
    assert sessions.recruited() is Duty.DISMISSED


def test_a_full_slice_asks_for_more(
    any_redis: Redis, key_prefix: str, told: Told
) -> None:
    sessions = VolatileHash(any_redis, key_prefix, batch=2, on_expire=told)
    for field in "abc":
        sessions.set(field, "x", 60)
    expire(any_redis, key_prefix, *"abc")

    assert sessions.recruited() is Duty.MORE
    assert sessions.recruited() is Duty.RECRUITED
    assert sessions.recruited() is Duty.DISMISSED


def test_the_hook_is_told_each_field_with_its_value_once(
    sessions: VolatileHash, any_redis: Redis, key_prefix: str, told: Told
) -> None:
    sessions.set("ann", "blue", 60)
    expire(any_redis, key_prefix, "ann")

    sessions.recruited()
    sessions.recruited()

    assert told.fields == [(b"ann", b"blue")]


def test_a_failing_hook_does_not_keep_the_others_from_being_told(
    any_redis: Redis, key_prefix: str
) -> None:
    seen = []

    def hook(field: bytes, value: bytes) -> None:
        seen.append(field)
        if len(seen) == 1:
            raise ValueError("no")

    sessions = VolatileHash(any_redis, key_prefix, on_expire=hook)
    for field in "abc":
        sessions.set(field, "x", 60)
    expire(any_redis, key_prefix, *"abc")

    with pytest.raises(HookFailed, match="ValueError: no"):
        sessions.recruited()

    assert sorted(seen) == [b"a", b"b", b"c"]


def test_setting_an_expired_field_makes_it_new(
    sessions: VolatileHash, any_redis: Redis, key_prefix: str
) -> None:
    sessions.set("ann", "blue", 60)
    expire(any_redis, key_prefix, "ann")

    assert sessions.set("ann", "red", 60)

    assert sessions.recruited() is Duty.DISMISSED
    assert sessions.get("ann") == b"red"


def test_touch_prolongs_a_living_field_and_revives_no_expired_one(
    sessions: VolatileHash, any_redis: Redis, key_prefix: str
) -> None:
    sessions.set("ann", "blue", 60)
    sessions.set("bob", "red", 60)
    expire(any_redis, key_prefix, "bob")
    index = f"{{{key_prefix}}}:expires"
    before = any_redis.zscore(index, "ann")

    assert sessions.touch("ann", 3600)
    assert not sessions.touch("bob", 3600)
    assert not sessions.touch("eve", 3600)

    assert any_redis.zscore(index, "ann") >= before + 3_500_000
    assert sessions.get("bob") is None


def test_delete_counts_living_fields_and_leaves_expired_ones_to_the_hook(
    sessions: VolatileHash, any_redis: Redis, key_prefix: str, told: Told
) -> None:
    sessions.set("ann", "blue", 60)
    sessions.set("bob", "red", 60)
    expire(any_redis, key_prefix, "bob")

    assert sessions.delete("ann", "bob", "eve") == 1

    sessions.recruited()
    assert told.fields == [(b"bob", b"red")]
    assert not any_redis.exists(key_prefix, f"{{{key_prefix}}}:expires")


def test_a_plain_hset_keeps_the_time_of_a_field(
    sessions: VolatileHash, any_redis: Redis, key_prefix: str
) -> None:
    sessions.set("ann", "blue", 60)

    any_redis.hset(key_prefix, "ann", "red")

    assert sessions.get("ann") == b"red"
    expire(any_redis, key_prefix, "ann")
    assert sessions.get("ann") is None


def test_a_plain_field_without_a_time_is_left_alone(
    sessions: VolatileHash, any_redis: Redis, key_prefix: str
) -> None:
    any_redis.hset(key_prefix, "forever", "yes")

    assert sessions.recruited() is Duty.DISMISSED
    assert sessions.get_all() == {b"forever": b"yes"}


@pytest.mark.usefixtures("field_expiry")
def test_a_server_that_expires_fields_is_left_to_do_it(
    native: VolatileHash, any_redis: Redis, key_prefix: str
) -> None:
    assert native.set("ann", "blue", 60)
    assert native.touch("ann", 3600)

    assert not any_redis.exists(f"{{{key_prefix}}}:expires")
    assert 3500 < any_redis.httl(key_prefix, "ann")[0] <= 3600
    assert native.recruited() is Duty.DISMISSED
    assert native.get("ann") == b"blue"
    assert native.delete("ann") == 1
    assert not any_redis.exists(key_prefix)


def test_a_field_that_the_server_expired_is_gone(native: VolatileHash) -> None:
    native.set("ann", "blue", 0.001)

    wait_until(lambda: native.get("ann") is None, 10, "the server to expire a field")

    assert native.get_all() == {}
    assert native.delete("ann") == 0
    assert native.set("ann", "red", 60)


def test_a_server_without_field_expiry_is_found_out_by_itself(
    old_client: Redis, key_prefix: str
) -> None:
    sessions = VolatileHash(old_client, key_prefix)

    for field in ("ann", "bob"):
        assert sessions.set(field, "blue", 60)
        assert sessions.touch(field, 60)
    expire(old_client, key_prefix, "ann")

    assert sessions.get_all() == {b"bob": b"blue"}
    assert sessions.recruited() is Duty.RECRUITED
    assert old_client.hkeys(key_prefix) == [b"bob"]


def test_a_field_can_be_touched_first_where_there_is_no_field_expiry(
    old_client: Redis, key_prefix: str
) -> None:
    VolatileHash(old_client, key_prefix).set("ann", "blue", 60)

    assert VolatileHash(old_client, key_prefix).touch("ann", 60)


def test_fields_from_before_an_upgrade_still_expire(
    old_client: Redis, redis_client: Redis, key_prefix: str
) -> None:
    before = VolatileHash(old_client, key_prefix)
    after = VolatileHash(redis_client, key_prefix)
    if not expires_fields(redis_client):
        pytest.skip("the server has no HPEXPIREAT: it was not upgraded")
    for field in ("lapsed", "renewed", "touched", "old"):
        before.set(field, "x", 60)
    expire(redis_client, key_prefix, "lapsed")

    after.set("renewed", "y", 60)
    after.touch("touched", 60)

    assert after.get("lapsed") is None
    assert after.recruited() is Duty.RECRUITED
    index = f"{{{key_prefix}}}:expires"
    assert redis_client.zrange(index, 0, -1) == [b"old"]
    times = redis_client.httl(key_prefix, "renewed", "touched", "old", "lapsed")
    assert [time > 0 for time in times] == [True, True, False, False]
    assert sorted(after.get_all()) == [b"old", b"renewed", b"touched"]


@pytest.mark.usefixtures("field_expiry")
def test_a_hook_added_later_takes_touched_fields_over_from_the_server(
    native: VolatileHash, sessions: VolatileHash, any_redis: Redis, key_prefix: str
) -> None:
    native.set("ann", "blue", 60)

    assert sessions.touch("ann", 3600)

    assert any_redis.httl(key_prefix, "ann") == [-1]
    assert any_redis.zscore(f"{{{key_prefix}}}:expires", "ann")


def test_two_recruits_at_once_tell_each_field_once(
    redis_server: Server,
    key_prefix: str,
    told: Told,
    both_at_once: Callable[..., list[Any]],
) -> None:
    clients = [Redis.from_url(redis_server.url) for _ in range(2)]
    hashes = [VolatileHash(c, key_prefix, batch=3, on_expire=told) for c in clients]
    fields = [f"f{n}" for n in range(60)]
    for field in fields:
        hashes[0].set(field, "x", 60)
    hashes[0].set("alive", "x", 60)
    expire(clients[0], key_prefix, *fields)

    both_at_once(*(lambda h=h: drain(h) for h in hashes))

    assert sorted(field.decode() for field, _ in told.fields) == sorted(fields)
    assert clients[0].hkeys(key_prefix) == [b"alive"]
    for client in clients:
        client.close()


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), True, "60"])
def test_a_ttl_that_is_no_positive_time_is_refused(fake_redis: Redis, ttl: Any) -> None:
    with pytest.raises(ConfigurationError):
        VolatileHash(fake_redis, "sessions").set("ann", "blue", ttl)


async def test_the_asyncio_face_tells_the_same_story(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    told = []

    async def hook(field: bytes, value: bytes) -> None:
        told.append((field, value))

    sessions = AsyncVolatileHash(any_async_redis, key_prefix, on_expire=hook)
    assert await sessions.set("ann", "blue", 60)
    assert await sessions.set("bob", "red", 60)
    assert await sessions.set("eve", "red", 60)
    assert await sessions.touch("ann", 60)
    assert await sessions.delete("eve") == 1
    await any_async_redis.zadd(f"{{{key_prefix}}}:expires", {"ann": 1})

    assert await sessions.get("ann") is None
    assert await sessions.get_all() == {b"bob": b"red"}
    assert await sessions.recruited() is Duty.RECRUITED

    assert told == [(b"ann", b"blue")]


def drain(job: Any) -> None:
    while job.recruited() is not Duty.DISMISSED:
        pass
