"""This package, from its checkout."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL
from benchmarks.peers.producer import BaseProducer
from benchmarks.peers.task_bodies import BODIES
from workstealing import TaskQueue, Worker, WorkerPool

__all__ = ("Producer", "work")

_queue = TaskQueue("bench", URL)
_tasks = {name: _queue.task(name=name)(body) for name, body in BODIES.items()}


class Producer(BaseProducer):
    """Submits to a `TaskQueue`."""

    def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return _tasks[task].submit(number, PAYLOAD)

    def submit_many(self, task: str, numbers: range) -> None:
        """Submit many, a thousand per round trip."""
        _tasks[task].submit_many([(number, PAYLOAD) for number in numbers])

    def result(self, submitted: Any) -> Any:
        """Wait for the outcome, which is pushed."""
        return submitted.result(timeout=30)


def work() -> None:
    """Run a plain worker, or a pool."""
    if "threads" not in SETTINGS:
        Worker(_queue).run()
        return
    with WorkerPool(_queue, workers=SETTINGS["threads"]):
        while True:
            time.sleep(60)
