"""Turns redis-py's errors into ours, at this one boundary, keeping the cause."""

from __future__ import annotations

from redis import exceptions

from workstealing.errors import (
    RedisError,
    RedisOutOfMemory,
    RedisReadOnly,
    RedisUnavailable,
    ServerTooOld,
    WrongType,
)

__all__ = ("translated",)

_UNAVAILABLE = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.TryAgainError,
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
}


def translated(error: BaseException) -> RedisError:
    """Return our error for one of redis-py's; raise it `from` the original."""
    text = str(error)
    if isinstance(error, exceptions.ReadOnlyError):
        return RedisReadOnly(f"the server takes no writes: {text}")
    if isinstance(error, exceptions.OutOfMemoryError):
        return RedisOutOfMemory(f"the server is out of memory: {text}")
    for word, kind in _BY_WORD.items():
        if text.startswith(word) or f" {word} " in text:
            return kind(text)
    if "nknown command" in text or "nknown Redis command" in text:
        return ServerTooOld(f"the server lacks a command; Redis >= 6.2 needed: {text}")
    if isinstance(error, _UNAVAILABLE):
        return RedisUnavailable(f"the server did not answer: {text or type(error)}")
    return RedisError(text)
