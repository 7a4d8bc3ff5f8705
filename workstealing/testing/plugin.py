"""pytest fixtures: `pytest_plugins = ["workstealing.testing.plugin"]`.

Servers live for a test run, clients and key prefixes for a test. If the machine lacks
something (a server binary, fakeredis), the test is skipped; if `CI` is set, it fails.

| fixture | what it is |
|---|---|
| `redis_server`, `redis_cluster`, `redis_sentinel` | a server, three nodes, a primary with Sentinel; with `.url` |
| `redis_client`, `async_redis_client` | redis-py clients of `redis_server`; replies are bytes |
| `cluster_client`, `async_cluster_client` | redis-py clients of `redis_cluster` |
| `memory_queue` | a `MemoryQueue` of its own for each test |
| `in_memory` | takes queues of a program into memory until the test ends; returns their `Memory` |
| `fake_redis`, `async_fake_redis` | an empty fakeredis with Lua |
| `key_prefix` | fresh for each test; keys that contain it are removed afterwards |
"""  # noqa: E501 - a table

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.cluster import ClusterNode as AsyncClusterNode
from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
from redis.cluster import ClusterNode, RedisCluster

from workstealing.drivers.embedded import server_binary
from workstealing.drivers.own_server import HOST, Server
from workstealing.errors import MissingExtra
from workstealing.testing.groups import ClusterOfThree, SentinelGroup

if TYPE_CHECKING:
    from workstealing.testing.memory_queue import Memory, MemoryQueue

__all__ = (
    "async_cluster_client",
    "async_fake_redis",
    "async_redis_client",
    "cluster_client",
    "fake_redis",
    "in_memory",
    "key_prefix",
    "memory_queue",
    "missing",
    "redis_client",
    "redis_cluster",
    "redis_sentinel",
    "redis_server",
)

_TIMEOUT = 10.0

Function = TypeVar("Function", bound=Callable[..., Any])


def _async_fixture(function: Function) -> Function:
    """Make a fixture of a coroutine, in any mode of pytest-asyncio."""
    # Without pytest-asyncio, another plugin (anyio) may run them.
    installed = find_spec("pytest_asyncio") is not None
    maker = import_module("pytest_asyncio") if installed else pytest
    return cast("Function", maker.fixture(function))


@pytest.fixture(scope="session")
def _running() -> list[Server]:
    """Servers of this run that may hold keys of a test."""
    return []


@pytest.fixture(scope="session")
def redis_server(_running: list[Server]) -> Iterator[Server]:
    """One server on a Unix socket."""
    _need_binary()
    with Server() as server:
        _running.append(server)
        yield server
        _running.remove(server)


@pytest.fixture(scope="session")
def redis_cluster(_running: list[Server]) -> Iterator[ClusterOfThree]:
    """A Cluster of three primaries."""
    _need_binary()
    with ClusterOfThree() as cluster:
        _running.extend(cluster.nodes)
        yield cluster
        for node in cluster.nodes:
            _running.remove(node)


@pytest.fixture(scope="session")
def redis_sentinel(_running: list[Server]) -> Iterator[SentinelGroup]:
    """A primary with a replica and a Sentinel; leave its roles as they are."""
    _need_binary()
    with SentinelGroup() as group:
        _running.append(group.primary)
        yield group
        _running.remove(group.primary)


@pytest.fixture
def redis_client(redis_server: Server) -> Iterator[Redis]:
    """A client of `redis_server`."""
    with Redis.from_url(redis_server.url, socket_timeout=_TIMEOUT) as client:
        yield client


@_async_fixture
async def async_redis_client(redis_server: Server) -> AsyncIterator[AsyncRedis]:
    """An asyncio client of `redis_server`."""
    client = AsyncRedis.from_url(redis_server.url, socket_timeout=_TIMEOUT)
    yield client
    await client.aclose()


@pytest.fixture
def cluster_client(redis_cluster: ClusterOfThree) -> Iterator[RedisCluster]:
    """A client of `redis_cluster`."""
    node_at: Any = ClusterNode
    nodes = [node_at(HOST, node.port) for node in redis_cluster.nodes]
    with RedisCluster(startup_nodes=nodes, socket_timeout=_TIMEOUT) as client:
        yield client


@_async_fixture
async def async_cluster_client(
    redis_cluster: ClusterOfThree,
) -> AsyncIterator[AsyncRedisCluster]:
    """An asyncio client of `redis_cluster`."""
    nodes = [AsyncClusterNode(HOST, node.port) for node in redis_cluster.nodes]
    client = AsyncRedisCluster(startup_nodes=nodes, socket_timeout=_TIMEOUT)
    yield client
    await client.aclose()


@pytest.fixture
def memory_queue() -> Iterator[MemoryQueue]:
    """A queue in memory that no other test has."""
    _need_fakeredis()
    from workstealing.testing import MemoryQueue

    queue = MemoryQueue()
    yield queue
    queue.close()


@pytest.fixture
def in_memory() -> Iterator[Callable[..., Memory]]:
    """Take queues into memory until the test ends: `memory = in_memory(app.queue)`."""
    _need_fakeredis()
    from workstealing.testing import in_memory

    with ExitStack() as stack:
        yield lambda *queues, **options: stack.enter_context(
            in_memory(*queues, **options)
        )


@pytest.fixture
def fake_redis() -> Iterator[Redis]:
    """An empty fakeredis that runs Lua."""
    _need_fakeredis()
    from fakeredis import FakeRedis, FakeServer

    with FakeRedis(server=FakeServer()) as client:
        yield client


@_async_fixture
async def async_fake_redis() -> AsyncIterator[AsyncRedis]:
    """An empty asyncio fakeredis that runs Lua."""
    _need_fakeredis()
    from fakeredis import FakeAsyncRedis, FakeServer

    client = FakeAsyncRedis(server=FakeServer())
    yield client
    await client.aclose()


@pytest.fixture
def key_prefix(_running: list[Server]) -> Iterator[str]:
    """A prefix that no other test uses."""
    prefix = f"t-{secrets.token_hex(6)}"
    yield prefix
    for server in _running:
        # Around the prefix too: a job puts keys of one slot in {braces}.
        with Redis.from_url(server.url, socket_timeout=_TIMEOUT) as client:
            for key in client.scan_iter(match=f"*{prefix}*", count=1000):
                client.unlink(key)


def _need_binary() -> None:
    try:
        server_binary()
    except MissingExtra as error:
        missing(str(error))


def _need_fakeredis() -> None:
    if find_spec("fakeredis") is None or find_spec("lupa") is None:
        missing(str(MissingExtra("fakeredis with Lua", "testing")))


def missing(what: str) -> NoReturn:
    """Skip a test because the machine lacks something; if `CI` is set, fail it."""
    verdict: Callable[[str], NoReturn] = pytest.skip
    if os.environ.get("CI"):
        verdict = pytest.fail
    verdict(what)
