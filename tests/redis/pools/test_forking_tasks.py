"""A task that forks and lets the child run on does not make a second worker of it."""

from __future__ import annotations

import os
import warnings
from threading import Thread

import pytest

from workstealing import TaskQueue, Worker, WorkerPool
from workstealing.testing import Server


def forking_queue(server: Server, name: str) -> TaskQueue:
    queue = TaskQueue(name, server.url)

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

    return queue


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize("name", ["plain", "awaited"])
def test_a_child_that_a_task_of_a_pool_left_behind_ends(
    redis_server: Server, key_prefix: str, kind: str, name: str
) -> None:
    queue = forking_queue(redis_server, key_prefix)

    with WorkerPool(queue, 2, kind):  # type: ignore[arg-type]
        assert submit(queue, name).result(10) == 0

    queue.driver.close()
    queue.driver.client.close()


def test_a_child_that_a_task_of_a_worker_left_behind_ends(
    redis_server: Server, key_prefix: str
) -> None:
    queue = forking_queue(redis_server, key_prefix)
    worker = Worker(queue)
    thread = Thread(target=worker.run, daemon=True)
    thread.start()

    assert submit(queue, "plain").result(10) == 0

    worker.stop()
    thread.join(10)
    queue.driver.close()
    queue.driver.client.close()


def submit(queue: TaskQueue, name: str):  # type: ignore[no-untyped-def]
    from workstealing.client.task import Task

    return Task(queue, queue.registry.find(name, 1)).submit()
