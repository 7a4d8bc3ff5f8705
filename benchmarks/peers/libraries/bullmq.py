"""BullMQ, its port to Python."""

from __future__ import annotations

import asyncio
from typing import Any

from bullmq import Queue, QueueEvents, Worker

from benchmarks.peers.async_producer import AsyncProducer
from benchmarks.peers.async_task_bodies import ASYNC_BODIES
from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL

__all__ = ("Producer", "work")

_AT_ONCE = 500
_WORKER_OPTIONS = ("concurrency", "lockDuration", "stalledInterval")


class Producer(AsyncProducer):
    """Adds jobs to a `Queue`, and listens to its events for results."""

    async def connect(self) -> None:
        """Open the queue."""
        self._queue = Queue("bench", {"connection": URL})
        self._results: dict[str, asyncio.Future[Any]] | None = None

    async def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return await self._queue.add(task, {"number": number, "text": PAYLOAD}, {})

    async def submit_many(self, task: str, numbers: range) -> None:
        """Submit 500 per call."""
        for at in range(0, len(numbers), _AT_ONCE):
            await self._queue.addBulk(
                [
                    {"name": task, "data": {"number": number, "text": PAYLOAD}}
                    for number in numbers[at : at + _AT_ONCE]
                ]
            )

    async def result(self, submitted: Any) -> Any:
        """Wait for the event; the first task only starts to listen."""
        if self._results is None:
            self._results = {}
            self._events = QueueEvents("bench", {"connection": URL})
            self._events.on("completed", self._completed)
            await asyncio.sleep(1)
            return submitted.data["number"]
        return await asyncio.wait_for(self._future(submitted.id), 30)

    def _completed(self, event: dict[str, Any], *_: Any) -> None:
        future = self._future(event["jobId"])
        if not future.done():
            future.set_result(event["returnvalue"])

    def _future(self, job_id: str) -> asyncio.Future[Any]:
        assert self._results is not None
        loop = asyncio.get_running_loop()
        return self._results.setdefault(job_id, loop.create_future())


async def work() -> None:
    """Run a worker."""
    options = {name: SETTINGS[name] for name in _WORKER_OPTIONS if name in SETTINGS}
    worker = Worker("bench", _process, {"connection": URL, **options})
    await asyncio.Event().wait()
    await worker.close()


async def _process(job: Any, _: str) -> int:
    return await ASYNC_BODIES[job.name](job.data["number"], job.data["text"])
