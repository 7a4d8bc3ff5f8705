"""arq."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop
from arq import create_pool, func, run_worker
from arq.connections import RedisSettings

from benchmarks.peers.async_producer import AsyncProducer
from benchmarks.peers.async_task_bodies import ASYNC_BODIES
from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL

__all__ = ("Producer", "work")

_redis_settings = RedisSettings.from_dsn(URL)
_WORKER_OPTIONS = ("max_jobs", "poll_delay", "job_timeout")


class Producer(AsyncProducer):
    """Submits to a pool of connections."""

    async def connect(self) -> None:
        """Open the pool."""
        self._pool: Any = await create_pool(_redis_settings)

    async def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return await self._pool.enqueue_job(task, number, PAYLOAD)

    async def result(self, submitted: Any) -> Any:
        """Poll for the result."""
        return await submitted.result(timeout=30, poll_delay=0.005)


def work() -> None:
    """Run a worker."""
    logging.basicConfig(level=logging.WARNING)
    asyncio.set_event_loop(uvloop.new_event_loop())
    options = {name: SETTINGS[name] for name in _WORKER_OPTIONS if name in SETTINGS}
    functions = [
        func(_with_context(body), name=name) for name, body in ASYNC_BODIES.items()
    ]
    run_worker(
        {
            "functions": functions,
            "redis_settings": _redis_settings,
            "log_results": False,
            **options,
        }
    )


def _with_context(body: Callable[[int, str], Awaitable[int]]) -> Any:
    async def call(_: Any, number: int, text: str) -> int:
        return await body(number, text)

    return call
