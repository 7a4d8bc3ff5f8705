"""Leases: one recruit at a time, for a limited time.

A lease is a key with the token of its holder and a time to live. It saves work that
would be done twice; nothing relies on it for correctness, because a slow holder may
lose it without notice.

A flow that fails releases its lease at once. A flow that is cancelled (at its deadline,
or by an interrupt) can send nothing any more, so the next flow of the same job in this
process releases the lease. If there is no next flow, the lease expires.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from workstealing.errors import RedisError
from workstealing.jobs.redis_job import call_script
from workstealing.queue.steps import Call, Flow, ask

__all__ = ("AbandonedLeases", "release_leases", "releasing_on_error")

T = TypeVar("T")

# Beyond these, the oldest are left to expire.
_MOST = 100


def release_leases(*leases: tuple[str, str]) -> Call[int]:
    """Release leases, each with its token, if they are still ours."""
    keys, tokens = zip(*leases, strict=True)
    return call_script("lease_release", {"leases": keys}, int, tokens=tokens)


def releasing_on_error(lease: str, token: str, flow: Flow[T]) -> Flow[T]:
    """Run a flow that holds a lease, and release the lease if it fails."""
    try:
        return (yield from flow)
    except Exception:
        # The user should learn of the first error, not of this one.
        with suppress(RedisError):
            yield from ask(release_leases((lease, token)))
        raise


class AbandonedLeases:
    """The leases that cancelled flows of one job held, in this process."""

    def __init__(self) -> None:
        self._abandoned: deque[tuple[str, str]] = deque(maxlen=_MOST)

    def watching(self, lease: str, work: Callable[[str], Flow[T]]) -> Flow[T]:
        """Run a flow that takes a lease, and remember the lease if it is cancelled.

        *work* is called with a token, by which it is known as the holder.
        """
        token = secrets.token_hex(8)
        try:
            return (yield from work(token))
        except GeneratorExit:
            self._abandoned.append((lease, token))
            raise

    def release_all(self) -> Flow[None]:
        """Release them; all leases of a job are in one hash slot."""
        if self._abandoned:
            abandoned, self._abandoned = self._abandoned, deque(maxlen=_MOST)
            with suppress(RedisError):
                yield from ask(release_leases(*abandoned))
