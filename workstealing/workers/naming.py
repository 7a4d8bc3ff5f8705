"""Names of workers: `{pool}.{index}`."""

from __future__ import annotations

import os
import re
import socket

from workstealing.errors import InvalidName
from workstealing.tasks.checking import checked_whole
from workstealing.tasks.naming import checked_queue_name

__all__ = ("default_pool", "new_incarnation", "worker_name")


def worker_name(pool: str, index: int) -> str:
    """Join and check a worker's name."""
    checked_queue_name(pool, "the name of a pool")
    if "#" in pool or ":" in pool:
        raise InvalidName(f"the name of a pool has no # and no :, unlike {pool!r}")
    return f"{pool}.{checked_whole(index, 'index', 0)}"


def default_pool() -> str:
    """Return a name that no other process has."""
    host = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname())[:40] or "host"
    return f"{host}-{os.getpid()}-{os.urandom(2).hex()}"


def new_incarnation() -> str:
    """Return what tells a worker from an earlier one of the same name."""
    return os.urandom(8).hex()
