"""The clients of a Cluster that `connect()` builds, where redis-py's are not enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import RLock, get_ident
from typing import Any

from redis import RedisCluster
from redis._parsers import AsyncCommandsParser
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.cluster import ClusterNode
from redis.exceptions import (
    ClusterDownError,
    RedisClusterException,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import TimeoutError as TimedOut

from workstealing._forking import reset_in_children

__all__ = (
    "TIMEOUTS",
    "LazyCluster",
    "TolerantAsyncCluster",
    "knows_nodes",
    "owners_of",
)

TIMEOUTS = ("socket_timeout", "socket_connect_timeout")
"""What redis-py calls the seconds that a connection waits."""


def knows_nodes(client: Any) -> bool:
    """Return whether a Cluster client has discovered its nodes."""
    if isinstance(client, LazyCluster):
        return client.is_open
    if isinstance(client, AsyncRedisCluster):
        # After a failure it discovers them anew, but still knows the former ones.
        return bool(client.nodes_manager.nodes_cache)
    return isinstance(client, RedisCluster)


def owners_of(client: Any, keys: Sequence[str]) -> list[str]:
    """Return the primary of each key as the client last heard; "" if it has none."""
    slots = client.nodes_manager.slots_cache
    known = (slots.get(client.keyslot(key)) for key in keys)
    return [nodes[0].name if nodes else "" for nodes in known]


class LazyCluster(RedisCluster):
    """Asks for the nodes when they are needed, and lets commands fail at once.

    redis-py would ask in the constructor, and raise there if nobody answers; and it
    would sleep for up to half a second where a command fails. The asyncio client sleeps
    too, but its callers can be cancelled. It would also wait for each node in turn that
    hangs: here they are asked within the time of one. Threads that need the nodes at
    the same time wait for one attempt to get them, and share its failure.
    """

    connection_pool = None
    """It has none, which must be known before it is open."""

    def __init__(
        self, hosts: Sequence[tuple[str, int]], settings: dict[str, Any]
    ) -> None:
        self.target = f"cluster:{min(f'{host}:{port}' for host, port in hosts)}"
        self._hosts = hosts
        self.settings = settings
        self.is_open = False
        self._failure: RedisClusterException | None = None
        self._start_over()
        reset_in_children(self, LazyCluster._start_over)

    def _start_over(self) -> None:
        # When the parent forked, another thread of it may have been opening the client.
        self._opening = RLock()
        self._opener: int | None = None

    def open(self) -> None:
        """Ask for the nodes and commands, unless it has been done."""
        before = self._failure
        with self._opening:
            if self.is_open:
                return
            if self._failure is not None and self._failure is not before:
                # Another thread has just tried. One after the other, each would wait
                # for its own attempt and for those of all threads before it.
                raise RedisClusterException(*self._failure.args)
            node: Any = ClusterNode
            hurried = {k: v / len(self._hosts) for k, v in self._timeouts().items()}
            self._opener = get_ident()
            try:
                super().__init__(
                    startup_nodes=[node(*host) for host in self._hosts],
                    **self.settings | hurried,
                )
                self._allow_full_time()
                self.is_open = True
            except RedisClusterException as error:
                # A copy, since the error itself refers to all frames that it passed.
                self._failure = RedisClusterException(*error.args)
                raise
            finally:
                self._opener = None
                if not self.is_open and "nodes_manager" in vars(self):
                    vars(self).pop("nodes_manager").close()

    def _timeouts(self) -> dict[str, float]:
        return {k: self.settings[k] for k in TIMEOUTS if self.settings.get(k)}

    def _allow_full_time(self) -> None:
        """Give each command the whole timeout, now that a node answers."""
        manager: Any = self.nodes_manager
        full = self._timeouts()
        manager.connection_kwargs.update(full)
        for node in (*manager.startup_nodes.values(), *manager.nodes_cache.values()):
            if node.redis_connection is not None:
                pool = node.redis_connection.connection_pool
                pool.connection_kwargs.update(full)
                # A connection keeps the time that it was opened with.
                pool.disconnect(inuse_connections=False)

    def close(self) -> None:
        """Close all connections, if there are any."""
        if "nodes_manager" in vars(self):
            super().close()

    def __getattr__(self, name: str) -> Any:
        # All that redis-py keeps of a Cluster is missing until it is open; what is
        # missing in its own constructor, or afterwards, is missing indeed.
        if self._opener != get_ident():
            self.open()
        return object.__getattribute__(self, name)

    def command(self, **options: Any) -> Any:
        """Return what servers know of commands, from the first node that answers.

        redis-py asks for it before a Cluster is open, and one node only: with that one
        down, the others could not be used.
        """
        primaries: Any = super().get_primaries
        *others, last = primaries()
        for node in others:
            with suppress(NotConnected, TimedOut):
                return self.get_redis_connection(node).command(**options)
        return self.get_redis_connection(last).command(**options)

    def get_redis_connection(self, node: Any) -> Any:
        """Return the client of a node."""
        client: Any = super().get_redis_connection(node)
        if "parse_response" not in vars(client):
            client.parse_response = partial(_parse_at_once, client.parse_response)
        return client


def _parse_at_once(parse: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return parse(*arguments, **options)
    except TryAgainError as error:
        raise ResponseError(f"TRYAGAIN {error}") from error
    except ClusterDownError as error:
        raise ResponseError(f"CLUSTERDOWN {error}") from error


class TolerantAsyncCluster(AsyncRedisCluster):
    """Opens though a node is down, and leaves no connection open when it is closed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands_parser = _CommandsOfAnyNode(self)

    async def aclose(self) -> None:
        """Close all connections, also after a failure: redis-py then forgets to."""
        await super().aclose()
        await self.nodes_manager.aclose()
        await self.nodes_manager.aclose("startup_nodes")


class _CommandsOfAnyNode(AsyncCommandsParser):
    """Learns the commands of servers from the first node that answers."""

    __slots__ = ("_cluster",)

    def __init__(self, cluster: AsyncRedisCluster) -> None:
        super().__init__()
        self._cluster = cluster

    async def initialize(self, node: Any = None) -> None:  # noqa: ARG002 - any will do
        *others, last = self._cluster.get_primaries()
        for one in others:
            with suppress(NotConnected, TimedOut):
                await super().initialize(one)
                return
        await super().initialize(last)
