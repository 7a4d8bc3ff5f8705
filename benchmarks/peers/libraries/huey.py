"""Huey."""

from __future__ import annotations

from typing import Any

from huey import RedisHuey

from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL, become
from benchmarks.peers.producing import BaseProducer
from benchmarks.peers.task_bodies import BODIES

__all__ = ("Producer", "queue", "work")

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


def work() -> None:
    """Become Huey's own consumer, without periodic tasks."""
    become(
        "huey_consumer",
        *("benchmarks.peers.libraries.huey.queue", "-q", "-n"),
        *("-k", "thread", "-w", SETTINGS["threads"]),
    )
