"""Leases: one recruit at a time, for as long as it may take, and never for ever.

A lease is a key with the token of its holder and a time to live. It saves work that
would be done twice; nothing relies on it for correctness, because a slow holder may
lose it without notice.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TypeVar

from workstealing.errors import RedisError
from workstealing.queue.call import Call, Flow, ask
from workstealing.queue.scripts import load_script

__all__ = ("guarded", "new_token", "release")

T = TypeVar("T")


def new_token() -> str:
    """Return a name for one holder that nobody else has."""
    return secrets.token_hex(8)


def release(lease: str, token: str) -> Call[bool]:
    """Give a lease back, if it is still ours."""
    return Call(load_script(__package__, "lease_release"), (lease,), (token,), bool)


def guarded(lease: str, token: str, flow: Flow[T]) -> Flow[T]:
    """Run a flow that holds a lease; if it fails, others need not wait for its end."""
    try:
        return (yield from flow)
    except Exception:
        # What went wrong first is what the user should hear of.
        with suppress(RedisError):
            yield from ask(release(lease, token))
        raise
