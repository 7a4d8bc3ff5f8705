"""Names that somebody else wrote and that are no text stop nobody; ours are checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from workstealing import Duty
from workstealing.errors import ConfigurationError
from workstealing.jobs import (
    CounterFlush,
    DeadMembers,
    IndexRepair,
    KeepUntil,
    MissingTTL,
    NamespaceBudget,
    PendingReclaim,
    QueueTracker,
    RefreshAhead,
    VolatileHash,
    WindowTrimmer,
)

NO_NAMES: list[Any] = [b"abc", None, 7, "\ud800"]


@pytest.fixture(params=[False, True], ids=["bytes", "text"])
def client(request: pytest.FixtureRequest, redis_server: Any) -> Iterator[Redis]:
    with Redis.from_url(redis_server.url, decode_responses=request.param) as client:
        yield client


def test_a_foreign_counter_is_flushed_with_the_others(
    client: Redis, key_prefix: str
) -> None:
    sunk: list[dict[str, int]] = []
    counters = CounterFlush(client, key_prefix, lambda _, counts: sunk.append(counts))
    client.hset(key_prefix, b"\xff", 1)
    counters.increment("good", 2)

    assert counters.recruited() is Duty.RECRUITED

    assert sunk == [{r"\xff": 1, "good": 2}]
    assert counters.pending() == 0


def test_two_foreign_counters_that_read_alike_are_added_up(
    client: Redis, key_prefix: str
) -> None:
    sunk: list[dict[str, int]] = []
    counters = CounterFlush(client, key_prefix, lambda _, counts: sunk.append(counts))
    client.hset(key_prefix, b"\xff", 1)
    counters.increment(r"\xff", 2)

    counters.recruited()

    assert sunk == [{r"\xff": 3}]


@pytest.mark.parametrize("foreign", ["many", "1.5", "", "-", "9" * 5000])
def test_a_foreign_value_that_is_no_count_is_left_alone(
    client: Redis, key_prefix: str, foreign: str
) -> None:
    sunk: list[dict[str, int]] = []
    counters = CounterFlush(client, key_prefix, lambda _, counts: sunk.append(counts))
    client.hset(key_prefix, "foreign", foreign)
    counters.increment("good", -2)

    assert counters.recruited() is Duty.RECRUITED
    assert counters.recruited() is Duty.DISMISSED

    assert sunk == [{"good": -2}]
    assert client.hkeys(key_prefix) in ([b"foreign"], ["foreign"])


def test_a_foreign_deadline_is_swept_with_the_others(
    client: Redis, key_prefix: str
) -> None:
    kept = KeepUntil(client, key_prefix)
    kept.set("ä", "1", 100)
    client.set(f"{{{key_prefix}}}:value:".encode() + b"\xff", "2")
    client.zadd(f"{{{key_prefix}}}:deadlines", {b"\xff": 1, "ä": 2})

    assert kept.recruited() is Duty.RECRUITED

    assert client.exists(f"{{{key_prefix}}}:deadlines") == 0
    assert client.keys(f"*{key_prefix}*") == []


def test_a_foreign_name_that_is_due_is_let_go(client: Redis, key_prefix: str) -> None:
    values = RefreshAhead(client, key_prefix, str.upper, ttl=100, batch=10)
    values.get("good")
    values.get("good")
    client.zadd(f"{{{key_prefix}}}:due", {b"\xff": 1, "good": 2})

    assert values.recruited() is Duty.RECRUITED

    assert values.pending() == 1


def test_an_id_that_is_no_text_is_removed_without_asking_the_table(
    client: Redis, key_prefix: str
) -> None:
    asked: list[list[str]] = []

    def still_there(ids: list[str]) -> list[str]:
        asked.append(ids)
        return ids

    tracker = QueueTracker(
        client, key_prefix, next_rows=lambda *_: [], still_there=still_there
    )
    client.zadd(key_prefix, {b"\xff": 1})
    for _ in range(2):
        tracker.recruited()
    assert (tracker.count(), asked) == (0, [])

    tracker.add("7")
    client.zadd(key_prefix, {b"\xff": 1})
    for _ in range(2):
        tracker.recruited()
    assert (tracker.ids(), asked) == ({"7"}, [["7"]])


@pytest.mark.parametrize("job", [DeadMembers, VolatileHash])
def test_names_that_are_no_text_reach_a_hook_as_bytes(
    redis_client: Redis, key_prefix: str, job: Any
) -> None:
    told: list[Any] = []
    if job is DeadMembers:
        redis_client.zadd(key_prefix, {b"\xff": 1})
        members = DeadMembers(redis_client, key_prefix, silence=1, on_dead=told.append)
        members.recruited()
    else:
        fields = VolatileHash(
            redis_client, key_prefix, on_expire=lambda name, _: told.append(name)
        )
        fields.set(b"\xff", "1", 100)
        redis_client.zadd(f"{{{key_prefix}}}:expires", {b"\xff": 1})
        fields.recruited()

    assert told == [b"\xff"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_is_no_text_is_refused(
    redis_client: Redis, key_prefix: str, name: Any
) -> None:
    kept = KeepUntil(redis_client, key_prefix)
    values = RefreshAhead(redis_client, key_prefix, str, ttl=1)
    counters = CounterFlush(redis_client, key_prefix, print)
    for refused in (
        lambda: kept.set(name, "v", 1),
        lambda: kept.add(name, "v", 1),
        lambda: kept.get(name),
        lambda: kept.extend(name, 1),
        lambda: kept.delete(name),
        lambda: values.get(name),
        lambda: values.forget(name),
        lambda: counters.increment(name),
        lambda: PendingReclaim(redis_client, key_prefix, name, print),
        lambda: PendingReclaim(redis_client, key_prefix, "g", print, consumer=name),
    ):
        with pytest.raises(ConfigurationError, match="name must be"):
            refused()

    assert redis_client.keys(f"*{key_prefix}*") == []


@pytest.mark.parametrize("identifier", [b"\xff", "\ud800"])
def test_an_id_that_is_no_text_is_refused(
    redis_client: Redis, key_prefix: str, identifier: Any
) -> None:
    tracker = QueueTracker(redis_client, key_prefix, next_rows=print, still_there=print)
    for refused in (tracker.add, tracker.remove, tracker.contains):
        with pytest.raises(ConfigurationError, match="name must be"):
            refused(identifier)


@pytest.mark.parametrize("key", [*NO_NAMES, ""])
def test_a_key_that_is_no_text_is_refused(redis_client: Redis, key: Any) -> None:
    for refused in (
        lambda: VolatileHash(redis_client, key),
        lambda: KeepUntil(redis_client, key),
        lambda: CounterFlush(redis_client, key, print),
        lambda: DeadMembers(redis_client, key, silence=1),
        lambda: IndexRepair(redis_client, key),
        lambda: RefreshAhead(redis_client, key, str, ttl=1),
        lambda: PendingReclaim(redis_client, key, "g", print),
        lambda: QueueTracker(redis_client, key, next_rows=print, still_there=print),
        lambda: WindowTrimmer(redis_client, key, length=1),
        lambda: MissingTTL(redis_client, key, "a*", ttl=1),
        lambda: MissingTTL(redis_client, "key", key, ttl=1),
        lambda: NamespaceBudget(redis_client, key, "a", most_keys=1),
        lambda: NamespaceBudget(redis_client, "key", key, most_keys=1),
    ):
        with pytest.raises(ConfigurationError):
            refused()
