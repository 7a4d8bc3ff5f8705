"""A primary that Sentinels watch is replaced under load, with `replicas=1`.

Afterwards there is a replica again: the old primary. Without one nobody may confirm
anything, so until it follows the new one, submissions are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from workstealing.testing import SentinelGroup, Server, wait_until

Make = Callable[..., Any]

_SECONDS = 40


@pytest.fixture
def group() -> Iterator[SentinelGroup]:
    with SentinelGroup() as group:
        yield group


def ask(server: Server, *words: str | int) -> Any:
    with Redis.from_url(server.url, decode_responses=True, socket_timeout=5) as client:
        return client.execute_command(*words)


def follows(server: Server) -> bool:
    """Tell whether it has become a replica, and has all that its primary has."""
    with suppress(RedisError):
        role, *_, state, _ = ask(server, "ROLE")
        return bool(role == "slave" and state == "connected")
    return False


def is_named(group: SentinelGroup, server: Server) -> bool:
    address = ask(group.sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", group.service)
    return bool(int(address[1]) == server.port)


@pytest.mark.timeout(240)
def test_when_the_primary_is_killed_under_load_all_that_was_accepted_is_done_once(
    group: SentinelGroup, make_load: Make
) -> None:
    load = make_load(group.url, lease=3.0, replicas=1)
    with load.running():
        load.wait_for_more()
        group.primary.kill()
        wait_until(lambda: is_named(group, group.replica), _SECONDS, "the promotion")
        wait_until(lambda: load.refused, _SECONDS, "a refusal")
        group.primary.start()
        wait_until(lambda: follows(group.primary), _SECONDS, "the old one to follow")
        load.wait_for_more()

    load.assert_all_done_once()


@pytest.mark.timeout(240)
def test_in_a_planned_failover_under_load_all_that_was_accepted_is_done_once(
    group: SentinelGroup, make_load: Make
) -> None:
    load = make_load(group.url, lease=3.0, replicas=1)
    with load.running():
        load.wait_for_more()
        wait_until(lambda: has_begun(group), _SECONDS, "the failover to begin")
        wait_until(lambda: is_named(group, group.replica), _SECONDS, "the promotion")
        wait_until(lambda: follows(group.primary), _SECONDS, "the old one to follow")
        load.wait_for_more()

    load.assert_all_done_once()


def has_begun(group: SentinelGroup) -> bool:
    # Sentinel promotes none before it has heard enough of the replica.
    with suppress(ResponseError):
        return bool(ask(group.sentinel, "SENTINEL", "FAILOVER", group.service))
    return False
