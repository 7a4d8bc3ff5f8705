"""Names the server behind a client, for breakers and logs; never with a password."""

from __future__ import annotations

from typing import Any

__all__ = ("target_of",)


def target_of(client: Any) -> str:
    """Return a short name for what a sync or asyncio client is connected to.

    "host:port/db", "unix:/path/db", "sentinel:service/db" or "cluster:host:port".
    """
    if hasattr(client, "nodes_manager"):
        return f"cluster:{min(client.nodes_manager.startup_nodes)}"
    pool = client.connection_pool
    options = pool.connection_kwargs
    database = options.get("db") or 0
    if hasattr(pool, "sentinel_manager"):
        return f"sentinel:{pool.service_name}/{database}"
    if "path" in options:
        return f"unix:{options['path']}/{database}"
    host, port = options.get("host", "localhost"), options.get("port", 6379)
    return f"{host}:{port}/{database}"
