"""Hears what is told on channels under asyncio, one subscription for all who wait.

A task of its own reads, and wakes whoever waits for what it reads. When it ends, all
who wait learn why, and the next to listen makes another. Where somebody has waited
lately the next one is expected to wait too, and asks with the submission itself.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from redis.asyncio import ConnectionPool
from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError as NotConnected

from workstealing.drivers.expecting import Expecting
from workstealing.queue.replies import raw

__all__ = ("AsyncEars",)

# Some releases of redis-py give up a read without a limit after `socket_timeout`.
_READ_SECONDS = 60.0


class AsyncEars:
    """The subscriptions of a driver."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._open: dict[str, _Ear] = {}

    async def listen(self, prefix: str) -> str:
        """Subscribe to a channel of our own; return its name."""
        ear = self._open.get(prefix)
        if ear is None or ear.reader.done():
            # Before anything is awaited, so that others find it.
            ear = self._open[prefix] = _Ear(self._client, prefix)
        either: set[asyncio.Future[Any]] = {ear.ready, ear.reader}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        ear.check()
        ear.expecting.waits()
        return ear.channel

    def expect(self, prefix: str, task_id: str) -> str:
        """Be ready to hear of a task to come; nothing if nobody ever waits here."""
        ear = self._open.get(prefix)
        if ear is None or ear.reader.done() or not ear.expecting.add(task_id):
            return ""
        return ear.channel

    def is_expected(self, prefix: str, task_id: str) -> bool:
        """Tell whether it will hear of a task without asking for it."""
        ear = self._open.get(prefix)
        return ear is not None and task_id in ear.expecting

    async def hear(self, prefix: str, task_id: str, seconds: float) -> bytes | None:
        """Wait for the outcome of a task; what nobody expects is past."""
        return await self._open[prefix].hear(task_id, seconds)

    async def close(self) -> None:
        """End all subscriptions."""
        readers = [ear.reader for ear in self._open.values()]
        self._open.clear()
        for reader in readers:
            reader.cancel()
        if readers:
            await asyncio.wait(readers)


class _Ear:
    """One subscription, and those who wait for what it hears."""

    def __init__(self, client: Any, prefix: str) -> None:
        loop = asyncio.get_running_loop()
        self.channel = prefix + os.urandom(8).hex()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.reader = loop.create_task(self._read(client))
        # Nobody may be waiting when it fails; that is nothing to warn of.
        self.reader.add_done_callback(lambda it: it.cancelled() or it.exception())
        self._waiting: dict[str, list[asyncio.Future[bytes]]] = {}
        self.expecting = Expecting()

    def check(self) -> None:
        """Raise what ended the subscription, if it has ended."""
        if self.reader.done():
            error = None if self.reader.cancelled() else self.reader.exception()
            raise error or NotConnected("the subscription was closed")

    async def hear(self, task_id: str, seconds: float) -> bytes | None:
        told_before = self.expecting.take(task_id)
        if told_before is not None:
            return told_before
        told: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(task_id, [])
        waiting.append(told)
        either: set[asyncio.Future[Any]] = {told, self.reader}
        try:
            await asyncio.wait(
                either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.remove(told)
            if not waiting:
                self._waiting.pop(task_id, None)
        if told.done():
            return told.result()
        self.check()
        return None

    async def _read(self, client: Any) -> None:
        subscription = await _subscription(client, self.channel)
        try:
            await subscription.subscribe(self.channel)
            self.ready.set_result(None)
            while True:
                told = await subscription.get_message(
                    ignore_subscribe_messages=True, timeout=_READ_SECONDS
                )
                if told is not None:
                    heard, _, outcome = raw(told["data"]).partition(b" ")
                    self.expecting.told(heard.decode(), outcome)
                    for future in self._waiting.get(heard.decode(), ()):
                        if not future.done():
                            future.set_result(outcome)
        finally:
            await subscription.aclose()


async def _subscription(client: Any, channel: str) -> Any:
    if hasattr(client, "pubsub"):
        return client.pubsub()
    # Before redis-py 8 an asyncio Cluster has none. All its nodes tell the same, but
    # the one with the queue is there whenever there is something to tell.
    await client.initialize()
    node = client.get_node_from_key(channel)
    pool = ConnectionPool(
        connection_class=node.connection_class, **node.connection_kwargs
    )
    return PubSub(pool)
