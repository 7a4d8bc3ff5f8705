"""Ends connections from outside, so that whoever hangs on one begins anew.

Only sockets are shut, which is safe in any thread: whoever reads or writes sees the end
of the connection, as if the server had hung up. `disconnect()` would take the socket
away under its hands, and redis-py then raises what is no error of a connection.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from redis.cluster import RedisCluster

from workstealing.drivers.sync import Client

__all__ = ("hang_up",)

# Where pools of redis-py keep their connections; which of them, depends on the kind.
_PLACES = ("_connections", "_in_use_connections", "_available_connections")


def hang_up(client: Client) -> None:
    """End every connection of a client, also those that somebody waits on."""
    for pool in _pools(client):
        for place in _PLACES:
            for connection in tuple(getattr(pool, place, None) or ()):
                held = getattr(connection, "_sock", None)
                if held is not None:
                    with suppress(OSError):
                        held.shutdown(socket.SHUT_RDWR)


def _pools(client: Client) -> Iterator[Any]:
    if not isinstance(client, RedisCluster):
        yield client.connection_pool
        return
    cluster: Any = client
    for node in cluster.get_nodes():
        if node.redis_connection is not None:
            yield node.redis_connection.connection_pool
