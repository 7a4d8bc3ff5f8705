"""A producer for libraries with asyncio."""

from __future__ import annotations

import asyncio

from benchmarks.peers.producer import BaseProducer

__all__ = ("AsyncProducer",)

_AT_ONCE = 50


class AsyncProducer(BaseProducer):
    """The same for asyncio; without a call for many tasks, 50 are sent at once."""

    async def connect(self) -> None:
        """Do what must be done before the first task."""

    async def submit_many(self, task: str, numbers: range) -> None:
        """Submit many tasks the quickest way that there is."""
        for at in range(0, len(numbers), _AT_ONCE):
            some = numbers[at : at + _AT_ONCE]
            await asyncio.gather(*(self.submit(task, number) for number in some))

    async def pause(self, seconds: float) -> None:
        """Wait without work."""
        await asyncio.sleep(seconds)
