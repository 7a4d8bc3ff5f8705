"""What becomes of our objects when the process forks, or the interpreter ends.

A forked child has none of its parent's threads, and may have locks that nobody will
ever release: objects that hold either start over there. The end of the interpreter
waits for work that was already given to a pool, but not without limit.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakSet

__all__ = ("end_at_exit", "reset_in_children")

logger = logging.getLogger(__name__)

EXIT_SECONDS = 5.0

T = TypeVar("T")


class _Ending(Protocol):
    name: str

    def close(self) -> None: ...
    def join(self, seconds: float) -> bool: ...


_resets: WeakKeyDictionary[Any, Callable[[Any], None]] = WeakKeyDictionary()
_ending: WeakSet[_Ending] = WeakSet()


def reset_in_children(what: T, reset: Callable[[T], None]) -> None:
    """Call `reset(what)` in every child that is forked while *what* lives."""
    _resets[what] = reset
    _hook_fork_once()


def end_at_exit(what: _Ending) -> None:
    """Close *what* when the interpreter ends, and wait for it a few seconds."""
    _ending.add(what)
    _hook_exit_once()


@cache
def _hook_fork_once() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_reset_all)


@cache
def _hook_exit_once() -> None:
    atexit.register(_end_all)


def _reset_all() -> None:
    for what, reset in tuple(_resets.items()):
        reset(what)


def _end_all() -> None:
    pools = tuple(_ending)
    for pool in pools:
        pool.close()
    deadline = time.monotonic() + EXIT_SECONDS
    for pool in pools:
        if not pool.join(max(0.0, deadline - time.monotonic())):
            logger.warning(
                "%s still had work after %s s when the interpreter ended;"
                " call stop() before",
                pool.name,
                EXIT_SECONDS,
            )
