"""Clients that ask Sentinels for the primary when they connect, and then follow it.

A client in use leaves the old primary as soon as a Sentinel announces another one:
it looks for news of the watch before each use, and closes idle connections then, those
in use when they are returned. A connection to a server that says it is a replica is
not used at all.

Closing such a client closes its connections to the Sentinels too; redis-py leaves
those open.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from threading import current_thread
from typing import Any, cast

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.sentinel import MasterNotFoundError as AsyncMasterNotFoundError
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.asyncio.sentinel import SentinelConnectionPool as AsyncSentinelPool
from redis.exceptions import AuthenticationError, ResponseError
from redis.exceptions import ConnectionError as NotConnected
from redis.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool

from workstealing.drivers.address import Address
from workstealing.drivers.cluster_client import TIMEOUTS
from workstealing.drivers.sentinel_connections import is_primary
from workstealing.drivers.sentinel_watch import News, SentinelWatch, shared_watch

__all__ = ("async_primary", "primary")

# A Sentinel has no databases, and a user and a password of its own.
_FOR_SENTINELS = ("socket_", "ssl", "retry", "client_name", "protocol")
_FOR_PRIMARY = ("username", "password", "ssl", "client_name")
_END_SECONDS = 0.05
_DEMOTED = "the server that the Sentinels name is a replica: a failover is under way"


def primary(address: Address, settings: dict[str, Any]) -> Redis:
    """Return a client of the primary that the Sentinels name."""
    sentinels: Any = _Sentinels(*_watched(address, settings))
    client = sentinels.master_for(
        address.service,
        connection_pool_class=_Pool,
        redis_connect_func=_greet,
        **settings,
    )
    return cast("Redis", client)


def async_primary(address: Address, settings: dict[str, Any]) -> AsyncRedis:
    """Return an asyncio client of the primary that the Sentinels name."""
    sentinels: Any = _AsyncSentinels(*_watched(address, settings))
    client = sentinels.master_for(
        address.service,
        connection_pool_class=_AsyncPool,
        redis_connect_func=_greet_async,
        **settings,
    )
    return cast("AsyncRedis", client)


def _watched(
    address: Address, settings: dict[str, Any]
) -> tuple[tuple[tuple[str, int], ...], dict[str, Any], SentinelWatch]:
    for_sentinels = _for_sentinels(settings, len(address.hosts))
    for_sentinels |= address.for_sentinels
    for_primary = {k: v for k, v in settings.items() if k.startswith(_FOR_PRIMARY)}
    watch = shared_watch(address.hosts, address.service, for_sentinels, for_primary)
    return address.hosts, for_sentinels, watch


def _for_sentinels(settings: dict[str, Any], number: int) -> dict[str, Any]:
    """Return their settings: they are asked in turn, within the time of one server."""
    kept = {k: v for k, v in settings.items() if k.startswith(_FOR_SENTINELS)}
    return kept | {k: kept[k] / number for k in TIMEOUTS if kept.get(k) is not None}


def _greet(connection: Any) -> None:
    connection.on_connect()
    connection.send_command("HELLO")
    # A user may not be allowed to ask; then its first write tells.
    with suppress(ResponseError):
        if not is_primary(connection.read_response()):
            connection.disconnect()
            raise NotConnected(_DEMOTED)


async def _greet_async(connection: Any) -> None:
    await connection.on_connect()
    await connection.send_command("HELLO")
    with suppress(ResponseError):
        if not is_primary(await connection.read_response()):
            await connection.disconnect(nowait=True)
            raise NotConnected(_DEMOTED)


class _Sentinels(Sentinel):
    def __init__(
        self, hosts: Any, settings: dict[str, Any], watch: SentinelWatch
    ) -> None:
        super().__init__(hosts, sentinel_kwargs=settings)  # type: ignore[no-untyped-call]
        self.watch = watch

    def discover_master(self, service_name: str) -> Any:
        # Sentinels go on to name the old one for a moment. The news may come meanwhile.
        try:
            known = self.watch.primary()
            named = known or super().discover_master(service_name)  # type: ignore[no-untyped-call]
        except MasterNotFoundError as error:
            raise _without_clients(error, service_name) from None
        return self.watch.primary() or named


class _AsyncSentinels(AsyncSentinel):
    def __init__(
        self, hosts: Any, settings: dict[str, Any], watch: SentinelWatch
    ) -> None:
        super().__init__(hosts, sentinel_kwargs=settings)  # type: ignore[no-untyped-call]
        self.watch = watch

    async def discover_master(self, service_name: str) -> Any:
        try:
            known = self.watch.primary()
            named = known or await super().discover_master(service_name)
        except AsyncMasterNotFoundError as error:
            raise _without_clients(error, service_name) from None
        return self.watch.primary() or named


def _without_clients(error: Exception, service: str) -> MasterNotFoundError:
    """Return the error without the clients of Sentinels, which redis-py names whole."""
    text = f"no Sentinel names a primary for the service {service!r}"
    if AuthenticationError.__name__ in str(error):
        text += (
            "; one asks for a user or a password: write ?sentinel_username=…"
            "&sentinel_password=… at the end of the URL"
        )
    return MasterNotFoundError(text)


class _Pool(SentinelConnectionPool):
    _heard: News | None = None

    def get_connection(self, *arguments: Any, **options: Any) -> Any:
        watch = self.sentinel_manager.watch
        if self._heard is not watch.news:
            self._hear(watch.join(self))
        return super().get_connection(*arguments, **options)

    def _hear(self, news: News) -> None:
        if news.primary != self.master_address:
            # Those in use are closed when they are returned.
            self.proxy.master_address = news.primary
            self.disconnect(inuse_connections=False)
        self._heard = news

    def disconnect(self, inuse_connections: bool = True) -> None:
        ending = self.sentinel_manager.watch.leave(self) if inuse_connections else None
        super().disconnect(inuse_connections)
        # Without those in use it is only the primary that has changed.
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                sentinel.close()
            # It may be collected as garbage, in that very thread.
            if ending is not None and ending is not current_thread():
                ending.join(_END_SECONDS)


class _AsyncPool(AsyncSentinelPool):
    _heard: News | None = None

    async def get_connection(self, *arguments: Any, **options: Any) -> Any:
        watch = self.sentinel_manager.watch
        if self._heard is not watch.news:
            await self._hear(watch.join(self))
        pool: Any = super()
        return await pool.get_connection(*arguments, **options)

    async def _hear(self, news: News) -> None:
        if news.primary != self.master_address:
            self.master_address = news.primary
            for connection in tuple(self._available_connections):
                # Without waiting: another coroutine could take it half closed.
                await connection.disconnect(nowait=True)
        self._heard = news

    async def release(self, connection: Any) -> None:
        # The pool without asyncio does so by itself.
        if self.master_address not in (None, (connection.host, connection.port)):
            await connection.disconnect(nowait=True)
        await super().release(connection)

    async def disconnect(self, inuse_connections: bool = True) -> None:
        # First, for what follows fails in another loop than the connections are of.
        ending = self.sentinel_manager.watch.leave(self) if inuse_connections else None
        await super().disconnect(inuse_connections)
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                await sentinel.aclose()
            end = time.monotonic() + _END_SECONDS
            while ending is not None and ending.is_alive() and time.monotonic() < end:
                await asyncio.sleep(0.001)
