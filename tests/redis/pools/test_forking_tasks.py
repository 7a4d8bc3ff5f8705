"""A task that forks and lets the child run on does not make a second worker of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from workstealing import TaskQueue, Worker, WorkerPool
from workstealing.client.task import Task
from workstealing.testing import Server


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    queue = TaskQueue(key_prefix, redis_server.url)
    yield queue
    queue.close()


@pytest.fixture
def forking(queue: TaskQueue) -> dict[str, Task[[], int]]:
    """Two tasks that fork, and tell how the child ended."""

    def fork() -> int:
        with warnings.catch_warnings():
            # Python 3.12 warns of threads that the child lacks.
            warnings.simplefilter("ignore")
            child = os.fork()
        return 0 if child == 0 else os.waitpid(child, 0)[1]

    @queue.task(name="plain")
    def plain() -> int:
        return fork()

    @queue.task(name="awaited")
    async def awaited() -> int:
        return fork()

    return {"plain": plain, "awaited": awaited}


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize("name", ["plain", "awaited"])
def test_a_child_that_a_task_of_a_pool_left_behind_ends(
    queue: TaskQueue, forking: dict[str, Task[[], int]], kind: Any, name: str
) -> None:
    with WorkerPool(queue, 2, kind):
        assert forking[name].submit().result(10) == 0


def test_a_child_that_a_task_of_a_worker_left_behind_ends(
    queue: TaskQueue, forking: dict[str, Task[[], int]]
) -> None:
    worker = Worker(queue)
    thread = Thread(target=worker.run, daemon=True)
    thread.start()

    assert forking["plain"].submit().result(10) == 0

    worker.stop()
    thread.join(10)


def test_an_interrupt_in_a_child_of_a_task_leaves_the_tasks_of_its_worker_alone(
    queue: TaskQueue,
) -> None:
    @queue.task(name="interrupted")
    def interrupted() -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            raise KeyboardInterrupt
        return os.waitpid(child, 0)[1]

    handle = interrupted.submit()
    Worker(queue).run(until_empty=True)

    assert handle.result(10) == 0
    assert "back" not in queue.counts().stats
    assert queue.counts().stats["done"] == 1
