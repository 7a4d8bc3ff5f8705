"""A worker's own connection: held for long, and made anew when it was cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Thread

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workstealing.drivers.connect import connect, dedicated
from workstealing.drivers.connection import is_plain
from workstealing.drivers.sync_driver import DedicatedDriver, Driver
from workstealing.errors import RedisUnavailable, WrongType
from workstealing.queue.inspection_calls import Counts, counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import Call, RedisCommand
from workstealing.testing import Server


@pytest.fixture
def driver(redis_server: Server) -> Iterator[DedicatedDriver]:
    with connect(redis_server.url, profile="tasks") as client:
        own = dedicated(Driver(client))
        yield own
        own.close()


def test_one_connection_serves_all_calls(driver: Driver, key_prefix: str) -> None:
    keys = QueueKeys(key_prefix, "default")
    driver.call(counts(keys))
    before = driver.client.info("stats")["total_connections_received"]

    for _ in range(5):
        driver.call(counts(keys))

    after = driver.client.info("stats")["total_connections_received"]
    assert after == before


def test_scripts_that_the_server_forgot_are_sent_again(
    driver: Driver, key_prefix: str
) -> None:
    driver.client.script_flush()

    assert driver.call(counts(QueueKeys(key_prefix, "default"))).tasks == 0


def test_an_error_of_the_server_leaves_the_connection_as_good_as_before(
    driver: Driver, key_prefix: str
) -> None:
    keys = QueueKeys(key_prefix, "default")
    driver.client.set(keys.task, "no hash")

    with pytest.raises(WrongType):
        driver.call(counts(keys))
    driver.client.delete(keys.task)

    assert driver.call(counts(keys)).tasks == 0


def test_a_connection_that_was_cut_fails_once_and_is_made_anew(
    driver: Driver, key_prefix: str
) -> None:
    if not is_plain(driver.client):
        pytest.skip("this redis-py mends connections before it uses them")
    keys = QueueKeys(key_prefix, "default")
    driver.call(counts(keys))
    for one in driver.client.client_list():
        if "eval" in one["cmd"]:
            driver.client.client_kill_filter(_id=one["id"])

    with pytest.raises(RedisUnavailable):
        driver.call(counts(keys))
    assert driver.call(counts(keys)).tasks == 0


def test_a_wake_up_arrives_on_it(driver: Driver, key_prefix: str) -> None:
    bell = QueueKeys(key_prefix, "default").bell
    driver.client.rpush(bell, "1")

    assert driver.call(RedisCommand(("BLPOP", bell, 1.0), parse=bool)) is True
    assert driver.call(RedisCommand(("BLPOP", bell, 0.01), parse=bool)) is False


def test_a_client_that_repeats_commands_keeps_its_own_ways(
    redis_server: Server,
) -> None:
    with Redis.from_url(redis_server.url, retry=Retry(NoBackoff(), 3)) as client:
        own = dedicated(Driver(client))
        connections = client.info("clients")["connected_clients"]

        own.call(counts(QueueKeys("plain", "default")))

        assert client.info("clients")["connected_clients"] == connections


def after_a_wait(keys: QueueKeys, *command: str | float) -> Call[Counts]:
    return replace(counts(keys), after=RedisCommand(command, bool, is_blocking=True))


def test_a_script_may_come_after_a_wait_that_is_sent_with_it(
    driver: Driver, key_prefix: str
) -> None:
    keys = QueueKeys(key_prefix, "default")
    driver.client.rpush(keys.bell, "1")

    for _ in range(2):
        seen = driver.call(after_a_wait(keys, "BLPOP", keys.bell, 0.01))
        assert seen.tasks == 0

    assert driver.client.llen(keys.bell) == 0


def test_a_script_that_the_server_forgot_does_not_wait_again(
    driver: Driver, key_prefix: str
) -> None:
    keys = QueueKeys(key_prefix, "default")
    driver.client.rpush(keys.bell, "1", "2")
    driver.client.script_flush()

    driver.call(after_a_wait(keys, "BLPOP", keys.bell, 0.01))

    assert driver.client.lrange(keys.bell, 0, -1) == [b"2"]


def test_a_wait_that_fails_leaves_no_answer_behind(
    driver: Driver, key_prefix: str
) -> None:
    keys = QueueKeys(key_prefix, "default")
    driver.client.set(keys.bell, "no list")

    with pytest.raises(WrongType):
        driver.call(after_a_wait(keys, "BLPOP", keys.bell, 0.01))

    assert driver.call(RedisCommand(("PING",), parse=bytes, is_blocking=True)) == (
        b"PONG"
    )


def test_a_client_that_repeats_commands_waits_first_and_runs_the_script_then(
    redis_server: Server, key_prefix: str
) -> None:
    keys = QueueKeys(key_prefix, "default")
    with Redis.from_url(redis_server.url, retry=Retry(NoBackoff(), 3)) as client:
        client.rpush(keys.bell, "1")

        own = dedicated(Driver(client))
        assert own.call(after_a_wait(keys, "BLPOP", keys.bell, 0.01)).tasks == 0

        assert client.llen(keys.bell) == 0


def test_a_wait_can_be_ended_by_another_thread(
    driver: DedicatedDriver, key_prefix: str
) -> None:
    keys = QueueKeys(key_prefix, "default")
    failures = list[BaseException]()

    def wait() -> None:
        try:
            driver.call(after_a_wait(keys, "BLPOP", keys.bell, 60.0))
        except RedisUnavailable as error:
            failures.append(error)

    thread = Thread(target=wait)
    thread.start()
    while thread.is_alive():
        driver.interrupt()
        thread.join(0.01)

    assert len(failures) == 1
    driver.client.rpush(keys.bell, "1")
    assert driver.call(counts(keys)).tasks == 0
    assert driver.client.llen(keys.bell) == 1
