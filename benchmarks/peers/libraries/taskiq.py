"""taskiq, with taskiq-redis."""

from __future__ import annotations

from typing import Any

from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend, RedisStreamBroker

from benchmarks.peers.async_producer import AsyncProducer
from benchmarks.peers.async_task_bodies import ASYNC_BODIES
from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL

__all__ = ("Producer", "broker")

_BROKER_OPTIONS = ("idle_timeout", "unacknowledged_lock_timeout")

_kind = RedisStreamBroker if SETTINGS.get("acknowledges") else ListQueueBroker
broker: Any = _kind(
    url=URL, **{name: SETTINGS[name] for name in _BROKER_OPTIONS if name in SETTINGS}
).with_result_backend(RedisAsyncResultBackend(redis_url=URL, result_ex_time=600))
_tasks = {
    name: broker.register_task(body, task_name=name)
    for name, body in ASYNC_BODIES.items()
}


class Producer(AsyncProducer):
    """Submits with `kiq`."""

    async def connect(self) -> None:
        """Start the broker."""
        await broker.startup()

    async def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return await _tasks[task].kiq(number, PAYLOAD)

    async def result(self, submitted: Any) -> Any:
        """Poll for the result."""
        found = await submitted.wait_result(check_interval=0.005, timeout=30)
        return found.return_value
