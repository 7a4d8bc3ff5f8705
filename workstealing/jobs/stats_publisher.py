"""Publishes what a recruiter counts to the ledger of the fleet, as side work.

A slice is one script, however many moments were offered since the last one. Counts that
cannot be written are lost: they are for people to look at, and no work depends on them.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.jobs.ledger_entries import StatsDelta, add_entries
from workstealing.jobs.redis_job import AsyncRedisJob, RedisJob
from workstealing.queue.steps import Flow, ask
from workstealing.recruiting.job import Duty
from workstealing.recruiting.stats import RecruiterStats

__all__ = ("AsyncStatsPublisher", "StatsPublisher")

Stats = Callable[[], RecruiterStats]

_LONGEST_HOST = 100


class StatsPublisher(RedisJob):
    """Adds what was counted since the last slice to the ledger; for a `Recruiter`."""

    def __init__(self, redis: Client | str | None, stats: Stats) -> None:
        super().__init__(redis)
        self._steps = _PublisherSteps(stats)

    def recruited(self) -> Duty:
        """Publish once."""
        return self._driver.run(self._steps.publish())


class AsyncStatsPublisher(AsyncRedisJob):
    """`StatsPublisher` for asyncio."""

    def __init__(self, redis: AsyncClient | str | None, stats: Stats) -> None:
        super().__init__(redis)
        self._steps = _PublisherSteps(stats)

    async def recruited(self) -> Duty:
        """Publish once."""
        return await self._driver.run(self._steps.publish())


class _PublisherSteps:
    """The steps of both classes: what they ask of Redis."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._delta = StatsDelta()
        self._host = socket.gethostname()[:_LONGEST_HOST].replace("\t", " ")

    def publish(self) -> Flow[Duty]:
        yield from ask(add_entries(self._delta.entries(self._stats(), self._host)))
        return Duty.RECRUITED
