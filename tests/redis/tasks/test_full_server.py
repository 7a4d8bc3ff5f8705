"""A server at its `maxmemory` that may evict nothing refuses tasks, and is drained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from workstealing import TaskQueue, Worker
from workstealing.errors import RedisOutOfMemory
from workstealing.testing import Server


@pytest.fixture
def full_server() -> Iterator[Server]:
    with Server(maxmemory="6mb", maxmemory_policy="noeviction") as server:
        yield server


def fill(task: Any, payload: str) -> list[Any]:
    """Submit tasks until the server refuses one; return those that it took."""
    handles: list[Any] = []
    with pytest.raises(RedisOutOfMemory, match="maxmemory"):
        handles.extend(task.submit(payload) for _ in range(100_000))
    return handles


def test_a_worker_that_finds_the_server_full_does_all_tasks(
    full_server: Server, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, full_server.url) as queue:

        @queue.task
        def length(text: str) -> int:
            return len(text)

        handles = fill(length, "x" * 2000)

        Worker(queue).run(until_empty=True)

        assert len(handles) > 100
        assert {handle.result(timeout=0) for handle in handles} == {2000}
        assert queue.counts().tasks == 0
        assert length.submit("there is room again") is not None


def test_a_full_server_takes_no_task_even_if_it_was_cancelled_before(
    full_server: Server, key_prefix: str
) -> None:
    with (
        TaskQueue(key_prefix, full_server.url, retention=0) as queue,
        Redis.from_url(full_server.url) as admin,
    ):

        @queue.task
        def length(text: str) -> int:
            return len(text)

        handle = length.options(id="again").submit("once")
        assert handle.cancel()
        admin.config_set("maxmemory", 1)

        with pytest.raises(RedisOutOfMemory):
            length.options(id="again").submit("twice")

        assert queue.counts().tasks == 0
