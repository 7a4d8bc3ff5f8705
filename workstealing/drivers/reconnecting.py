"""Has a client of redis-py use new connections, whichever way it keeps the old ones.

`hang_up` is for a failover: what is sent next goes over a new connection.
`shut_down_sockets` ends what its threads wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from redis import Redis
from redis import asyncio as aio
from redis import connection as sync
from redis.cluster import RedisCluster

from workstealing.drivers.connection import shut_down

__all__ = ("hang_up", "hang_up_async", "shut_down_sockets")


def hang_up(client: Redis | RedisCluster) -> None:
    """Close the idle connections of a client, and those in use when they are returned.

    Before redis-py 7 those in use are returned as they are, and fail once more.
    """
    for pool in _pools(client):
        _mark(_connections(pool))
        if isinstance(pool, sync.BlockingConnectionPool):
            # Its own way would close those in use too, before redis-py 6.
            with pool.pool.mutex:
                for connection in filter(None, pool.pool.queue):
                    connection.disconnect()
        else:
            pool.disconnect(inuse_connections=False)
    single: Any = getattr(client, "connection", None)
    if single is not None:
        single.disconnect()


async def hang_up_async(client: Any) -> None:
    """Close the idle connections of an asyncio client."""
    idle: list[Any] = []
    if isinstance(client, aio.RedisCluster):
        for node in client.get_nodes():
            _mark(_connections(node))
            idle += getattr(node, "_free", ())
    else:
        _mark(_connections(client.connection_pool))
        idle += getattr(client.connection_pool, "_available_connections", ())
        idle += filter(None, (client.connection,))
    for connection in idle:
        # Without waiting: another coroutine could take it while it is half closed.
        await connection.disconnect(nowait=True)


def _mark(connections: Iterable[Any]) -> None:
    for connection in connections:
        if hasattr(connection, "mark_for_reconnect"):
            connection.mark_for_reconnect()


# Where pools of redis-py keep their connections; which of them, depends on the kind.
_PLACES = ("_connections", "_in_use_connections", "_available_connections")


def shut_down_sockets(client: Redis | RedisCluster) -> None:
    """Shut down every socket of a client, also those that some thread reads from."""
    for pool in _pools(client):
        for connection in _connections(pool):
            shut_down(connection)


def _connections(pool: Any) -> Iterator[Any]:
    for place in _PLACES:
        yield from tuple(getattr(pool, place, None) or ())


def _pools(client: Redis | RedisCluster) -> Iterator[Any]:
    if not isinstance(client, RedisCluster):
        yield client.connection_pool
        return
    cluster: Any = client
    for node in cluster.get_nodes():
        if node.redis_connection is not None:
            yield node.redis_connection.connection_pool
