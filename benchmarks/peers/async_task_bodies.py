"""The same tasks for asyncio.

They have a file of their own, so that a worker without asyncio need not import it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from benchmarks.peers.task_bodies import BODIES, NAP, done, uneven_seconds

__all__ = ("ASYNC_BODIES",)


async def async_noop(number: int, text: str) -> int:
    """Do nothing."""
    return BODIES["noop"](number, text)


async def async_nap(number: int, text: str) -> int:  # noqa: ARG001
    """Sleep for 5 ms."""
    began_at = time.monotonic()
    await asyncio.sleep(NAP)
    return done(number, began_at)


async def async_uneven(number: int, text: str) -> int:  # noqa: ARG001
    """Sleep for 1 ms, one time of twenty for 200 ms."""
    began_at = time.monotonic()
    await asyncio.sleep(uneven_seconds(number))
    return done(number, began_at)


async def async_burn(number: int, text: str) -> int:
    """Compute for 2 ms; nothing else runs in this process meanwhile."""
    return BODIES["burn"](number, text)


ASYNC_BODIES: dict[str, Callable[[int, str], Awaitable[int]]] = {
    "noop": async_noop,
    "nap": async_nap,
    "uneven": async_uneven,
    "burn": async_burn,
}
