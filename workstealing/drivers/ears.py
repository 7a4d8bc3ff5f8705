"""Hears what is told on channels, one subscription per thread.

A subscription is kept between two waits, since making one costs a connection. Its
channel is its own: only what this thread asked for is told there.
"""

from __future__ import annotations

import os
import time
from threading import local
from typing import Any
from weakref import WeakSet

from redis.client import PubSub

__all__ = ("Ears",)


class Ears:
    """The subscriptions of a driver."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._own = local()
        self._open: WeakSet[PubSub] = WeakSet()

    def listen(self, prefix: str) -> str:
        """Subscribe to a channel of this thread's own; return its name."""
        ears: dict[str, tuple[str, PubSub, int]] = vars(self._own)
        found = ears.get(prefix)
        if found is not None and found[2] == os.getpid():
            return found[0]
        channel = prefix + os.urandom(8).hex()
        subscription: PubSub = self._client.pubsub()
        subscription.subscribe(channel)
        self._open.add(subscription)
        ears[prefix] = (channel, subscription, os.getpid())
        return channel

    def hear(self, prefix: str, task_id: str, seconds: float) -> bytes | None:
        """Wait for the outcome of a task; what is told of others is past."""
        _, subscription, _ = vars(self._own)[prefix]
        end = time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0.0:
                told = subscription.get_message(
                    ignore_subscribe_messages=True, timeout=left
                )
                if told is not None:
                    heard, _, outcome = _raw(told["data"]).partition(b" ")
                    if heard == task_id.encode():
                        return outcome
        except BaseException:
            # In doubt it is given up; the next wait makes another.
            del vars(self._own)[prefix]
            subscription.close()
            raise
        return None

    def close(self) -> None:
        """End all subscriptions."""
        for subscription in tuple(self._open):
            subscription.close()
        self._own = local()


def _raw(data: Any) -> bytes:
    return data if isinstance(data, bytes) else str(data).encode()
