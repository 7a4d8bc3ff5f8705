"""RQ."""

from __future__ import annotations

import sys
from typing import Any

from redis import Redis
from rq import Queue, Retry, SimpleWorker, Worker

from benchmarks.peers import task_bodies
from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL
from benchmarks.peers.producer import BaseProducer

__all__ = ("Producer", "work")

_AT_ONCE = 1000
_WORKER_OPTIONS = ("job_monitoring_interval", "maintenance_interval", "worker_ttl")

# RQ stores the path of a function with each task. With one as long as ours, its hashes
# would outgrow the compact form that Redis has for values of up to 64 bytes.
sys.modules["tasks"] = task_bodies


class Producer(BaseProducer):
    """Submits to a `Queue`."""

    def __init__(self) -> None:
        self._queue = Queue("bench", connection=Redis.from_url(URL))
        self._options: dict[str, Any] = {}
        if "retries" in SETTINGS:
            self._options["retry"] = Retry(max=SETTINGS["retries"])

    def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return self._queue.enqueue(f"tasks.{task}", number, PAYLOAD, **self._options)

    def submit_many(self, task: str, numbers: range) -> None:
        """Submit a thousand per call."""
        for at in range(0, len(numbers), _AT_ONCE):
            self._queue.enqueue_many(
                [
                    Queue.prepare_data(
                        f"tasks.{task}", args=(number, PAYLOAD), **self._options
                    )
                    for number in numbers[at : at + _AT_ONCE]
                ]
            )

    def result(self, submitted: Any) -> Any:
        """Wait at the stream of results."""
        return submitted.latest_result(timeout=30).return_value


def work() -> None:
    """Run tasks in this process, or in one fork each."""
    client = Redis.from_url(URL)
    options = {name: SETTINGS[name] for name in _WORKER_OPTIONS if name in SETTINGS}
    kind = Worker if SETTINGS.get("forks") else SimpleWorker
    queue = Queue("bench", connection=client)
    kind([queue], connection=client, **options).work(logging_level="WARNING")
