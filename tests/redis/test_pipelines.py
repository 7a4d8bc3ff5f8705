"""Scripts that are sent without waiting in between: all arrive, or an error says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.connect import connect
from workstealing.drivers.connection import is_plain
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import InputEnded, QueueFull, RedisUnavailable, WrongType
from workstealing.queue.inspection_calls import Counts, counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.producer_calls import Submitted, submit
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call, Flow, Pipeline
from workstealing.testing import Server

T = TypeVar("T")
MANY = 3_500


@pytest.fixture
def driver(redis_server: Server) -> Iterator[Driver]:
    with connect(redis_server.url, profile="tasks") as client:
        yield Driver(client)


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    made = TaskQueue(key_prefix, redis_server.url)
    yield made
    made.close()


def test_thousands_arrive_in_their_order(queue: TaskQueue) -> None:
    @queue.task
    def double(number: int) -> int:
        return 2 * number

    handles = double.submit_many((number,) for number in range(MANY))

    inbox = internals_of(queue).driver.client.lrange(
        internals_of(queue).keys.inboxes[1], 0, -1
    )
    assert inbox == [handle.id.encode() for handle in handles]


async def test_thousands_arrive_in_their_order_under_asyncio(
    redis_server: Server, key_prefix: str
) -> None:
    queue = AsyncTaskQueue(key_prefix, redis_server.url)

    @queue.task
    def double(number: int) -> int:
        return 2 * number

    handles = await double.submit_many((number,) for number in range(MANY))

    inbox = await internals_of(queue).driver.client.lrange(
        internals_of(queue).keys.inboxes[1], 0, -1
    )
    assert inbox == [handle.id.encode() for handle in handles]
    await queue.close()


def test_a_queue_whose_input_ended_takes_none_of_thousands(queue: TaskQueue) -> None:
    @queue.task
    def double(number: int) -> int:
        return 2 * number

    queue.end_input()

    with pytest.raises(InputEnded):
        double.submit_many((number,) for number in range(MANY))
    assert queue.counts().tasks == 0


def test_what_comes_after_a_full_queue_is_not_taken(
    redis_server: Server, key_prefix: str
) -> None:
    queue = TaskQueue(key_prefix, redis_server.url, max_length=MANY - 1_000)

    @queue.task
    def double(number: int) -> int:
        return 2 * number

    with pytest.raises(QueueFull, match="2000 of 3500 tasks were submitted"):
        double.submit_many((number,) for number in range(MANY))

    # The last five hundred would have found a place.
    assert queue.counts().tasks == 2_000
    queue.close()


def test_each_answer_belongs_to_its_call(driver: Driver, key_prefix: str) -> None:
    runs = [QueueKeys(key_prefix, run) for run in ("a", "b", "c")]
    for size, keys in enumerate(runs, 1):
        driver.client.hset(keys.task, mapping={str(n): "" for n in range(size)})

    answers = driver.run(_pipelined(map(counts, runs)))

    assert [one.tasks for one in answers] == [1, 2, 3]


def test_an_error_in_the_midst_leaves_no_answer_to_others(
    driver: Driver, key_prefix: str
) -> None:
    good, bad = QueueKeys(key_prefix, "good"), QueueKeys(key_prefix, "bad")
    driver.client.set(bad.task, "no hash")
    driver.client.hset(good.task, "one", "")

    with pytest.raises(WrongType):
        driver.run(_pipelined([counts(good), counts(bad), counts(good), counts(good)]))

    driver.client.delete(bad.task)
    assert driver.call(counts(bad)).tasks == 0
    assert driver.call(counts(good)).tasks == 1


def test_a_connection_that_is_cut_in_the_midst_is_an_error(
    driver: Driver, redis_server: Server, key_prefix: str
) -> None:
    if not is_plain(driver.client):
        pytest.skip("with this redis-py they are sent one after another")
    keys = QueueKeys(key_prefix, "default")

    def cutting() -> Iterator[Call[Counts]]:
        yield counts(keys)
        with Redis.from_url(redis_server.url) as other:
            other.client_kill_filter(_type="normal", skipme=True)
        yield counts(keys)
        yield counts(keys)

    with pytest.raises(RedisUnavailable):
        driver.run(_pipelined(cutting()))
    assert driver.call(counts(keys)).tasks == 0


def test_a_server_that_forgot_the_scripts_runs_them_all_the_same(
    driver: Driver, key_prefix: str
) -> None:
    keys = QueueKeys(key_prefix, "default")

    def forgetting() -> Iterator[Call[Counts]]:
        for _ in range(3):
            driver.client.script_flush()
            yield counts(keys)

    assert len(driver.run(_pipelined(forgetting()))) == 3


def test_a_script_of_short_calls_is_sent_in_full_once(
    driver: Driver, key_prefix: str
) -> None:
    if not is_plain(driver.client):
        pytest.skip("with this redis-py they are sent one after another")
    keys = QueueKeys(key_prefix, "default")
    driver.client.config_resetstat()

    driver.run(_pipelined([counts(keys)] * 10))

    stats = driver.client.info("commandstats")
    assert stats["cmdstat_eval"]["calls"] == 1
    assert stats["cmdstat_evalsha"]["calls"] == 9


def test_long_calls_are_run_in_their_turn_by_a_server_that_forgot_their_script(
    driver: Driver, key_prefix: str
) -> None:
    keys, settings = QueueKeys(key_prefix, "default"), QueueSettings()

    def submission(name: str, size: int) -> Call[Submitted]:
        return submit(keys, settings, [(name, b"x" * size)], priority=1)

    def forgetting() -> Iterator[Call[Submitted]]:
        for number in range(8):
            if number == 3:
                driver.client.script_flush()
            if number == 5:
                # Somebody else has the server learn it again.
                driver.call(submission("another", 10))
            yield submission(str(number), 100_000)

    driver.run(_pipelined(forgetting()))

    ids = driver.client.lrange(keys.inboxes[1], 0, -1)
    ids.remove(b"another")
    assert ids == [str(number).encode() for number in range(8)]


def test_a_client_that_repeats_commands_sends_one_after_another(
    redis_server: Server, key_prefix: str
) -> None:
    with Redis.from_url(redis_server.url, retry=Retry(NoBackoff(), 3)) as client:
        keys = QueueKeys(key_prefix, "default")

        answers = Driver(client).run(_pipelined([counts(keys)] * 3))

        assert [one.tasks for one in answers] == [0, 0, 0]


def _pipelined(calls: Iterable[Call[T]]) -> Flow[list[T]]:
    answers: list[T] = yield Pipeline(calls)
    return answers
