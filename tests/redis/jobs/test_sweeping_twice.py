"""A reply may be lost and a call sent again: each script must bear to run twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from workstealing.drivers.sync_driver import Driver
from workstealing.jobs import (
    DeadMembers,
    IndexRepair,
    KeepUntil,
    VolatileHash,
    WindowTrimmer,
)
from workstealing.queue.steps import Call, Step


class TwiceDriver(Driver):
    """Sends each script twice, as a client does that retries by itself."""

    def _send(self, step: Step) -> Any:
        if isinstance(step, Call):
            super()._send(step)
        return super()._send(step)


def twice(job: Any) -> Any:
    job._driver = TwiceDriver(job._driver.client)
    return job


@pytest.mark.usefixtures("field_expiry")
@pytest.mark.parametrize("hooked", [True, False], ids=["by slices", "by the server"])
def test_fields_are_as_if_each_call_came_once(
    any_redis: Redis, key_prefix: str, hooked: bool
) -> None:
    hook = (lambda *fact: None) if hooked else None
    job = twice(VolatileHash(any_redis, key_prefix, on_expire=hook))
    for name in "abcd":
        job.set(name, "x", 60)
    job.touch("a", 60)
    job.delete("b")
    any_redis.zadd(f"{{{key_prefix}}}:expires", {"c": 1})

    job.recruited()

    assert sorted(any_redis.hkeys(key_prefix)) == [b"a", b"d"]
    indexed = sorted(any_redis.zrange(f"{{{key_prefix}}}:expires", 0, -1))
    assert indexed == ([b"a", b"d"] if hooked else [])


def test_values_are_as_if_each_call_came_once(
    any_redis: Redis, key_prefix: str
) -> None:
    job = twice(KeepUntil(any_redis, key_prefix))
    for name in "abc":
        job.set(name, "x", 60)
    assert job.add("d", "x", 60)
    assert job.extend("a", 60)
    job.delete("b")
    any_redis.zadd(f"{{{key_prefix}}}:deadlines", {"c": 1})

    job.recruited()

    left = {name for name in "abcd" if job.get(name) == b"x"}
    assert left == {"a", "d"}
    assert any_redis.zcard(f"{{{key_prefix}}}:deadlines") == 2
    assert not any_redis.exists(f"{{{key_prefix}}}:value:c")


def test_a_window_is_as_if_each_call_came_once(
    any_redis: Redis, key_prefix: str
) -> None:
    any_redis.zadd(key_prefix, {name: n for n, name in enumerate("abcd")})

    twice(WindowTrimmer(any_redis, key_prefix, length=2)).recruited()

    assert any_redis.zrange(key_prefix, 0, -1) == [b"c", b"d"]


def test_a_death_whose_burial_came_twice_is_told_when_the_claim_runs_out(
    any_redis: Redis, key_prefix: str
) -> None:
    told: list[bytes] = []
    registry = DeadMembers(any_redis, key_prefix, silence=60, on_dead=told.append)
    twice(registry)
    for name in "ab":
        registry.join(name)
    registry.beat("a")
    any_redis.zadd(key_prefix, {"b": 1})
    registry.recruited()
    assert told == []

    registry._driver = Driver(any_redis)
    any_redis.zadd(f"{{{key_prefix}}}:unreported", {"b": 1}, xx=True)
    registry.recruited()

    assert told == [b"b"]
    assert registry.members() == [b"a"]


def test_an_index_is_as_if_each_call_came_once(
    any_redis: Redis, key_prefix: str
) -> None:
    any_redis.set(f"{key_prefix}:a", "x")
    any_redis.sadd(key_prefix, "a", "b")

    twice(
        IndexRepair(any_redis, key_prefix, key_of=lambda name: f"{key_prefix}:{name}")
    ).recruited()

    assert any_redis.smembers(key_prefix) == {b"a"}


def test_a_member_removed_twice_while_its_key_comes_to_be_is_put_back(
    any_redis: Redis, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    key = f"{key_prefix}:a"
    any_redis.sadd(key_prefix, "a")
    job = twice(IndexRepair(any_redis, key_prefix, key_of=lambda _: key))
    recruit = stepped(job._driver, job._steps.repair(), nodes=("a:1", "b:2"))
    for _ in ("sample", "nodes", "exists"):
        recruit.step()

    any_redis.set(key, "x")
    recruit.finish()

    assert any_redis.smembers(key_prefix) == {b"a"}
