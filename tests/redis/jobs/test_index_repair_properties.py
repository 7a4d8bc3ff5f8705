from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing import Duty
from workstealing.jobs import IndexRepair

MEMBERS = ("a", "b", "c")
CHANGES = ("write key", "add to index", "delete key", "begin", "step")
histories = st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from(MEMBERS)))


@pytest.mark.parametrize("kind", ["set", "zset"])
@pytest.mark.parametrize("nodes", [None, ("a:1", "b:2")], ids=["together", "apart"])
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, batch=st.integers(1, 3))
def test_no_slice_loses_a_member_whose_key_was_written_first(
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    nodes: tuple[str, ...] | None,
    kind: str,
    history: list[tuple[str, str]],
    batch: int,
) -> None:
    index = f"{key_prefix}:{uuid4().hex}"
    repair = IndexRepair(
        any_redis, index, key_of=lambda member: f"{index}:{member}", batch=batch
    )
    keys: set[str] = set()
    members: set[str] = set()  # added while their key was there, which it still is
    slices: list[Any] = []

    for change, member in history:
        if change == "write key":
            any_redis.set(f"{index}:{member}", "x")
            keys.add(member)
        elif change == "add to index":
            if member in keys:
                add(any_redis, kind, index, member)
                members.add(member)
        elif change == "delete key":
            any_redis.unlink(f"{index}:{member}")
            keys.discard(member)
            members.discard(member)
        elif change == "begin":
            slices.append(stepped(repair._driver, repair._steps.repair(), nodes=nodes))
        else:
            for recruit in slices:
                recruit.step()
            slices = [recruit for recruit in slices if not recruit.ended]
        if nodes is None or not slices:
            assert members <= members_of(any_redis, kind, index)

    for recruit in slices:
        recruit.finish()
    assert members <= members_of(any_redis, kind, index)
    whole = IndexRepair(any_redis, index, key_of=lambda member: f"{index}:{member}")
    while whole.recruited() is not Duty.DISMISSED:
        pass
    assert members <= members_of(any_redis, kind, index) <= keys


def add(client: Redis, kind: str, index: str, member: str) -> None:
    if kind == "zset":
        client.zadd(index, {member: 1})
    else:
        client.sadd(index, member)


def members_of(client: Redis, kind: str, index: str) -> set[str]:
    if kind == "zset":
        return {member.decode() for member in client.zrange(index, 0, -1)}
    return {member.decode() for member in client.smembers(index)}
