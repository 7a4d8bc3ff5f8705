"""Huey."""

from __future__ import annotations

from typing import Any

from huey import RedisHuey

from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL
from benchmarks.peers.producer import BaseProducer
from benchmarks.peers.task_bodies import BODIES

__all__ = ("Producer", "queue")

queue = RedisHuey("bench", url=URL, notify_result=SETTINGS.get("notifies", False))
_tasks = {name: queue.task(name=name)(body) for name, body in BODIES.items()}


class Producer(BaseProducer):
    """Calls the tasks, which submits them."""

    def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return _tasks[task](number, PAYLOAD)

    def result(self, submitted: Any) -> Any:
        """Wait for the result."""
        return submitted.get(blocking=True, timeout=30)
