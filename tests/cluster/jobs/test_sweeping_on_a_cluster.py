"""Jobs that sweep what is over, on three nodes: each key of a script in one slot."""

from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
from redis.cluster import RedisCluster
from redis.exceptions import RedisError

from workstealing import Duty
from workstealing.drivers.sync_driver import Driver
from workstealing.jobs import (
    AsyncDeadMembers,
    AsyncIndexRepair,
    AsyncKeepUntil,
    AsyncVolatileHash,
    AsyncWindowTrimmer,
    DeadMembers,
    IndexRepair,
    KeepUntil,
    VolatileHash,
    WindowTrimmer,
)

NAMES = [f"n{n}" for n in range(8)]
"""Enough names that their own hashes would be spread over all three nodes."""


@pytest.fixture
def sync(any_driver: Driver) -> Any:
    """Make a job work on the Cluster."""

    def on_cluster(job: Any) -> Any:
        job._driver = any_driver
        return job

    return on_cluster


def needs_field_expiry(client: RedisCluster) -> None:
    try:
        client.hpexpireat("no such key", 1, "field")
    except RedisError:
        pytest.skip("the server has no HPEXPIREAT: Redis 7.4 and Valkey 9 have")


@pytest.mark.parametrize("hooked", [True, False], ids=["by slices", "by the server"])
def test_fields_expire(
    sync: Any, cluster_client: RedisCluster, key_prefix: str, hooked: bool
) -> None:
    if not hooked:
        needs_field_expiry(cluster_client)
    told = []
    hook = (lambda *fact: told.append(fact)) if hooked else None
    job = sync(VolatileHash(cluster_client, key_prefix, on_expire=hook))
    for name in NAMES:
        assert job.set(name, "x", 60)
    assert job.touch(NAMES[1], 60)
    assert job.delete(NAMES[2]) == 1

    expired = {NAMES[0]: 1}
    changed = cluster_client.zadd(f"{{{key_prefix}}}:expires", expired, xx=True, ch=1)

    assert changed == hooked
    assert job.recruited() is (Duty.RECRUITED if hooked else Duty.DISMISSED)
    assert told == ([(b"n0", b"x")] if hooked else [])
    assert len(job.get_all()) == len(NAMES) - 1 - hooked
    assert job.get(NAMES[3]) == b"x"


def test_values_are_kept_until_their_deadline(
    sync: Any, cluster_client: RedisCluster, key_prefix: str
) -> None:
    job = sync(KeepUntil(cluster_client, key_prefix))
    for name in NAMES:
        job.set(name, "x", 60)
    assert not job.add(NAMES[1], "y", 60)
    assert job.extend(NAMES[1], 60)
    assert job.delete(NAMES[2])
    due = [NAMES[0], *NAMES[4:]]
    cluster_client.zadd(f"{{{key_prefix}}}:deadlines", dict.fromkeys(due, 1))

    assert job.recruited() is Duty.RECRUITED

    kept = [name for name in NAMES if job.get(name)]
    assert kept == [NAMES[1], NAMES[3]]
    left = list(cluster_client.scan_iter(match=f"*{key_prefix}*:value:*"))
    assert len(left) == 2


def test_windows_on_all_nodes_are_trimmed(
    sync: Any, cluster_client: RedisCluster, key_prefix: str
) -> None:
    keys = [f"{key_prefix}:{name}" for name in NAMES]
    for key in keys:
        cluster_client.zadd(key, {f"m{n}": n for n in range(5)})
    for key in keys:
        job = sync(WindowTrimmer(cluster_client, key, length=2))
        assert job.recruited() is Duty.RECRUITED

    assert {cluster_client.zcard(key) for key in keys} == {2}


def test_silent_members_are_removed(
    sync: Any, cluster_client: RedisCluster, key_prefix: str
) -> None:
    told: list[bytes] = []
    job = sync(DeadMembers(cluster_client, key_prefix, silence=60, on_dead=told.append))
    for name in NAMES:
        assert job.join(name)
    assert job.beat(NAMES[1])
    assert job.leave(NAMES[2])
    cluster_client.zadd(key_prefix, {NAMES[0]: 1})

    assert job.recruited() is Duty.RECRUITED

    assert told == [b"n0"]
    assert len(job.members()) == len(NAMES) - 2


@pytest.mark.parametrize("kind", ["set", "zset"])
@pytest.mark.parametrize("tagged", [True, False], ids=["one slot", "many slots"])
def test_an_index_is_repaired(
    sync: Any, cluster_client: RedisCluster, key_prefix: str, tagged: bool, kind: str
) -> None:
    tag = f"{{{key_prefix}}}" if tagged else key_prefix
    job = sync(
        IndexRepair(cluster_client, key_prefix, key_of=lambda name: f"{tag}:{name}")
    )
    for number, name in enumerate(NAMES):
        if number != 3:
            cluster_client.set(f"{tag}:{name}", "x")
        if kind == "zset":
            cluster_client.zadd(key_prefix, {name: number})
        else:
            cluster_client.sadd(key_prefix, name)

    assert job.recruited() is Duty.RECRUITED
    assert job.recruited() is Duty.DISMISSED

    read = cluster_client.smembers
    if kind == "zset":
        read = lambda key: cluster_client.zrange(key, 0, -1)  # noqa: E731
    left = sorted(member.decode() for member in read(key_prefix))
    assert left == [name for name in NAMES if name != "n3"]


async def test_the_asyncio_faces_work_on_a_cluster(
    async_cluster_client: AsyncRedisCluster, key_prefix: str
) -> None:
    client, told = async_cluster_client, []
    fields = AsyncVolatileHash(
        client, f"{key_prefix}:h", on_expire=lambda *fact: told.append(fact)
    )
    leases = AsyncKeepUntil(client, f"{key_prefix}:k")
    members = AsyncDeadMembers(
        client, f"{key_prefix}:m", silence=60, on_dead=told.append
    )
    trimmer = AsyncWindowTrimmer(client, f"{key_prefix}:w", length=1)
    repair = AsyncIndexRepair(
        client, f"{key_prefix}:i", key_of=lambda name: f"{key_prefix}:{name}"
    )
    for name in NAMES:
        await fields.set(name, "x", 60)
        await leases.set(name, "x", 60)
        await members.join(name)
        await client.sadd(f"{key_prefix}:i", name)
    await client.set(f"{key_prefix}:n0", "x")
    await client.zadd(f"{{{key_prefix}:h}}:expires", {"n0": 1})
    await client.zadd(f"{{{key_prefix}:k}}:deadlines", {"n0": 1})
    await client.zadd(f"{key_prefix}:m", {"n0": 1})
    await client.zadd(f"{key_prefix}:w", {"a": 1, "b": 2})

    for job in (fields, leases, members, trimmer):
        assert await job.recruited() is Duty.RECRUITED
        assert await job.recruited() is Duty.DISMISSED
    assert await repair.recruited() is Duty.MORE

    assert told == [(b"n0", b"x"), b"n0"]
    assert await leases.get("n0") is None
    assert await client.zrange(f"{key_prefix}:w", 0, -1) == [b"b"]
    assert await client.smembers(f"{key_prefix}:i") == {b"n0"}
