"""Celery."""

from __future__ import annotations

from typing import Any

from celery import Celery, group

from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL
from benchmarks.peers.producer import BaseProducer
from benchmarks.peers.task_bodies import BODIES

__all__ = ("Producer", "app")

_AT_ONCE = 500

app = Celery("bench", broker=URL, backend=URL)
app.conf.update(
    worker_prefetch_multiplier=SETTINGS.get("prefetch", 4),
    task_acks_late=SETTINGS.get("acks_late", False),
    task_reject_on_worker_lost=SETTINGS.get("acks_late", False),
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)
if "visibility_timeout" in SETTINGS:
    app.conf.broker_transport_options = {
        "visibility_timeout": SETTINGS["visibility_timeout"],
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
    }
_tasks = {name: app.task(name=name)(body) for name, body in BODIES.items()}


class Producer(BaseProducer):
    """Submits with `delay`."""

    def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return _tasks[task].delay(number, PAYLOAD)

    def submit_many(self, task: str, numbers: range) -> None:
        """Submit groups; they are sent one by one."""
        for at in range(0, len(numbers), _AT_ONCE):
            some = numbers[at : at + _AT_ONCE]
            group(_tasks[task].s(number, PAYLOAD) for number in some).apply_async()

    def result(self, submitted: Any) -> Any:
        """Wait for the result, which is published."""
        return submitted.get(timeout=30)
