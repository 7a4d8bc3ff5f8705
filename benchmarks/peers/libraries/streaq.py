"""streaQ."""

from __future__ import annotations

import logging
from typing import Any

from streaq import Worker

from benchmarks.peers.async_producer import AsyncProducer
from benchmarks.peers.async_task_bodies import ASYNC_BODIES
from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL

__all__ = ("Producer", "work")

_AT_ONCE = 500
_WORKER_OPTIONS = ("concurrency", "prefetch", "idle_timeout")

_worker: Any = Worker(
    redis_url=URL,
    queue_name="bench",
    anyio_kwargs={"use_uvloop": True},
    **{name: SETTINGS[name] for name in _WORKER_OPTIONS if name in SETTINGS},
)
_tasks = {
    name: _worker.task(name=name, silent=True)(body)
    for name, body in ASYNC_BODIES.items()
}


class Producer(AsyncProducer):
    """Submits by means of the worker object, which is client and worker."""

    async def connect(self) -> None:
        """Enter the worker's context; the process ends without leaving it."""
        await _worker.__aenter__()

    async def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return await _tasks[task].enqueue(number, PAYLOAD)

    async def submit_many(self, task: str, numbers: range) -> None:
        """Submit 500 per call."""
        for at in range(0, len(numbers), _AT_ONCE):
            some = numbers[at : at + _AT_ONCE]
            await _worker.enqueue_many(
                [_tasks[task].enqueue(number, PAYLOAD) for number in some]
            )

    async def result(self, submitted: Any) -> Any:
        """Wait for the result, which is published."""
        return (await submitted.result(30)).result


def work() -> None:
    """Run the worker."""
    logging.basicConfig(level=logging.WARNING)
    _worker.run_sync()
