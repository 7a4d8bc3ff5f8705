"""How long a client waits for a reply: what blocks must be shorter."""

from __future__ import annotations

from typing import Any

__all__ = ("patience_of",)


def patience_of(client: Any) -> float | None:
    """Return the seconds that a sync or asyncio client waits; None is for ever."""
    holder = getattr(client, "nodes_manager", None) or client.connection_pool
    seconds = holder.connection_kwargs.get("socket_timeout")
    return None if seconds is None else float(seconds)
