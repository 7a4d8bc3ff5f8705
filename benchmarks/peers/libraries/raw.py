"""Not a library: the least that a queue on Redis can do, as a floor.

`LPUSH` of JSON, `BRPOP`, a call, `SET` of the result. No acknowledgement, no retry.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

import redis

from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL
from benchmarks.peers.producer import BaseProducer
from benchmarks.peers.task_bodies import BODIES

__all__ = ("Producer", "work")

_QUEUE = "raw:queue"
_RESULT_SECONDS = 600
_AT_ONCE = 100


class Producer(BaseProducer):
    """Pushes to a list."""

    def __init__(self) -> None:
        self._client: Any = redis.Redis.from_url(URL)

    def submit(self, task: str, number: int) -> str:
        """Push one task; return the key of its result."""
        key, message = _message(task, number)
        self._client.lpush(_QUEUE, message)
        return key

    def submit_many(self, task: str, numbers: range) -> None:
        """Push a hundred at a time in a pipeline."""
        for at in range(0, len(numbers), _AT_ONCE):
            with self._client.pipeline(transaction=False) as pipeline:
                for number in numbers[at : at + _AT_ONCE]:
                    pipeline.lpush(_QUEUE, _message(task, number)[1])
                pipeline.execute()

    def result(self, submitted: str) -> Any:
        """Wait at a list of the task's own."""
        return json.loads(self._client.blpop([submitted], 30)[1])


def work() -> None:
    """Pop, call, store."""
    client: Any = redis.Redis.from_url(URL)
    while True:
        popped = client.brpop([_QUEUE], 1)
        if popped is None:
            continue
        task, key, number, text = json.loads(popped[1])
        result = json.dumps(BODIES[task](number, text))
        if SETTINGS.get("replies"):
            client.rpush(key, result)
        else:
            client.set(key, result, ex=_RESULT_SECONDS)


def _message(task: str, number: int) -> tuple[str, str]:
    key = f"raw:result:{uuid.uuid4().hex}"
    return key, json.dumps([task, key, number, PAYLOAD])
