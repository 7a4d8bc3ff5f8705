"""Ends connections from outside, so that whoever hangs on one begins anew."""

from __future__ import annotations

from collections.abc import Callable

from redis.cluster import RedisCluster

from workstealing.drivers.sync import Client

__all__ = ("hang_up",)


def hang_up(client: Client) -> None:
    """End every connection of a client, also those that somebody waits on."""
    if isinstance(client, RedisCluster):
        disconnect: Callable[[], None] = client.disconnect_connection_pools
        disconnect()
    else:
        client.connection_pool.disconnect()
