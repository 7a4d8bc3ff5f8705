"""Receives published outcomes under asyncio, over one subscription per queue.

All coroutines of one event loop share it. An asyncio task reads messages and wakes the
coroutine that waits for each. If that task fails, all waiting coroutines get its error,
and the next one to subscribe starts another. After a wait, the next submissions ask for
their outcomes themselves, which saves a round trip.
"""

from __future__ import annotations

import asyncio
from typing import Any

from redis.asyncio import ConnectionPool
from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError as NotConnected

from workstealing.drivers.subscriptions import (
    NOT_SUBSCRIBED,
    ExpectedOutcomes,
    new_channel,
    published,
)
from workstealing.queue.steps import Subscription

__all__ = ("AsyncOutcomeSubscriptions",)

# Some releases of redis-py give up a read without a limit after `socket_timeout`.
_READ_SECONDS = 60.0


class AsyncOutcomeSubscriptions:
    """The subscriptions of a driver."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._open: dict[str, _LoopSubscription] = {}
        self.generation = 0
        """How often all subscriptions were ended by `hang_up`."""

    async def subscribe(self, prefix: str, task_id: str) -> Subscription:
        """Subscribe to the channel of this event loop, to wait for a task."""
        made = self._open.get(prefix)
        if made is None or made.reader.done():
            # Before anything is awaited, so that others find it.
            made = self._open[prefix] = _LoopSubscription(self._client, prefix)
        either: set[asyncio.Future[Any]] = {made.ready, made.reader}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        made.check()
        made.expected.note_wait()
        return Subscription(made.channel, task_id in made.expected)

    def expect(self, prefix: str, task_id: str) -> Subscription:
        """Expect the outcome of a task to come, if somebody has waited lately."""
        made = self._open.get(prefix)
        if made is None or made.reader.done() or not made.expected.add(task_id):
            return NOT_SUBSCRIBED
        return Subscription(made.channel, is_requested=True)

    async def wait(self, prefix: str, task_id: str, seconds: float) -> bytes | None:
        """Wait for an outcome; unexpected outcomes of other tasks are dropped."""
        return await self._open[prefix].wait(task_id, seconds)

    def hang_up(self, generation: int) -> None:
        """Make waiting coroutines subscribe again, unless requested meanwhile.

        Args:
            generation: what it was when the refused command was sent.
        """
        if generation == self.generation:
            self.generation = generation + 1
            for made in self._open.values():
                made.reader.cancel()

    async def close(self) -> None:
        """End all subscriptions."""
        readers = [made.reader for made in self._open.values()]
        self._open.clear()
        for reader in readers:
            reader.cancel()
        if readers:
            await asyncio.wait(readers)


class _LoopSubscription:
    """One subscription of an event loop, and the futures that wait for its messages."""

    def __init__(self, client: Any, prefix: str) -> None:
        loop = asyncio.get_running_loop()
        self.channel = new_channel(prefix)
        self.ready: asyncio.Future[None] = loop.create_future()
        self.reader = loop.create_task(self._read(client))
        # If it fails while nobody waits, asyncio must not warn about its error.
        self.reader.add_done_callback(lambda it: it.cancelled() or it.exception())
        self._waiting: dict[str, list[asyncio.Future[bytes]]] = {}
        self.expected = ExpectedOutcomes()

    def check(self) -> None:
        """Raise what ended the subscription, if it has ended."""
        if self.reader.done():
            error = None if self.reader.cancelled() else self.reader.exception()
            raise error or NotConnected("the subscription was closed")

    async def wait(self, task_id: str, seconds: float) -> bytes | None:
        early = self.expected.take(task_id)
        if early is not None:
            return early
        received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(task_id, [])
        waiting.append(received)
        either: set[asyncio.Future[Any]] = {received, self.reader}
        try:
            await asyncio.wait(
                either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.remove(received)
            if not waiting:
                self._waiting.pop(task_id, None)
        if received.done():
            return received.result()
        self.check()
        return None

    async def _read(self, client: Any) -> None:
        pubsub = await _new_pubsub(client, self.channel)
        try:
            await pubsub.subscribe(self.channel)
            self.ready.set_result(None)
            while True:
                message = await pubsub.get_message(
                    ignore_subscribe_messages=True, timeout=_READ_SECONDS
                )
                if message is not None:
                    data = published(pubsub, message)
                    ended, _, outcome = data.partition(b" ")
                    self._received(ended.decode(), outcome)
        finally:
            await pubsub.aclose()

    def _received(self, task_id: str, outcome: bytes) -> None:
        self.expected.keep(task_id, outcome)
        for future in self._waiting.get(task_id, ()):
            if not future.done():
                future.set_result(outcome)


async def _new_pubsub(client: Any, channel: str) -> Any:
    if hasattr(client, "pubsub"):
        return client.pubsub()
    # Before redis-py 8 an asyncio Cluster has none. All its nodes publish the same,
    # but the one with the queue is there whenever there is something to publish.
    await client.initialize()
    node = client.get_node_from_key(channel)
    pool = ConnectionPool(
        connection_class=node.connection_class, **node.connection_kwargs
    )
    return PubSub(pool)
