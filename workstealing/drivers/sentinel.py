"""Clients that ask Sentinels for the primary each time they connect.

Closing such a client closes its connections to the Sentinels too; redis-py leaves
those open.
"""

from __future__ import annotations

from typing import Any, cast

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.asyncio.sentinel import SentinelConnectionPool as AsyncSentinelPool
from redis.sentinel import Sentinel, SentinelConnectionPool

from workstealing.drivers.address import Address

__all__ = ("async_primary", "primary")

# A Sentinel has no databases, and users and passwords of its own.
_FOR_SENTINELS = ("socket_", "ssl", "retry", "client_name", "protocol")


def primary(address: Address, settings: dict[str, Any]) -> Redis:
    """Return a client of the primary that the Sentinels name."""
    watch: Any = Sentinel
    sentinels = watch(address.hosts, sentinel_kwargs=_for_sentinels(settings))
    client = sentinels.master_for(
        address.service, connection_pool_class=_Pool, **settings
    )
    return cast("Redis", client)


def async_primary(address: Address, settings: dict[str, Any]) -> AsyncRedis:
    """Return an asyncio client of the primary that the Sentinels name."""
    watch: Any = AsyncSentinel
    sentinels = watch(address.hosts, sentinel_kwargs=_for_sentinels(settings))
    client = sentinels.master_for(
        address.service, connection_pool_class=_AsyncPool, **settings
    )
    return cast("AsyncRedis", client)


def _for_sentinels(settings: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in settings.items() if k.startswith(_FOR_SENTINELS)}


class _Pool(SentinelConnectionPool):
    def disconnect(self, inuse_connections: bool = True) -> None:
        super().disconnect(inuse_connections)
        # Without those in use it is only the primary that has changed.
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                sentinel.close()


class _AsyncPool(AsyncSentinelPool):
    async def disconnect(self, inuse_connections: bool = True) -> None:
        await super().disconnect(inuse_connections)
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                await sentinel.aclose()
