"""What the first look at a server says, with Redis played by hand."""

from __future__ import annotations

import logging

import pytest

from workstealing.drivers.server_check import (
    ServerFacts,
    advice,
    first_look,
    parse_facts,
    refusal,
)
from workstealing.errors import RedisError
from workstealing.queue.steps import RedisCommand

LOGGER = "workstealing.drivers.server_check"


def facts(
    flavour: str = "redis",
    version: tuple[int, ...] = (7, 2, 4),
    policy: str = "noeviction",
    memory_limit: int | None = 1 << 30,
) -> ServerFacts:
    return ServerFacts(flavour, version, policy, memory_limit)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_policy_that_evicts_any_key_is_worth_a_warning(policy: str) -> None:
    text = advice(facts(policy=policy))

    assert text is not None
    assert policy in text
    assert "noeviction" in text


@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru", "volatile-ttl", ""])
def test_a_policy_that_spares_queues_is_not(policy: str) -> None:
    assert advice(facts(policy=policy)) is None


def test_a_server_without_a_memory_limit_evicts_nothing() -> None:
    assert advice(facts(policy="allkeys-lru", memory_limit=0)) is None


def test_an_untold_memory_limit_counts_as_one() -> None:
    assert advice(facts(policy="allkeys-lru", memory_limit=None)) is not None


@pytest.mark.parametrize("version", [(5, 0, 14), (6, 0, 20), (6, 1)])
def test_a_server_before_redis_6_2_is_refused(version: tuple[int, ...]) -> None:
    text = refusal(facts(version=version))

    assert text is not None
    assert ".".join(map(str, version)) in text
    assert "6.2" in text


@pytest.mark.parametrize("version", [(6, 2), (6, 2, 0), (7, 0), (10, 0), ()])
def test_a_newer_or_unknown_server_is_taken(version: tuple[int, ...]) -> None:
    assert refusal(facts(version=version)) is None


def test_any_valkey_is_taken() -> None:
    assert refusal(facts(flavour="valkey", version=(6, 0))) is None


def test_facts_are_read_from_the_dictionary_of_redis_py() -> None:
    reply = {
        "redis_version": "7.2.4",
        "server_name": "valkey",
        "maxmemory": 100,
        "maxmemory_policy": "allkeys-lru",
    }

    assert parse_facts(reply) == facts("valkey", (7, 2, 4), "allkeys-lru", 100)


def test_facts_are_read_from_text() -> None:
    text = b"# Server\r\nredis_version:6.2.14\r\n\r\n# Memory\r\nmaxmemory:5\r\n"

    assert parse_facts(text) == facts("redis", (6, 2, 14), "", 5)


def test_a_version_that_is_no_number_is_unknown() -> None:
    assert parse_facts({"redis_version": "255.x"}).version == ()
    assert parse_facts({"redis_version": "7.4.0-rc1"}).version == (7, 4, 0)


def test_a_look_costs_one_command() -> None:
    flow = first_look("a-server-that-is-fine:1/0")

    step = next(flow)

    assert isinstance(step, RedisCommand)
    assert step.parts == ("INFO",)
    with pytest.raises(StopIteration) as end:
        flow.send(facts())
    assert end.value.value is None


def test_the_warning_is_logged_once_per_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for target in ("evicting:1/0", "evicting:1/0", "evicting:2/0"):
        flow = first_look(target)
        next(flow)
        with pytest.raises(StopIteration):
            flow.send(facts(policy="allkeys-lru"))

    warned = [record.args for record in caplog.records if record.name == LOGGER]
    assert [args[0] for args in warned if args] == ["evicting:1/0", "evicting:2/0"]


def test_an_old_server_is_refused_after_a_look() -> None:
    flow = first_look("old:1/0")
    next(flow)

    with pytest.raises(StopIteration) as end:
        flow.send(facts(version=(5, 0)))

    assert "Redis 5.0" in end.value.value


def test_a_server_that_does_not_tell_is_taken_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)
    flow = first_look("silent:1/0")
    next(flow)

    with pytest.raises(StopIteration) as end:
        flow.throw(RedisError("NOPERM"))

    assert end.value.value is None
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
