"""Dramatiq."""

from __future__ import annotations

from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benchmarks.peers.process_settings import PAYLOAD, SETTINGS, URL
from benchmarks.peers.producer import BaseProducer
from benchmarks.peers.task_bodies import BODIES

__all__ = ("Producer", "broker")

_BROKER_OPTIONS = ("heartbeat_timeout", "maintenance_chance")

# Its classes are typed in part only.
_new_broker: Any = RedisBroker
_new_results: Any = Results

broker = _new_broker(
    url=URL, **{name: SETTINGS[name] for name in _BROKER_OPTIONS if name in SETTINGS}
)
broker.add_middleware(_new_results(backend=RedisBackend(url=URL), store_results=True))
dramatiq.set_broker(broker)
_actors = {name: dramatiq.actor(actor_name=name)(body) for name, body in BODIES.items()}


class Producer(BaseProducer):
    """Sends messages to actors."""

    def submit(self, task: str, number: int) -> Any:
        """Submit one task."""
        return _actors[task].send(number, PAYLOAD)

    def result(self, submitted: Any) -> Any:
        """Wait for the result."""
        return submitted.get_result(block=True, timeout=30_000)
