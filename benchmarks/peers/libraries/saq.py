"""SAQ."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from saq import Queue, Worker

from benchmarks.peers.async_producer import AsyncProducer
from benchmarks.peers.async_task_bodies import ASYNC_BODIES
from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL

__all__ = ("Producer", "work")

_JOB_OPTIONS = ("retries", "timeout")


class Producer(AsyncProducer):
    """Submits to a `Queue`."""

    async def connect(self) -> None:
        """Connect the queue."""
        self._queue = await _connected()
        self._options = {
            name: SETTINGS[name] for name in _JOB_OPTIONS if name in SETTINGS
        }

    async def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return await self._queue.enqueue(
            task, number=number, text=PAYLOAD, **self._options
        )

    async def result(self, submitted: Any) -> Any:
        """Wait for a notification; look again if it came before the subscription."""
        while submitted.result is None:
            with suppress(asyncio.TimeoutError):
                await submitted.refresh(1)
        return submitted.result


async def work() -> None:
    """Run a worker."""
    timers: Any = {"sweep": SETTINGS["sweep"]} if "sweep" in SETTINGS else None
    functions = [(name, _with_context(body)) for name, body in ASYNC_BODIES.items()]
    worker = Worker(
        await _connected(),
        functions=functions,
        concurrency=SETTINGS.get("slots", 10),
        timers=timers,
    )
    await worker.start()


async def _connected() -> Any:
    queue = Queue.from_url(URL, name="bench")
    await queue.connect()
    return queue


def _with_context(body: Callable[[int, str], Awaitable[int]]) -> Any:
    async def call(_: Any, *, number: int, text: str) -> int:
        return await body(number, text)

    return call
