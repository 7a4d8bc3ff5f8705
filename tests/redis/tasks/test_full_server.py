"""A server at its `maxmemory` that may evict nothing refuses tasks, and is drained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

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
        for _ in range(100_000):
            handles.append(task.submit(payload))
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
