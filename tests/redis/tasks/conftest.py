"""What stories about tasks share: queues of their own, and workers in threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from threading import Thread
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, TaskQueue, Worker
from workstealing.testing import Server


class Crew:
    """Workers in threads, stopped at the end of the test."""

    def __init__(self) -> None:
        self._at_work: list[tuple[Worker, Thread]] = []
        self.errors: list[BaseException] = []

    def start(self, queue: TaskQueue, **options: Any) -> Worker:
        worker = Worker(queue, **options)
        thread = Thread(target=self._live, args=(worker,))
        self._at_work.append((worker, thread))
        thread.start()
        return worker

    def stop(self) -> None:
        for worker, _ in self._at_work:
            worker.stop()
        for worker, thread in self._at_work:
            thread.join(timeout=20)
            assert not thread.is_alive(), f"{worker.name} does not end"
        self._at_work.clear()

    def _live(self, worker: Worker) -> None:
        try:
            worker.run()
        except BaseException as error:
            self.errors.append(error)


@pytest.fixture
def crew() -> Iterator[Crew]:
    crew = Crew()
    yield crew
    crew.stop()
    assert crew.errors == []


@pytest.fixture
def make_queue(
    redis_server: Server, key_prefix: str
) -> Iterator[Callable[..., TaskQueue]]:
    """Make another queue of the same name, as another process would."""
    made: list[TaskQueue] = []

    def make(redis: Any = None, **options: Any) -> TaskQueue:
        queue = TaskQueue(key_prefix, redis or redis_server.url, **options)
        made.append(queue)
        return queue

    yield make
    for queue in made:
        queue.close()


@pytest.fixture
def queue(make_queue: Callable[..., TaskQueue]) -> TaskQueue:
    return make_queue()


@pytest.fixture
async def async_queue(
    redis_server: Server, key_prefix: str
) -> AsyncIterator[AsyncTaskQueue]:
    queue = AsyncTaskQueue(key_prefix, redis_server.url)
    yield queue
    await queue.close()
