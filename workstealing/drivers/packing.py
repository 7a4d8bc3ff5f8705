"""Commands as the bytes that a server reads, and the clients that can be sent such.

redis-py walks through the arguments of a command several times before it sends it, and
through layers for pooling, retries and metrics. That costs as much as half of an
exchange, and a third of what it takes to submit a thousand tasks. Clients whose
connections are of an ordinary kind, and that were told not to repeat commands, as ours
are, can be spoken to directly; for others, and for all that is rare, redis-py does as
well.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from hiredis import pack_command
from redis import asyncio as aio
from redis import connection as sync

from workstealing.queue.call import Argument, Call

__all__ = ("is_plain", "packed", "packed_call")

_KINDS = frozenset(
    {
        sync.Connection,
        sync.SSLConnection,
        sync.UnixDomainSocketConnection,
        aio.Connection,
        aio.SSLConnection,
        aio.UnixDomainSocketConnection,
    }
)


def is_plain(client: Any) -> bool:
    """Tell whether the connections of a client can be spoken to directly."""
    pool = getattr(client, "connection_pool", None)
    if pool is None or pool.connection_class not in _KINDS:
        return False
    # Before redis-py 5.3 a pool asks for the command that a connection is for.
    purpose = signature(pool.get_connection).parameters.get("command_name")
    retry = pool.connection_kwargs.get("retry")
    return (
        (purpose is None or purpose.default is not purpose.empty)
        and (retry is None or getattr(retry, "_retries", 1) == 0)
        # One that keeps replies, and one with a single connection, have more to do.
        and getattr(pool, "cache", None) is None
        and client.connection is None
    )


def packed(parts: tuple[Argument, ...]) -> list[bytes]:
    """Return a command as connections of redis-py take it."""
    pack: Any = pack_command  # its type says that a command has a single part
    return [pack(parts)]


def packed_call(call: Call[Any], *, in_full: bool = False) -> list[bytes]:
    """Return the call of a script by its hash, or with its text."""
    script, keys = call.script, call.keys
    name, which = ("EVAL", script.text) if in_full else ("EVALSHA", script.sha)
    return packed((name, which, len(keys), *keys, *call.arguments))
