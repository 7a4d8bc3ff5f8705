"""Turns of a fleet on a real server."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing import AsyncFleet, AsyncRecruiter, Duty, Fleet, Recruiter
from workstealing.drivers.address import target_of
from workstealing.errors import ConfigurationError, RedisUnavailable
from workstealing.testing import wait_until


def test_one_process_at_a_time_has_the_turn(redis_client: Any, key_prefix: str) -> None:
    redis = redis_client
    one, other = (Fleet(redis, key_prefix) for _ in range(2))

    assert one.take("sweep", 60.0) == 0.0
    assert one.target == target_of(redis)
    assert 55.0 < other.take("sweep", 60.0) <= 60.0
    assert 55.0 < one.take("sweep", 60.0) <= 60.0, "not even who had it"
    assert other.take("trim", 60.0) == 0.0, "each job has turns of its own"
    assert Fleet(redis, f"{key_prefix}-b").take("sweep", 60.0) == 0.0

    (key,) = redis.keys(f"*{key_prefix}}}:turn:sweep")
    redis.persist(key)
    one.take("sweep", 60.0)
    assert 0 < redis.pttl(key) <= 60_000, "it will be free again"
    one.close()
    other.close()


def test_recruiters_of_several_processes_share_a_job(
    redis_client: Any, key_prefix: str
) -> None:
    slices: list[str] = []
    fleet, recruiters = Fleet(redis_client, key_prefix), []
    for name in "abc":
        recruiter = Recruiter(share=None, deadline=5.0)
        recruiter.install(
            lambda name=name: slices.append(name), "sweep", every=60, of=fleet
        )
        recruiters.append(recruiter)

    answers = [recruiter.run_now("sweep") for recruiter in recruiters]

    assert [answer.name for answer in answers if answer] == [
        "RECRUITED",
        "CONFLICT",
        "CONFLICT",
    ], "a turn that another process has is not a slice that found nothing"
    assert slices == ["a"]
    fleet.close()


async def test_an_asyncio_recruiter_shares_it_too(
    async_redis_client: Any, key_prefix: str
) -> None:
    slices: list[str] = []

    async def work() -> None:
        slices.append("async")

    recruiter = AsyncRecruiter(share=None, deadline=5.0)
    fleet = AsyncFleet(async_redis_client, key_prefix)
    recruiter.install(work, "sweep", every=60, of=fleet)
    await recruiter.run_now("sweep")
    await recruiter.run_now("sweep")
    assert slices == ["async"]
    await fleet.close()


def test_without_redis_nobody_has_a_turn() -> None:
    ran: list[int] = []
    fleet = Fleet("redis://127.0.0.1:1")
    recruiter = Recruiter(share=None)
    recruiter.install(lambda: ran.append(1), "sweep", every=0.001, of=fleet)

    wait_until(
        lambda: (
            recruiter.enlist() is Duty.DISMISSED
            and recruiter.stats().jobs["sweep"].last_error
        ),
        10,
        "a slice that fails",
    )
    with pytest.raises(RedisUnavailable):
        fleet.take("sweep", 1.0)
    assert not ran


@pytest.mark.parametrize("kind", [Fleet, AsyncFleet])
def test_what_connect_would_refuse_is_refused_when_a_fleet_is_made(kind: Any) -> None:
    """Its error would be one of side work, which no host is told of."""
    with pytest.raises(ConfigurationError, match="a Redis URL starts with a scheme"):
        kind("localhost:6379")
    with pytest.raises(ConfigurationError, match="cannot set 'nonsense'"):
        kind("redis://localhost?nonsense=1")
    with pytest.raises(ConfigurationError, match="not a int"):
        kind(6379)
    kind("redis://localhost:6379/0")
    kind()
