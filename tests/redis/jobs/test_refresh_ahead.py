from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import ConfigurationError, Conflict, HookFailed
from workstealing.jobs import AsyncRefreshAhead, RefreshAhead, XFetch
from workstealing.testing import ScriptedChance, Server

NEVER = XFetch(beta=0.0)


class Source:
    """Values that show how often they were computed."""

    def __init__(self) -> None:
        self.computed: list[str] = []
        self.failing = False

    def __call__(self, name: str) -> str:
        self.computed.append(name)
        if self.failing:
            raise LookupError("the database is away")
        return f"{name}{self.computed.count(name)}"


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def values(any_redis: Redis, key_prefix: str, source: Source) -> RefreshAhead:
    return RefreshAhead(any_redis, key_prefix, source, ttl=100, xfetch=NEVER)


def age(client: Redis, key: str, name: str, seconds: int) -> None:
    """Let a value be that much older."""
    value, due = f"{{{key}}}:value:{name}", f"{{{key}}}:due"
    client.hincrby(value, "expires", -1000 * seconds)
    client.zincrby(due, -1000 * seconds, name)


def test_a_value_is_computed_once_and_kept(
    values: RefreshAhead, source: Source, any_redis: Redis, key_prefix: str
) -> None:
    assert values.get("a") == "a1"
    assert values.get("a") == b"a1"
    assert values.get("b") == "b1"

    assert source.computed == ["a", "b"]
    assert 100_000 < any_redis.pttl(f"{{{key_prefix}}}:value:a") <= 200_000


def test_an_expired_value_is_computed_by_the_next_reader(
    values: RefreshAhead, any_redis: Redis, key_prefix: str
) -> None:
    values.get("a")
    age(any_redis, key_prefix, "a", 101)

    assert values.get("a") == "a2"
    assert values.get("a") == b"a2"


def test_a_reader_refreshes_early_when_the_lottery_says_so(
    any_redis: Redis, key_prefix: str, source: Source
) -> None:
    chance = ScriptedChance(0.99, 0.01)
    values = RefreshAhead(any_redis, key_prefix, source, ttl=100, chance=chance)
    values.get("a")
    age(any_redis, key_prefix, "a", 90)
    any_redis.hset(f"{{{key_prefix}}}:value:a", "took", 10_000)

    assert values.get("a") == b"a1"
    assert values.get("a") == "a2"
    assert chance.left == 0


def test_the_time_that_computing_took_is_kept(
    values: RefreshAhead, any_redis: Redis, key_prefix: str
) -> None:
    values.get("a")

    assert int(any_redis.hget(f"{{{key_prefix}}}:value:a", "took")) >= 1


def test_others_are_served_the_old_value_while_one_computes(
    values: RefreshAhead,
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    source: Source,
) -> None:
    values.get("a")
    age(any_redis, key_prefix, "a", 101)
    slow = stepped(values._driver, values._steps.get("a"))
    slow.step()
    slow.step()

    assert values.get("a") == b"a1"
    slow.finish()
    assert values.get("a") == b"a2"
    assert source.computed == ["a", "a"]


def test_nobody_waits_for_the_first_value(
    values: RefreshAhead, stepped: Callable[..., Any], source: Source
) -> None:
    first = stepped(values._driver, values._steps.get("a"))
    first.step()
    first.step()

    assert values.get("a") is None
    assert first.finish() == "a1"
    assert source.computed == ["a"]


def test_two_readers_that_saw_the_same_end_compute_once(
    values: RefreshAhead,
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    source: Source,
) -> None:
    values.get("a")
    age(any_redis, key_prefix, "a", 101)
    late = stepped(values._driver, values._steps.get("a"))
    late.step()
    values.get("a")

    assert late.finish() == b"a1"
    assert source.computed == ["a", "a"]


def test_what_was_computed_under_a_lost_lease_is_discarded(
    values: RefreshAhead,
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
) -> None:
    values.get("a")
    age(any_redis, key_prefix, "a", 101)
    slow = stepped(values._driver, values._steps.get("a"))
    for _ in range(3):
        slow.step()
    any_redis.unlink(f"{{{key_prefix}}}:lease:a")  # it runs out
    assert values.get("a") == "a3"

    assert slow.finish() == "a2"

    assert values.get("a") == b"a3"


def test_one_that_fails_under_a_lost_lease_leaves_the_lease_of_the_next(
    values: RefreshAhead,
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    source: Source,
) -> None:
    slow = stepped(values._driver, values._steps.get("a"))
    slow.step()
    slow.step()
    any_redis.set(f"{{{key_prefix}}}:lease:a", "the next")
    source.failing = True

    with pytest.raises(LookupError):
        slow.finish()

    assert any_redis.get(f"{{{key_prefix}}}:lease:a") == b"the next"


def test_a_name_that_is_forgotten_while_it_is_computed_stays_forgotten(
    values: RefreshAhead, stepped: Callable[..., Any], any_redis: Redis, key_prefix: str
) -> None:
    slow = stepped(values._driver, values._steps.get("a"))
    for _ in range(3):
        slow.step()

    assert not values.forget("a")
    slow.finish()

    assert not any_redis.keys(f"*{key_prefix}*")


def test_forget_leaves_nothing_behind(
    values: RefreshAhead, any_redis: Redis, key_prefix: str
) -> None:
    values.get("a")

    assert values.forget("a")
    assert not values.forget("a")
    assert not any_redis.keys(f"*{key_prefix}*")


def test_a_slice_computes_what_expires_soon_and_is_read(
    values: RefreshAhead, any_redis: Redis, key_prefix: str, source: Source
) -> None:
    for name in ("soon", "later"):
        values.get(name)
        values.get(name)
    age(any_redis, key_prefix, "soon", 95)

    assert values.recruited() is Duty.MORE
    assert values.recruited() is Duty.DISMISSED

    assert source.computed == ["soon", "later", "soon"]
    assert values.get("soon") == b"soon2"


def test_a_value_that_nobody_reads_is_let_go(
    values: RefreshAhead, any_redis: Redis, key_prefix: str, source: Source
) -> None:
    values.get("a")
    age(any_redis, key_prefix, "a", 95)
    assert values.pending() == 1

    values.recruited()

    assert source.computed == ["a"]
    assert values.pending() == 0
    assert values.get("a") == b"a1"


def test_a_failing_slice_raises_and_goes_on_with_other_names(
    values: RefreshAhead, any_redis: Redis, key_prefix: str, source: Source
) -> None:
    for name in ("broken", "sound"):
        values.get(name)
        values.get(name)
        age(any_redis, key_prefix, name, 98 if name == "broken" else 95)
    source.failing = True
    with pytest.raises(HookFailed, match="LookupError"):
        values.recruited()
    source.failing = False

    assert values.recruited() is Duty.MORE
    assert values.get("sound") == b"sound2"
    assert values.get("broken") == b"broken1"
    assert values.recruited() is Duty.DISMISSED


def test_a_reader_is_served_the_old_value_if_computing_fails(
    values: RefreshAhead,
    any_redis: Redis,
    key_prefix: str,
    source: Source,
    caplog: pytest.LogCaptureFixture,
) -> None:
    values.get("a")
    age(any_redis, key_prefix, "a", 101)
    source.failing = True

    assert values.get("a") == b"a1"
    assert "'a' could not be recomputed; its old value is kept" in caplog.text
    with pytest.raises(LookupError):
        values.get("b")

    source.failing = False
    assert values.get("a") == "a3"
    assert values.get("b") == "b2"


def test_a_crashed_computer_is_followed_when_its_lease_ends(
    values: RefreshAhead,
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
) -> None:
    values.get("a")
    values.get("a")
    age(any_redis, key_prefix, "a", 95)
    died = stepped(values._driver, values._steps.refresh())
    died.step()
    died.step()
    del died
    assert 0 < any_redis.pttl(f"{{{key_prefix}}}:lease:a") <= 30_000
    assert values.recruited() is Duty.DISMISSED
    any_redis.unlink(f"{{{key_prefix}}}:lease:a")
    age(any_redis, key_prefix, "a", 31)

    assert values.recruited() is Duty.MORE
    assert values.get("a") == b"a2"


def test_a_recruit_that_finds_all_names_taken_says_so(
    values: RefreshAhead,
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
) -> None:
    values.get("a")
    values.get("a")
    age(any_redis, key_prefix, "a", 95)
    late = stepped(values._driver, values._steps.refresh())
    late.step()
    any_redis.set(f"{{{key_prefix}}}:lease:a", "somebody")

    with pytest.raises(Conflict):
        late.finish()


def test_wrong_arguments_are_refused(fake_redis: Redis, source: Source) -> None:
    for wrong in ({"ttl": 0}, {"ttl": 1, "stale": -1}, {"ttl": 1, "batch": 0}):
        with pytest.raises(ConfigurationError):
            RefreshAhead(fake_redis, "key", source, **wrong)
    for name in ("beta", "cap"):
        with pytest.raises(ConfigurationError):
            XFetch(**{name: -1.0})


def test_of_two_recruits_at_once_one_computes(
    redis_server: Server, key_prefix: str, both_at_once: Callable[..., list[Any]]
) -> None:
    computed: list[str] = []
    ended = Event()

    def compute(name: str) -> str:
        computed.append(name)
        if len(computed) > 1:
            assert ended.wait(10)
        return "value"

    def work(values: RefreshAhead) -> Duty | None:
        try:
            duty = values.recruited()
        except Conflict:
            duty = None
        ended.set() if duty is not Duty.MORE else None
        return duty

    with (
        Redis.from_url(redis_server.url) as one,
        Redis.from_url(redis_server.url) as two,
    ):
        both = [
            RefreshAhead(client, key_prefix, compute, ttl=100, xfetch=NEVER)
            for client in (one, two)
        ]
        both[0].get("a")
        both[0].get("a")
        age(one, key_prefix, "a", 95)

        answers = both_at_once(*(lambda v=v: work(v) for v in both))

    assert Duty.MORE in answers
    assert computed == ["a", "a"]


async def test_the_asyncio_face_does_the_same(
    any_async_redis: AsyncRedis, key_prefix: str, source: Source
) -> None:
    async def compute(name: str) -> str:
        return source(name)

    values = AsyncRefreshAhead(any_async_redis, key_prefix, compute, ttl=100, ahead=100)
    assert await values.get("a") == "a1"
    assert await values.get("a") == b"a1"
    assert await values.pending() == 1

    assert await values.recruited() is Duty.MORE

    assert await values.get("a") == b"a2"
    assert await values.forget("a")
