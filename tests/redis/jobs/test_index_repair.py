from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import RedisUnavailable
from workstealing.jobs import AsyncIndexRepair, IndexRepair
from workstealing.queue.steps import RedisCommand
from workstealing.testing import Server

OTHER_NODES = ("a:1", "b:2")
"""Makes a slice believe in a Cluster, whose keys cannot be checked in one step."""


class Index:
    """An index of either kind, and the keys it is about."""

    def __init__(self, client: Redis, key: str, kind: str) -> None:
        self._client, self.key, self._kind = client, key, kind
        self.repair = IndexRepair(client, key, key_of=self.key_of)

    def key_of(self, member: str) -> str:
        return f"{self.key}:user:{member}"

    def add(self, member: str, score: float = 1.5) -> None:
        """Write as a user must: the key first."""
        self._client.set(self.key_of(member), "x")
        if self._kind == "zset":
            self._client.zadd(self.key, {member: score})
        else:
            self._client.sadd(self.key, member)

    def drop_key(self, member: str) -> None:
        self._client.unlink(self.key_of(member))

    def members(self) -> list[str]:
        if self._kind == "zset":
            found = self._client.zrange(self.key, 0, -1)
        else:
            found = self._client.smembers(self.key)
        return sorted(member.decode() for member in found)


@pytest.fixture(params=["set", "zset"])
def index(any_redis: Redis, key_prefix: str, request: pytest.FixtureRequest) -> Index:
    return Index(any_redis, key_prefix, request.param)


@pytest.fixture
def apart(index: Index, stepped: Callable[..., Any]) -> Any:
    """A slice of a Cluster, where keys and index are apart, step by step."""
    repair = index.repair
    return stepped(repair._driver, repair._steps.repair(), nodes=OTHER_NODES)


def test_a_member_whose_key_is_gone_is_removed(index: Index) -> None:
    for n in range(5):
        index.add(f"u{n}")
    index.drop_key("u3")

    assert index.repair.recruited() is Duty.RECRUITED

    assert index.members() == ["u0", "u1", "u2", "u4"]
    assert index.repair.recruited() is Duty.DISMISSED


def test_a_slice_that_finds_a_quarter_missing_asks_for_more(index: Index) -> None:
    for n in range(4):
        index.add(f"u{n}")
    index.drop_key("u3")

    assert index.repair.recruited() is Duty.MORE
    assert index.repair.recruited() is Duty.DISMISSED


def test_a_slice_looks_at_no_more_than_its_batch(
    index: Index, any_redis: Redis
) -> None:
    for n in range(30):
        index.add(f"u{n}")
        index.drop_key(f"u{n}")
    repair = IndexRepair(any_redis, index.key, key_of=index.key_of, batch=4)

    assert repair.recruited() is Duty.MORE

    assert len(index.members()) == 26


def test_an_index_that_does_not_exist_is_in_order(
    any_redis: Redis, key_prefix: str
) -> None:
    assert IndexRepair(any_redis, key_prefix).recruited() is Duty.DISMISSED


def test_a_member_is_its_own_key_if_nothing_else_is_said(
    any_redis: Redis, key_prefix: str
) -> None:
    there, gone = f"{key_prefix}:there", f"{key_prefix}:gone"
    any_redis.set(there, "x")
    any_redis.sadd(key_prefix, there, gone)

    IndexRepair(any_redis, key_prefix).recruited()

    assert any_redis.smembers(key_prefix) == {there.encode()}


def test_a_member_that_is_not_text_is_left_alone(
    any_redis: Redis, key_prefix: str
) -> None:
    any_redis.sadd(key_prefix, b"\xff\xfe")

    assert IndexRepair(any_redis, key_prefix).recruited() is Duty.DISMISSED
    assert any_redis.smembers(key_prefix) == {b"\xff\xfe"}


def test_a_member_added_again_in_the_middle_of_a_slice_stays(
    index: Index, stepped: Callable[..., Any]
) -> None:
    index.add("ann")
    index.drop_key("ann")
    recruit = stepped(index.repair._driver, index.repair._steps.repair())
    recruit.step()

    index.add("ann")
    recruit.finish()

    assert index.members() == ["ann"]


def test_keys_in_other_slots_are_checked_one_by_one(index: Index, apart: Any) -> None:
    index.add("ann")
    index.add("bob")
    index.drop_key("ann")

    assert apart.finish() is Duty.MORE

    assert index.members() == ["bob"]


def test_a_member_added_again_before_a_removal_apart_is_put_back(
    index: Index, apart: Any
) -> None:
    index.add("ann")
    index.drop_key("ann")
    for _ in ("sample", "nodes", "exists"):
        apart.step()

    index.add("ann")
    apart.step()
    assert index.members() == [], "the window that the documentation tells of"

    assert apart.finish() is Duty.DISMISSED
    assert index.members() == ["ann"]


def test_a_member_of_a_sorted_set_with_a_new_score_is_not_removed_at_all(
    any_redis: Redis, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    index = Index(any_redis, key_prefix, "zset")
    index.add("ann", score=1)
    index.drop_key("ann")
    recruit = stepped(
        index.repair._driver, index.repair._steps.repair(), nodes=OTHER_NODES
    )
    for _ in ("sample", "nodes", "exists"):
        recruit.step()

    index.add("ann", score=2)
    recruit.step()

    assert index.members() == ["ann"]
    assert recruit.finish() is Duty.DISMISSED


def test_members_go_back_when_the_second_look_at_their_keys_fails(
    index: Index, stepped: Callable[..., Any]
) -> None:
    index.add("ann")
    index.drop_key("ann")
    real = index.repair._driver
    looks = []

    class FailingSecondLook:
        def _perform(self, step: Any) -> Any:
            if isinstance(step, RedisCommand):
                looks.append(step)
                if len(looks) == 2:
                    raise RedisUnavailable("the node of the key is down")
            return real._perform(step)

    recruit = stepped(
        FailingSecondLook(), index.repair._steps.repair(), nodes=OTHER_NODES
    )
    with pytest.raises(RedisUnavailable):
        recruit.finish()

    assert index.members() == ["ann"]


def test_two_recruits_at_once_leave_the_living_members(
    redis_server: Server, key_prefix: str, both_at_once: Callable[..., list[Any]]
) -> None:
    clients = [Redis.from_url(redis_server.url) for _ in range(2)]
    indexes = [Index(client, key_prefix, "set") for client in clients]
    for n in range(60):
        indexes[0].add(f"u{n:02}")
        if n % 2:
            indexes[0].drop_key(f"u{n:02}")

    both_at_once(
        *(lambda i=i: [i.repair.recruited() for _ in range(60)] for i in indexes)
    )

    assert indexes[0].members() == [f"u{n:02}" for n in range(0, 60, 2)]
    for client in clients:
        client.close()


async def test_the_asyncio_face_tells_the_same_story(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    repair = AsyncIndexRepair(
        any_async_redis, key_prefix, key_of=lambda member: f"{key_prefix}:{member}"
    )
    await any_async_redis.set(f"{key_prefix}:ann", "x")
    await any_async_redis.sadd(key_prefix, "ann", "bob")

    assert await repair.recruited() is Duty.MORE

    assert await any_async_redis.smembers(key_prefix) == {b"ann"}
