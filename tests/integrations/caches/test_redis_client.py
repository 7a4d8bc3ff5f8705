"""A redis-py client stays what it is, and enlists when a read finds something."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis
from redis.cluster import RedisCluster

from workstealing import Recruiter
from workstealing.errors import ConfigurationError
from workstealing.integrations.redis_client import enlist_on_hits

Missed = list[tuple[Any, ...]]


@pytest.fixture
def missed() -> Missed:
    """What `on_miss` was told."""
    return []


@pytest.fixture
def client(redis_client: Redis, recruiter: Recruiter, missed: Missed) -> Redis:
    """A client with hooks."""

    def note(*what: Any) -> None:
        missed.append(what)

    return enlist_on_hits(redis_client, recruiter, on_miss=note)


def test_a_client_stays_a_client(client: Redis, redis_client: Redis) -> None:
    assert client is redis_client
    assert isinstance(client, Redis)
    assert repr(client).startswith("<redis.client.Redis(")


def test_every_read_that_finds_something_enlists(
    client: Redis, recruiter: Recruiter, missed: Missed, key_prefix: str
) -> None:
    client.set(key_prefix, "")
    client.hset(f"{key_prefix}-hash", "field", "value")

    assert client.get(key_prefix) == b""
    assert client.getex(key_prefix, ex=60) == b""
    assert client.mget([key_prefix]) == [b""]
    assert client.hget(f"{key_prefix}-hash", "field") == b"value"
    assert client.hmget(f"{key_prefix}-hash", "field") == [b"value"]
    assert client.hgetall(f"{key_prefix}-hash") == {b"field": b"value"}

    assert recruiter.stats().calls == 6
    assert missed == []


def test_every_read_that_finds_nothing_is_told_with_what_was_missing(
    client: Redis, recruiter: Recruiter, missed: Missed, key_prefix: str
) -> None:
    assert client.get(key_prefix) is None
    assert client.getex(key_prefix, ex=60) is None
    assert client.mget(key_prefix, "t-other") == [None, None]
    assert client.hget(key_prefix, "field") is None
    assert client.hmget(key_prefix, "a", "b") == [None, None]
    assert client.hgetall(key_prefix) == {}

    assert recruiter.stats().calls == 0
    assert missed == [
        (key_prefix,),
        (key_prefix,),
        (key_prefix,),
        ("t-other",),
        (key_prefix, "field"),
        (key_prefix, "a"),
        (key_prefix, "b"),
        (key_prefix,),
    ]


def test_writes_and_pipelines_do_not_enlist(
    client: Redis, recruiter: Recruiter, missed: Missed, key_prefix: str
) -> None:
    with client.pipeline() as pipeline:
        pipeline.set(key_prefix, "value").get(key_prefix).get("t-nothing")
        assert pipeline.execute() == [True, b"value", None]
    client.set(key_prefix, "value", ex=60)
    client.delete(key_prefix)

    assert recruiter.stats().calls == 0
    assert missed == []


def test_what_the_server_refuses_is_raised_as_before(
    client: Redis, recruiter: Recruiter, key_prefix: str
) -> None:
    client.rpush(key_prefix, "no string")

    with pytest.raises(Exception, match="WRONGTYPE"):
        client.get(key_prefix)

    assert recruiter.stats().calls == 0


def test_a_client_of_a_cluster_enlists_too(
    cluster_client: RedisCluster, recruiter: Recruiter, key_prefix: str
) -> None:
    client = enlist_on_hits(cluster_client, recruiter)
    client.set(key_prefix, "value")

    assert client.get(key_prefix) == b"value"

    assert recruiter.stats().calls == 1


def test_hooks_go_on_a_client_only(recruiter: Recruiter) -> None:
    with pytest.raises(ConfigurationError, match="not a Redis client"):
        enlist_on_hits({}, recruiter)
