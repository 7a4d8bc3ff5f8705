"""Leases: one recruit at a time, for as long as it may take, and never for ever.

A lease is a key with the token of its holder and a time to live. It saves work that
would be done twice; nothing relies on it for correctness, because a slow holder may
lose it without notice.

A flow that fails gives its lease back at once. One that is cut off (cancelled at its
deadline, or interrupted) can ask nothing any more, so the next flow of the same job in
this process gives it back. If there is none, the lease ends by itself.
"""

from __future__ import annotations

import secrets
from collections import deque
from contextlib import suppress
from typing import TypeVar

from workstealing.errors import RedisError
from workstealing.queue.call import Call, Flow, ask
from workstealing.queue.scripts import load_script

__all__ = ("Leases", "guarded", "new_token", "release")

T = TypeVar("T")

# Of more, the oldest are left to end by themselves.
_MOST = 100


def new_token() -> str:
    """Return a name for one holder that nobody else has."""
    return secrets.token_hex(8)


def release(*leases: tuple[str, str]) -> Call[int]:
    """Give leases, each with its token, back if they are still ours."""
    keys, tokens = zip(*leases, strict=True)
    return Call(load_script(__package__, "lease_release"), keys, tokens, int)


def guarded(lease: str, token: str, flow: Flow[T]) -> Flow[T]:
    """Run a flow that holds a lease; if it fails, others need not wait for its end."""
    try:
        return (yield from flow)
    except Exception:
        # What went wrong first is what the user should hear of.
        with suppress(RedisError):
            yield from ask(release((lease, token)))
        raise


class Leases:
    """What flows of one job, in this process, held when they were cut off."""

    def __init__(self) -> None:
        self._left: deque[tuple[str, str]] = deque(maxlen=_MOST)

    def noting(self, lease: str, token: str, flow: Flow[T]) -> Flow[T]:
        """Run a flow that takes a lease, and note the lease if it is cut off."""
        try:
            return (yield from flow)
        except GeneratorExit:
            self._left.append((lease, token))
            raise

    def give_back(self) -> Flow[None]:
        """Give back what was left; all leases of a job are in one hash slot."""
        if self._left:
            left, self._left = self._left, deque(maxlen=_MOST)
            with suppress(RedisError):
                yield from ask(release(*left))
