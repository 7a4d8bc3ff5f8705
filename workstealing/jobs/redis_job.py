"""What all ready-made jobs share: a driver, and the target of their breaker.

Each job has its logic once, in a private class of steps (`_VolatileHashSteps`) that
builds calls and flows and does no I/O. The sync and the asyncio class of the job run
these steps by their driver, one line per method, so that the two cannot drift apart.
"""

from __future__ import annotations

from workstealing.drivers.address import target_of
from workstealing.drivers.async_driver import AsyncClient, AsyncDriver
from workstealing.drivers.connect import async_driver, driver
from workstealing.drivers.sync_driver import Client, Driver, is_ours
from workstealing.recruiting.job import Duty

__all__ = ("AsyncRedisJob", "RedisJob", "duty_of")


class RedisJob:
    """A job that uses a redis-py client, a URL, or (None) the configured server."""

    def __init__(self, redis: Client | str | None) -> None:
        self._driver: Driver = driver(redis)
        self._is_client_ours = is_ours(redis)

    @property
    def target(self) -> str:
        """The name of the server; jobs of one server share a breaker."""
        return target_of(self._driver.client)

    def close(self) -> None:
        """Release its connections; it connects again if it is used afterwards.

        A client that was given stays open.
        """
        self._driver.close()
        if self._is_client_ours:
            self._driver.client.close()


class AsyncRedisJob:
    """`RedisJob` for asyncio."""

    def __init__(self, redis: AsyncClient | str | None) -> None:
        self._driver: AsyncDriver = async_driver(redis)
        self._is_client_ours = is_ours(redis)

    @property
    def target(self) -> str:
        """The name of the server; jobs of one server share a breaker."""
        return target_of(self._driver.client)

    async def close(self) -> None:
        """Release its connections; it connects again if it is used afterwards.

        A client that was given stays open.
        """
        await self._driver.close()
        if self._is_client_ours:
            await self._driver.client.aclose()


def duty_of(done: int, batch: int) -> Duty:
    """Return the duty of a slice: a full batch means that there is probably more."""
    if done >= batch:
        return Duty.MORE
    return Duty.RECRUITED if done else Duty.DISMISSED
