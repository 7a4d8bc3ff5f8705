"""Somebody waits for a result while the server is away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, TaskQueue, Worker
from workstealing.client import queue_controls, queue_outcomes
from workstealing.errors import RedisUnavailable, ResultTimeout
from workstealing.queue.steps import AwaitOutcome, Sleep
from workstealing.testing import Server, wait_until


class Absence:
    """Notes when a waiter has found the server away, several times over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._found = 0
        for module in (queue_outcomes, queue_controls):
            monkeypatch.setattr(module, "Sleep", self._sleep)

    def _sleep(self, seconds: float) -> Sleep:
        self._found += 1
        return Sleep(seconds)

    def is_noticed(self) -> bool:
        return self._found >= 3


@pytest.fixture
def absence(monkeypatch: pytest.MonkeyPatch) -> Absence:
    return Absence(monkeypatch)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Is set when somebody waits for an outcome."""
    waits = Event()

    def wait(*arguments: Any) -> AwaitOutcome:
        waits.set()
        return AwaitOutcome(*arguments)

    monkeypatch.setattr(queue_outcomes, "AwaitOutcome", wait)
    return waits


@pytest.fixture
def queue(tcp_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    queue = TaskQueue(key_prefix, tcp_server.url)
    yield queue
    queue.close()


def run_one(server: Server, name: str) -> Thread:
    """Run the task `double` in another thread, as another process would."""

    def run() -> None:
        with TaskQueue(name, server.url) as queue:
            queue.task(name="double")(double)
            Worker(queue).run(until_empty=True)

    thread = Thread(target=run)
    thread.start()
    return thread


def double(number: int) -> int:
    return 2 * number


def test_a_result_arrives_although_the_server_was_away(
    tcp_server: Server,
    queue: TaskQueue,
    key_prefix: str,
    waits: Event,
    absence: Absence,
) -> None:
    handle = queue.task(name="double")(double).submit(21)
    with ThreadPoolExecutor() as threads:
        awaited = threads.submit(handle.result, timeout=50)
        assert waits.wait(20)
        tcp_server.kill()
        wait_until(absence.is_noticed, 20, "the waiter to notice")
        tcp_server.start()
        worker = run_one(tcp_server, key_prefix)

        assert awaited.result(timeout=50) == 42
        worker.join()


async def test_a_result_arrives_under_asyncio_although_the_server_was_away(
    tcp_server: Server, key_prefix: str, waits: Event, absence: Absence
) -> None:
    async with AsyncTaskQueue(key_prefix, tcp_server.url) as queue:
        handle = await queue.task(name="double")(double).submit(21)
        awaited = asyncio.create_task(handle.result(timeout=50))
        assert await asyncio.to_thread(waits.wait, 20)
        tcp_server.kill()
        await asyncio.to_thread(wait_until, absence.is_noticed, 20, "the waiter")
        await asyncio.to_thread(tcp_server.start)
        worker = run_one(tcp_server, key_prefix)

        assert await awaited == 42
        await asyncio.to_thread(worker.join)


def test_a_wait_can_begin_while_the_server_is_away(
    tcp_server: Server, queue: TaskQueue, key_prefix: str, absence: Absence
) -> None:
    handle = queue.task(name="double")(double).submit(21)
    tcp_server.kill()
    with ThreadPoolExecutor() as threads:
        awaited = threads.submit(handle.result, timeout=50)
        wait_until(absence.is_noticed, 20, "the waiter to notice")
        tcp_server.start()
        worker = run_one(tcp_server, key_prefix)

        assert awaited.result(timeout=50) == 42
        worker.join()


def test_one_who_waits_for_all_tasks_waits_on_while_the_server_is_away(
    tcp_server: Server, queue: TaskQueue, key_prefix: str, absence: Absence
) -> None:
    queue.task(name="double")(double).submit(21)
    tcp_server.kill()
    with ThreadPoolExecutor() as threads:
        waits = threads.submit(queue.wait, timeout=50)
        wait_until(absence.is_noticed, 20, "the waiter to notice")
        assert not waits.done()
        tcp_server.start()
        worker = run_one(tcp_server, key_prefix)

        assert waits.result(timeout=50).unfinished == 0
        worker.join()


def test_a_wait_for_all_tasks_that_ends_while_the_server_is_away_says_so(
    tcp_server: Server, queue: TaskQueue
) -> None:
    queue.task(name="double")(double).submit(21)
    tcp_server.kill()

    with pytest.raises(ResultTimeout, match="the server is not available") as late:
        queue.wait(timeout=0.3)

    assert isinstance(late.value.__cause__, RedisUnavailable)


def test_a_timeout_while_the_server_is_away_says_so(
    tcp_server: Server, queue: TaskQueue
) -> None:
    handle = queue.task(name="double")(double).submit(21)
    tcp_server.kill()

    with pytest.raises(ResultTimeout, match="the server is not available") as late:
        handle.result(timeout=0.3)

    assert isinstance(late.value.__cause__, RedisUnavailable)
