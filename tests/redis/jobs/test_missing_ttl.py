from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import ConfigurationError, Conflict
from workstealing.jobs import AsyncMissingTTL, MissingTTL
from workstealing.testing import ScriptedChance, Server

KEYS = 250


@pytest.fixture
def names(any_redis: Redis, key_prefix: str) -> list[str]:
    names = [f"{key_prefix}:{n}" for n in range(KEYS)]
    any_redis.mset(dict.fromkeys(names, "value"))
    return names


def job(client: Redis, prefix: str, **options: Any) -> MissingTTL:
    return MissingTTL(client, f"{prefix}-notes", f"{prefix}:*", ttl=100, **options)


def pass_over(ttl: MissingTTL) -> None:
    """Run slices until every key was seen."""
    for _ in range(100_000):
        ttl.recruited()
        if ttl.report().complete:
            return
    raise AssertionError("the scan does not come to its end")


def test_it_is_dry_at_first_and_reports_what_it_would_do(
    any_redis: Redis, key_prefix: str, names: list[str]
) -> None:
    any_redis.expire(names[0], 50)
    ttl = job(any_redis, key_prefix)

    pass_over(ttl)

    report = ttl.report()
    assert (report.scanned, report.without_ttl, report.given) == (KEYS, KEYS - 1, 0)
    assert 1 <= len(report.samples) <= 20
    assert {sample.decode() for sample in report.samples} <= set(names[1:])
    assert all(any_redis.ttl(name) == -1 for name in names[1:])


def test_the_report_says_when_it_is_not_complete_yet(
    redis_client: Redis, key_prefix: str
) -> None:
    redis_client.mset({f"{key_prefix}:{n}": "" for n in range(KEYS)})
    ttl = job(redis_client, key_prefix, batch=10)
    assert not ttl.report().complete

    ttl.recruited()

    report = ttl.report()
    assert not report.complete
    assert report.scanned < KEYS


def test_keys_without_a_ttl_are_given_one_with_jitter(
    any_redis: Redis, key_prefix: str, names: list[str]
) -> None:
    ttl = job(any_redis, key_prefix, dry_run=False, jitter=0.5)

    pass_over(ttl)

    left = [any_redis.pttl(name) for name in names]
    assert 90_000 < min(left) < 110_000
    assert 140_000 < max(left) <= 150_000
    assert ttl.report().given == KEYS


def test_jitter_is_drawn_from_the_chance_it_is_given(
    fake_redis: Redis, key_prefix: str
) -> None:
    fake_redis.set(f"{key_prefix}:a", "")
    chance = ScriptedChance(0.5)

    pass_over(job(fake_redis, key_prefix, dry_run=False, jitter=1, chance=chance))

    assert 149_000 < fake_redis.pttl(f"{key_prefix}:a") <= 150_000


def test_a_key_that_has_a_ttl_keeps_it(any_redis: Redis, key_prefix: str) -> None:
    any_redis.set(f"{key_prefix}:short", "", px=5_000)
    any_redis.set(f"{key_prefix}:long", "", px=5_000_000)

    pass_over(job(any_redis, key_prefix, dry_run=False))

    assert any_redis.pttl(f"{key_prefix}:short") <= 5_000
    assert any_redis.pttl(f"{key_prefix}:long") > 4_000_000


def test_keys_of_other_patterns_and_its_own_notes_are_left_alone(
    any_redis: Redis, key_prefix: str
) -> None:
    any_redis.set(f"other-{key_prefix}", "")
    any_redis.set(f"{key_prefix}:mine", "")
    ttl = MissingTTL(
        any_redis, key_prefix, f"*{key_prefix}[:}}]*", ttl=100, dry_run=False
    )

    for _ in range(3):
        pass_over(ttl)
        ttl.recruited()

    assert any_redis.ttl(f"other-{key_prefix}") == -1
    assert any_redis.ttl(f"{key_prefix}:mine") > 0
    assert any_redis.ttl(f"{{{key_prefix}}}:giving") == -1
    assert any_redis.ttl(f"{{{key_prefix}}}:giving:samples") == -1


def test_a_second_pass_finds_nothing_to_do(fake_redis: Redis, key_prefix: str) -> None:
    fake_redis.mset({f"{key_prefix}:{n}": "" for n in range(5)})
    ttl = job(fake_redis, key_prefix, dry_run=False)

    assert ttl.recruited() is Duty.RECRUITED
    assert ttl.recruited() is Duty.DISMISSED
    assert ttl.report().given == 0


def test_a_dry_run_does_not_move_the_cursor_of_the_real_one(
    fake_redis: Redis, key_prefix: str
) -> None:
    fake_redis.mset({f"{key_prefix}:{n}": "" for n in range(KEYS)})
    job(fake_redis, key_prefix).recruited()
    real = job(fake_redis, key_prefix, dry_run=False)

    pass_over(real)

    assert real.report().given == KEYS


def test_a_key_that_is_not_text_is_given_a_ttl_too(
    any_redis: Redis, key_prefix: str
) -> None:
    name = f"{key_prefix}:".encode() + b"\xff\x00"
    any_redis.set(name, "")

    pass_over(job(any_redis, key_prefix, dry_run=False))

    assert any_redis.ttl(name) > 0


@pytest.mark.parametrize(
    "wrong", [{"jitter": -0.1}, {"jitter": float("nan")}, {"batch": 0}]
)
def test_wrong_numbers_are_refused(fake_redis: Redis, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        job(fake_redis, "notes", **wrong)


def test_a_wrong_pattern_or_ttl_is_refused(fake_redis: Redis) -> None:
    with pytest.raises(ConfigurationError):
        MissingTTL(fake_redis, "notes", "", ttl=1)
    with pytest.raises(ConfigurationError):
        MissingTTL(fake_redis, "notes", "*", ttl=0)


def test_two_recruits_on_one_page_count_it_once(
    redis_client: Redis, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    redis_client.mset({f"{key_prefix}:{n}": "" for n in range(20)})
    ttl = job(redis_client, key_prefix, dry_run=False, batch=1000)
    late = stepped(ttl._driver, ttl._steps.scan())
    for _ in range(3):
        late.step()  # the nodes, the place, the page
    ttl.recruited()

    with pytest.raises(Conflict):
        late.finish()

    assert ttl.report().scanned <= 20
    pass_over(ttl)
    assert all(redis_client.ttl(f"{key_prefix}:{n}") > 0 for n in range(20))


def test_two_recruits_at_once_miss_no_key(
    redis_server: Server, key_prefix: str, both_at_once: Callable[..., list[Any]]
) -> None:
    with (
        Redis.from_url(redis_server.url) as one,
        Redis.from_url(redis_server.url) as two,
    ):
        one.mset({f"{key_prefix}:{n}": "" for n in range(KEYS)})
        jobs = [job(client, key_prefix, dry_run=False) for client in (one, two)]

        def work(ttl: MissingTTL) -> None:
            while not ttl.report().complete:
                try:
                    ttl.recruited()
                except Conflict:
                    continue

        both_at_once(lambda: work(jobs[0]), lambda: work(jobs[1]))

        assert all(one.ttl(f"{key_prefix}:{n}") > 0 for n in range(KEYS))


async def test_the_asyncio_face_does_the_same(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    await any_async_redis.mset({f"{key_prefix}:{n}": "" for n in range(20)})
    ttl = AsyncMissingTTL(
        any_async_redis,
        f"{key_prefix}-notes",
        f"{key_prefix}:*",
        ttl=100,
        dry_run=False,
    )

    while not (await ttl.report()).complete:
        await ttl.recruited()

    assert (await ttl.report()).given == 20
    assert await any_async_redis.ttl(f"{key_prefix}:7") > 0
