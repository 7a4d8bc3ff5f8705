"""Turns redis-py's errors into ours, at this one boundary, keeping the cause."""

from __future__ import annotations

import re

from redis import exceptions

from workstealing.errors import (
    RedisError,
    RedisOutOfMemory,
    RedisReadOnly,
    RedisUnavailable,
    ServerTooOld,
    WrongType,
)
from workstealing.queue.scripts import Script

__all__ = ("CLIENT_ERRORS", "is_wrong_server", "timed_out", "translated")

# What redis-py raises; its Cluster client has errors outside of its own tree.
CLIENT_ERRORS = (exceptions.RedisError, exceptions.RedisClusterException, OSError)

# Connection errors in redis-py's tree, but waiting does not help.
_REFUSED = (exceptions.AuthenticationError, exceptions.AuthorizationError)

_UNAVAILABLE = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ClusterError,
    exceptions.TryAgainError,
    exceptions.SlotNotCoveredError,
    OSError,
)

# What a server puts before its message, also when a script met it.
_BY_WORD = {
    "READONLY": RedisReadOnly,
    "NOREPLICAS": RedisReadOnly,
    "MISCONF": RedisReadOnly,
    "OOM": RedisOutOfMemory,
    "WRONGTYPE": WrongType,
    "LOADING": RedisUnavailable,
    "BUSY": RedisUnavailable,
    "MASTERDOWN": RedisUnavailable,
    "CLUSTERDOWN": RedisUnavailable,
    "TRYAGAIN": RedisUnavailable,
    "UNBLOCKED": RedisUnavailable,
}
# Redis before 7 puts a script's error behind its own words, with or without a dash.
_WORD = re.compile(rf"(?:^|: -?)({'|'.join(_BY_WORD)}) ")

_WRONG_SERVER = (
    exceptions.ReadOnlyError,
    exceptions.BusyLoadingError,
    exceptions.MasterDownError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
)
_WRONG_SERVER_WORDS = frozenset(
    ("READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED")
)
# How redis-py puts READONLY where it had the address from a Sentinel.
_DEMOTED = "The previous master is now a slave"
_LINE = re.compile(r"user_script:(\d+)")
_UNKNOWN_COMMAND = re.compile(r"[Uu]nknown (?:Redis )?(?:sub)?command")
# What redis-py says of its own pool; before 8 it had no class for it.
_POOL_EXHAUSTED = ("Too many connections", "No connection available.")
_NO_CLUSTER = "Redis Cluster cannot be connected"


def translated(
    error: BaseException, script: Script | None = None, *, is_subscribing: bool = False
) -> RedisError:
    """Return our error for one of redis-py's; raise it `from` the original.

    If the server names a line of *script*, the message names the file. A full server
    may refuse subscriptions, as Redis 8 does: that becomes `RedisUnavailable`, so that
    those who wait for an outcome try again.
    """
    text = str(error) or type(error).__name__
    if script is not None:
        text = _LINE.sub(lambda line: script.source_of(int(line[1])), text)
    if isinstance(error, exceptions.ReadOnlyError):
        return RedisReadOnly(f"the server takes no writes: {text}")
    if isinstance(error, exceptions.OutOfMemoryError) and is_subscribing:
        return RedisUnavailable(f"the server is full and takes no subscription: {text}")
    if isinstance(error, exceptions.OutOfMemoryError):
        return RedisOutOfMemory(f"the server is out of memory: {text}")
    if isinstance(error, exceptions.MovedError) or text.startswith("MOVED "):
        return RedisError(f"the server is a Cluster: use redis+cluster://…: {text}")
    if isinstance(error, _REFUSED):
        return RedisError(f"the server refused the user or password: {text}")
    word = _WORD.search(text)
    if word:
        return _BY_WORD[word[1]](text)
    if _UNKNOWN_COMMAND.search(text):
        return ServerTooOld(
            "the server lacks a command: Redis >= 6.2 is needed, or the command was"
            f" renamed or forbidden there: {text}"
        )
    if text in _POOL_EXHAUSTED:
        return RedisUnavailable(
            "all connections of the client's pool are in use: give it more by"
            f" max_connections= ({text})"
        )
    if isinstance(error, _UNAVAILABLE) or text.startswith(_NO_CLUSTER):
        return RedisUnavailable(f"the server did not answer: {text}")
    return RedisError(text)


def timed_out(error: RedisUnavailable) -> bool:
    """Return whether a server was waited for until the time was up."""
    return isinstance(error.__cause__, (exceptions.TimeoutError, TimeoutError))


def is_wrong_server(error: BaseException) -> bool:
    """Return whether another server may be the one to ask, after a failover.

    The one that answered has refused the command, and has done nothing of it. It keeps
    its connections, so only a new one finds out who is at its address now.
    """
    if isinstance(error, _WRONG_SERVER):
        return True
    if not isinstance(error, exceptions.RedisError):
        return False
    text = str(error)
    word = _WORD.search(text)
    return word[1] in _WRONG_SERVER_WORDS if word else text == _DEMOTED
