"""Hears what is told on channels, one subscription per thread.

A subscription is kept between two waits, since making one costs a connection. Its
channel is its own: only what this thread asked for is told there. A thread that has
waited lately is expected to wait again, and asks with the submission itself.
"""

from __future__ import annotations

import os
import time
from threading import local
from typing import Any
from weakref import WeakSet

from redis.client import PubSub

from workstealing.drivers.expecting import Expecting
from workstealing.queue.replies import raw

__all__ = ("Ears",)


class Ears:
    """The subscriptions of a driver."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._own = local()
        self._open: WeakSet[PubSub] = WeakSet()

    def listen(self, prefix: str) -> str:
        """Subscribe to a channel of this thread's own; return its name."""
        ear = self._ear(prefix)
        if ear is None:
            ear = _Ear(self._client.pubsub(), prefix + os.urandom(8).hex())
            ear.subscription.subscribe(ear.channel)
            self._open.add(ear.subscription)
            vars(self._own)[prefix] = ear
        ear.expecting.waits()
        return ear.channel

    def expect(self, prefix: str, task_id: str) -> str:
        """Be ready to hear of a task to come; nothing if this thread never waits."""
        ear = self._ear(prefix)
        return ear.channel if ear and ear.expecting.add(task_id) else ""

    def is_expected(self, prefix: str, task_id: str) -> bool:
        """Tell whether this thread will hear of a task without asking for it."""
        ear = self._ear(prefix)
        return ear is not None and task_id in ear.expecting

    def hear(self, prefix: str, task_id: str, seconds: float) -> bytes | None:
        """Wait for the outcome of a task; what nobody expects is past."""
        ear: _Ear = vars(self._own)[prefix]
        told_before = ear.expecting.take(task_id)
        if told_before is not None:
            return told_before
        end = time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0.0:
                told = ear.subscription.get_message(
                    ignore_subscribe_messages=True, timeout=left
                )
                if told is not None:
                    heard, _, outcome = raw(told["data"]).partition(b" ")
                    if heard == task_id.encode():
                        return outcome
                    ear.expecting.told(heard.decode(), outcome)
        except BaseException:
            # In doubt it is given up; the next wait makes another.
            del vars(self._own)[prefix]
            ear.subscription.close()
            raise
        return None

    def close(self) -> None:
        """End all subscriptions."""
        for subscription in tuple(self._open):
            subscription.close()
        self._own = local()

    def _ear(self, prefix: str) -> _Ear | None:
        ear: _Ear | None = vars(self._own).get(prefix)
        return ear if ear is not None and ear.pid == os.getpid() else None


class _Ear:
    """One subscription, of one thread."""

    __slots__ = ("channel", "expecting", "pid", "subscription")

    def __init__(self, subscription: PubSub, channel: str) -> None:
        self.subscription = subscription
        self.channel = channel
        self.pid = os.getpid()
        self.expecting = Expecting()
