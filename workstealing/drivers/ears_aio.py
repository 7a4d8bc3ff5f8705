"""Hears what is told on channels under asyncio, one subscription per event loop.

A task of its own reads, and wakes whoever waits for what it reads.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

__all__ = ("AsyncEars",)


class AsyncEars:
    """The subscriptions of a driver."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._channels: dict[str, tuple[str, asyncio.Task[None]]] = {}
        self._waiting: dict[str, list[asyncio.Future[bytes]]] = {}

    async def listen(self, prefix: str) -> str:
        """Subscribe to a channel of our own; return its name."""
        found = self._channels.get(prefix)
        if found is not None and not found[1].done():
            return found[0]
        channel = prefix + os.urandom(8).hex()
        subscription = self._client.pubsub()
        await subscription.subscribe(channel)
        reader = asyncio.get_running_loop().create_task(self._read(subscription))
        self._channels[prefix] = (channel, reader)
        return channel

    async def hear(self, prefix: str, task_id: str, seconds: float) -> bytes | None:
        """Wait for the outcome of a task; what is told of others is past."""
        told: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(task_id, [])
        waiting.append(told)
        try:
            reader = self._channels[prefix][1]
            either: set[asyncio.Future[Any]] = {told, reader}
            await asyncio.wait(
                either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            return told.result() if told.done() else None
        finally:
            waiting.remove(told)
            if not waiting:
                self._waiting.pop(task_id, None)

    async def close(self) -> None:
        """End all subscriptions."""
        readers = [reader for _, reader in self._channels.values()]
        self._channels.clear()
        for reader in readers:
            reader.cancel()
        if readers:
            await asyncio.wait(readers)

    async def _read(self, subscription: Any) -> None:
        try:
            while True:
                told = await subscription.get_message(
                    ignore_subscribe_messages=True, timeout=None
                )
                if told is not None:
                    heard, _, outcome = _raw(told["data"]).partition(b" ")
                    for future in self._waiting.get(heard.decode(), ()):
                        if not future.done():
                            future.set_result(outcome)
        finally:
            await subscription.aclose()


def _raw(data: Any) -> bytes:
    return data if isinstance(data, bytes) else str(data).encode()
