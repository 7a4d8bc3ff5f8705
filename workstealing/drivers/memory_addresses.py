"""Addresses of servers inside of this process: `memory://…`.

Whatever takes a URL takes one of these: a queue, its sync twin, an inspector, the
command line in the same process. Only `workstealing.testing` makes such servers.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakValueDictionary

from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.errors import ConfigurationError

__all__ = ("ServerInMemory", "announce", "is_in_memory", "server_in_memory")

_SCHEME = "memory://"


class ServerInMemory(Protocol):
    """What makes clients of a server that needs no network."""

    def client(self) -> Client:
        """Return a client for threads."""

    def async_client(self) -> AsyncClient:
        """Return a client for one event loop."""


# Servers are forgotten with the tests that made them.
_SERVERS: WeakValueDictionary[str, ServerInMemory] = WeakValueDictionary()


def announce(server: ServerInMemory) -> str:
    """Return a URL under which a server is found, as long as anybody holds it."""
    url = f"{_SCHEME}{os.urandom(4).hex()}"
    _SERVERS[url] = server
    return url


def server_in_memory(url: str | None) -> ServerInMemory | None:
    """Return the server of a URL; None if it is the URL of another kind of server."""
    if url is None or not is_in_memory(url):
        return None
    server = _SERVERS.get(url)
    if server is None:
        raise ConfigurationError(
            f"there is no server {url} in this process: it ended with its test, or"
            " belongs to another process; a test with several processes needs a"
            " real server"
        )
    return server


def is_in_memory(redis: object) -> bool:
    """Return whether what a user gave is the URL of a server that only we can reach."""
    return isinstance(redis, str) and redis.startswith(_SCHEME)
