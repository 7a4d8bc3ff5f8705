"""Connections of a queue: made on first use, released by `close()`, one per loop."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import AsyncTaskQueue, TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.client.queue_options import QueueOptions
from workstealing.errors import ConfigurationError, InputEnded
from workstealing.testing import Server


def double(number: int) -> int:
    return 2 * number


@pytest.fixture
def collected() -> Iterator[None]:
    """Have what a test leaks found in the test itself, not in the next one."""
    yield
    gc.collect()


def leaking(test: Any) -> Any:
    """Let a test leave connections open, since that is what it is about."""
    for warning in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
        test = pytest.mark.filterwarnings(f"ignore::{warning}")(test)
    return pytest.mark.usefixtures("collected")(test)


@pytest.mark.parametrize("kind", [TaskQueue, AsyncTaskQueue])
def test_every_option_of_a_queue_is_passed_on_to_its_twin(kind: Any) -> None:
    keywords = set(inspect.signature(kind).parameters)

    # A secret is passed on as the keyring that was made of it.
    kept = keywords - {"name", "redis", "secret"}
    assert kept == {field.name for field in fields(QueueOptions)}


@pytest.mark.parametrize("kind", [TaskQueue, AsyncTaskQueue])
def test_every_option_of_a_queue_is_a_keyword_with_a_type(kind: Any) -> None:
    parameters = inspect.signature(kind).parameters

    assert list(parameters) == [
        *("name", "redis", "run", "lease", "retention", "max_outcomes"),
        *("max_dead", "dead_retention"),
        *("max_length", "max_payload", "max_result", "replicas", "shards"),
        *("registry", "policy", "secret", "keyring", "release"),
        *("middleware", "carry", "clock", "observers"),
    ]
    assert all(one.annotation is not one.empty for one in parameters.values())
    assert all(one.kind is one.KEYWORD_ONLY for one in list(parameters.values())[2:])


def test_closing_a_queue_is_harmless_to_everybody_else(
    queue: TaskQueue, make_queue: Callable[..., TaskQueue]
) -> None:
    with closing(make_queue()) as closed:
        task = closed.task(double)
        task.submit(1)

    queue.task(double).submit(2)
    assert task.submit(3).state().state.value == "waiting"
    assert queue.counts().tasks == 3


def test_a_queue_as_context_releases_its_connections(
    redis_server: Server, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, redis_server.url) as queue:
        queue.counts()
        first = internals_of(queue).driver.client
    queue.close()

    assert queue.counts().tasks == 0
    assert internals_of(queue).driver.client is not first
    queue.close()


async def test_an_asyncio_queue_as_context_releases_its_connections(
    redis_server: Server, key_prefix: str
) -> None:
    async with AsyncTaskQueue(key_prefix, redis_server.url) as queue:
        await queue.counts()
        first = internals_of(queue).driver.client
    await queue.close()

    assert (await queue.counts()).tasks == 0
    assert internals_of(queue).driver.client is not first
    await queue.close()


def test_a_client_that_was_given_stays_open(
    redis_client: Redis, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, redis_client) as queue:
        queue.counts()

    assert redis_client.ping()


def test_the_error_after_the_end_of_input_names_the_queue_and_the_way_back(
    queue: TaskQueue, key_prefix: str
) -> None:
    task = queue.task(double)
    queue.end_input()

    with pytest.raises(InputEnded) as caught:
        task.submit(1)

    assert caught.value.queue == f"{key_prefix}/default"
    assert str(caught.value) == (
        f"the input of queue '{key_prefix}/default' was ended, so the task was not"
        " submitted: call queue.reopen_input(), or run `workstealing queue reopen`"
    )
    queue.reopen_input()
    task.submit(1)


def test_one_asyncio_queue_is_used_in_several_event_loops(
    redis_server: Server, key_prefix: str
) -> None:
    queue = AsyncTaskQueue(key_prefix, redis_server.url)
    task = queue.task(name="double")(double)

    async def give(number: int) -> Any:
        handle = await task.submit(number)
        await asyncio.to_thread(Worker(queue).run, until_empty=True)
        result = await handle.result(timeout=20)
        await queue.close()
        return result

    assert [asyncio.run(give(number)) for number in range(3)] == [0, 2, 4]


@leaking
def test_an_asyncio_queue_survives_a_loop_that_ended_without_closing_it(
    redis_server: Server, key_prefix: str
) -> None:
    queue = AsyncTaskQueue(key_prefix, redis_server.url)
    task = queue.task(double)

    async def give() -> None:
        handle = await task.submit(1)
        with pytest.raises(TimeoutError):
            await handle.result(timeout=0.01)

    asyncio.run(give())
    asyncio.run(give())

    async def count() -> int:
        async with queue:
            return (await queue.counts()).tasks

    assert asyncio.run(count()) == 2


@leaking
def test_a_given_client_of_a_loop_that_ended_is_a_clear_error(
    redis_server: Server, key_prefix: str
) -> None:
    client = AsyncRedis.from_url(redis_server.url)
    queue = AsyncTaskQueue(key_prefix, client)

    async def count() -> None:
        await queue.counts()

    asyncio.run(count())
    with pytest.raises(ConfigurationError, match=r"another event loop: give a URL"):
        asyncio.run(count())


def test_the_sync_twin_of_an_asyncio_queue_has_its_tasks_and_options(
    redis_server: Server, key_prefix: str
) -> None:
    queue = AsyncTaskQueue(
        key_prefix, redis_server.url, run="night", lease=3.0, secret="s" * 32
    )
    queue.task(name="double")(double)

    with queue.sync() as twin:
        assert twin.registry is queue.registry
        assert repr(twin) == f"<TaskQueue {key_prefix}/night>"
        assert internals_of(twin).settings == internals_of(queue).settings
        assert twin.counts().tasks == 0
        assert twin.sync() is twin
        signed = internals_of(twin).admission.signer
        assert signed is not None


def test_an_asyncio_client_cannot_be_shared_with_sync_code(key_prefix: str) -> None:
    queue = AsyncTaskQueue(key_prefix, AsyncRedis())

    with pytest.raises(ConfigurationError, match="was given an asyncio client"):
        queue.sync()
