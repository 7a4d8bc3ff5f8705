"""Clients that ask Sentinels for the primary: when they connect, and once a second.

In a planned failover the old primary takes writes until a Sentinel demotes it, some ten
seconds after the new one was named; all of them are lost. So a client in use asks again
beside its work, which never waits for that, and leaves connections to the old primary.
A connection to a server that says it is a replica is not used at all.

Closing such a client closes its connections to the Sentinels too; redis-py leaves
those open.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, cast

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.asyncio.sentinel import SentinelConnectionPool as AsyncSentinelPool
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import ResponseError
from redis.sentinel import Sentinel, SentinelConnectionPool

from workstealing.drivers.address import Address
from workstealing.drivers.cluster_client import TIMEOUTS
from workstealing.drivers.translate import CLIENT_ERRORS

__all__ = ("async_primary", "primary")

# A Sentinel has no databases, and users and passwords of its own.
_FOR_SENTINELS = ("socket_", "ssl", "retry", "client_name", "protocol")
_ASK_SECONDS = 1.0
_PRIMARY = (b"master", "master")
_DEMOTED = "the Sentinels name a server that is a replica, in the midst of a failover"


def primary(address: Address, settings: dict[str, Any]) -> Redis:
    """Return a client of the primary that the Sentinels name."""
    watch: Any = Sentinel
    for_sentinels = _for_sentinels(settings, len(address.hosts))
    sentinels = watch(address.hosts, sentinel_kwargs=for_sentinels)
    client = sentinels.master_for(
        address.service,
        connection_pool_class=_Pool,
        redis_connect_func=_greet,
        **settings,
    )
    return cast("Redis", client)


def async_primary(address: Address, settings: dict[str, Any]) -> AsyncRedis:
    """Return an asyncio client of the primary that the Sentinels name."""
    watch: Any = AsyncSentinel
    for_sentinels = _for_sentinels(settings, len(address.hosts))
    sentinels = watch(address.hosts, sentinel_kwargs=for_sentinels)
    client = sentinels.master_for(
        address.service,
        connection_pool_class=_AsyncPool,
        redis_connect_func=_greet_async,
        **settings,
    )
    return cast("AsyncRedis", client)


def _for_sentinels(settings: dict[str, Any], number: int) -> dict[str, Any]:
    """Return their settings: they are asked in turn, within the time of one server."""
    kept = {k: v for k, v in settings.items() if k.startswith(_FOR_SENTINELS)}
    return kept | {k: kept[k] / number for k in TIMEOUTS if kept.get(k) is not None}


def _greet(connection: Any) -> None:
    connection.on_connect()
    connection.send_command("ROLE")
    # A user may not be allowed to ask; then its first write tells.
    with suppress(ResponseError):
        role = connection.read_response()[0]
        if role not in _PRIMARY:
            connection.disconnect()
            raise NotConnected(_DEMOTED)


async def _greet_async(connection: Any) -> None:
    await connection.on_connect()
    await connection.send_command("ROLE")
    with suppress(ResponseError):
        role = (await connection.read_response())[0]
        if role not in _PRIMARY:
            await connection.disconnect(nowait=True)
            raise NotConnected(_DEMOTED)


class _Pool(SentinelConnectionPool):
    def reset(self) -> None:
        # Also after a fork, where nobody else would release the lock.
        self._asking = Lock()
        self._asked_at = time.monotonic()
        super().reset()  # type: ignore[no-untyped-call]

    def get_connection(self, *arguments: Any, **options: Any) -> Any:
        now = time.monotonic()
        if now - self._asked_at >= _ASK_SECONDS:
            self._asked_at = now
            # An interpreter that ends starts no threads.
            with suppress(RuntimeError):
                Thread(
                    target=self._ask, name="workstealing-sentinel", daemon=True
                ).start()
        return super().get_connection(*arguments, **options)

    def _ask(self) -> None:
        asking = self._asking
        if not asking.acquire(blocking=False):
            return
        try:
            # If it is another one, connections to the old one are closed: idle ones at
            # once, those in use when they are returned.
            with suppress(*CLIENT_ERRORS):
                cast("Any", self).get_master_address()
        finally:
            asking.release()

    def disconnect(self, inuse_connections: bool = True) -> None:
        super().disconnect(inuse_connections)
        # Without those in use it is only the primary that has changed.
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                sentinel.close()


class _AsyncPool(AsyncSentinelPool):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)  # type: ignore[no-untyped-call]
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = time.monotonic()

    async def get_connection(self, *arguments: Any, **options: Any) -> Any:
        now = time.monotonic()
        if now - self._asked_at >= _ASK_SECONDS:
            self._asked_at = now
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._ask())
        pool: Any = super()
        return await pool.get_connection(*arguments, **options)

    async def release(self, connection: Any) -> None:
        # The pool without asyncio does so by itself.
        if self.master_address not in (None, (connection.host, connection.port)):
            await connection.disconnect(nowait=True)
        await super().release(connection)

    async def _ask(self) -> None:
        with suppress(*CLIENT_ERRORS):
            await cast("Any", self).get_master_address()

    async def disconnect(self, inuse_connections: bool = True) -> None:
        if inuse_connections and self._asking is not None:
            self._asking.cancel()
        await super().disconnect(inuse_connections)
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                await sentinel.aclose()
