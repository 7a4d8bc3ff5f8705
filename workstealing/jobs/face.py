"""What the two faces of a ready-made job share: a driver, and a breaker's target.

A job's logic is a body that builds calls and flows. A face gives it a driver and has
one line per method, so that sync and asyncio cannot drift apart.
"""

from __future__ import annotations

from workstealing.drivers.aio import AsyncClient, AsyncDriver
from workstealing.drivers.connect import async_driver, driver
from workstealing.drivers.sync import Client, Driver
from workstealing.drivers.target import target_of
from workstealing.recruiting.job import Duty

__all__ = ("AsyncRedisJob", "RedisJob", "duty")


class RedisJob:
    """A job that works through a redis-py client, a URL, or the embedded server."""

    def __init__(self, redis: Client | str | None) -> None:
        self._driver: Driver = driver(redis)

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return target_of(self._driver.client)


class AsyncRedisJob:
    """The asyncio twin of `RedisJob`."""

    def __init__(self, redis: AsyncClient | str | None) -> None:
        self._driver: AsyncDriver = async_driver(redis)

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return target_of(self._driver.client)


def duty(done: int, most: int) -> Duty:
    """Judge a slice: a full batch means that there is probably more."""
    if done >= most:
        return Duty.MORE
    return Duty.RECRUITED if done else Duty.DISMISSED
