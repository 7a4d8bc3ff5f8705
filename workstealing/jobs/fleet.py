"""Turns that all processes share, in Redis: `install(job, every=30, of=Fleet(…))`."""

from __future__ import annotations

from workstealing._checks import checked_queue_name
from workstealing.drivers.address import target_of
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.connect import async_driver_source, check_redis, driver_source
from workstealing.drivers.sync_driver import Client
from workstealing.jobs.redis_job import call_script
from workstealing.queue.steps import Call

__all__ = ("AsyncFleet", "Fleet")


class Fleet:
    """All processes that share a Redis server, and a name for them.

    Args:
        redis: a client, a URL, or None for the configured server.
        name: tells fleets apart that have jobs of the same names on one server.
    """

    def __init__(self, redis: Client | str | None = None, name: str = "fleet") -> None:
        check_redis(redis)
        self._source = driver_source(redis)
        self._name = checked_queue_name(name, "the name of a fleet")
        self.target = ""
        """The name of the server, as jobs have it; known from the first turn on."""

    def take(self, job: str, seconds: float) -> float:
        """Take the turn of a job; 0.0 if it is ours, else seconds until it is free."""
        driver = self._source.driver
        self.target = target_of(driver.client)
        return driver.call(_turn(self._name, job, seconds))

    def close(self) -> None:
        """Release its connections; a client that was given stays open."""
        self._source.close()


class AsyncFleet:
    """A `Fleet` for jobs that are coroutine functions."""

    def __init__(
        self, redis: AsyncClient | str | None = None, name: str = "fleet"
    ) -> None:
        check_redis(redis)
        self._source = async_driver_source(redis)
        self._name = checked_queue_name(name, "the name of a fleet")
        self.target = ""
        """The name of the server, as jobs have it; known from the first turn on."""

    async def take(self, job: str, seconds: float) -> float:
        """Take the turn of a job; 0.0 if it is ours, else seconds until it is free."""
        driver = self._source.driver
        self.target = target_of(driver.client)
        return await driver.call(_turn(self._name, job, seconds))

    async def close(self) -> None:
        """Release its connections; a client that was given stays open."""
        await self._source.close()


def _turn(fleet: str, job: str, seconds: float) -> Call[float]:
    return call_script(
        "fleet_turn",
        {"turn": f"ws:{{{fleet}}}:turn:{job}"},
        lambda left: int(left) / 1000,
        ms=max(1, round(seconds * 1000)),
    )
