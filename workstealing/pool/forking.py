"""What pools do when the process forks or ends.

A child has none of its parent's threads, and locks that may be held for ever. The end
of the interpreter waits for work that was given, but not without limit.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
from functools import cache
from typing import Protocol
from weakref import WeakSet

__all__ = ("looked_after",)

logger = logging.getLogger(__name__)

EXIT_SECONDS = 5.0


class _Lives(Protocol):
    name: str

    def start_anew(self) -> None: ...
    def close(self) -> None: ...
    def join(self, seconds: float) -> bool: ...


_living: WeakSet[_Lives] = WeakSet()


def looked_after(what: _Lives) -> None:
    """Start it anew in each forked child, and end it at the interpreter's end."""
    _living.add(what)
    _hook_once()


@cache
def _hook_once() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_start_all_anew)
    atexit.register(_end_all)


def _start_all_anew() -> None:
    for what in tuple(_living):
        what.start_anew()


def _end_all() -> None:
    crews = tuple(_living)
    for crew in crews:
        crew.close()
    deadline = time.monotonic() + EXIT_SECONDS
    for crew in crews:
        if not crew.join(max(0.0, deadline - time.monotonic())):
            logger.warning(
                "%s had work left when the interpreter ended, and %s s did not do:"
                " stop() it before",
                crew.name,
                EXIT_SECONDS,
            )
