"""When to end is checked where it is given, in the process of the caller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from workstealing import TaskQueue, Worker, WorkerPool
from workstealing.errors import ConfigurationError, PoolStopped
from workstealing.workers.identity import checked_until_empty

_REFUSED = """until_empty must be True, False or "all", got 'everything'"""


@pytest.fixture
def queue() -> Iterator[TaskQueue]:
    # Nobody listens there, and nobody is asked.
    queue = TaskQueue("mistyped", "redis://127.0.0.1:1/0")
    yield queue
    queue.close()


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_a_pool_does_not_start_if_until_empty_is_mistyped(
    queue: TaskQueue, kind: Any
) -> None:
    pool = WorkerPool(queue, 1, kind)
    mistyped: Any = "everything"

    with pytest.raises(ConfigurationError, match=_REFUSED):
        pool.start(until_empty=mistyped)

    with pytest.raises(PoolStopped, match="was not started"):
        pool.wait(0.0)


def test_a_worker_does_not_run_if_until_empty_is_mistyped(queue: TaskQueue) -> None:
    mistyped: Any = "everything"

    with pytest.raises(ConfigurationError, match=_REFUSED):
        Worker(queue).run(until_empty=mistyped)


@pytest.mark.parametrize("value", [True, False, "all"])
def test_what_until_empty_may_be_is_returned(value: Any) -> None:
    assert checked_until_empty(value) == value
