"""Lets objects start anew in a forked child, which must share no lock and no draw."""

from __future__ import annotations

import os
from functools import cache
from typing import Protocol
from weakref import WeakSet

__all__ = ("started_anew_in_children",)


class _StartsAnew(Protocol):
    def start_anew(self) -> None: ...


_living: WeakSet[_StartsAnew] = WeakSet()


def started_anew_in_children(what: _StartsAnew) -> None:
    """Call `start_anew()` in every child forked while the object lives."""
    _living.add(what)
    _hook_once()


@cache
def _hook_once() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_start_all_anew)


def _start_all_anew() -> None:
    for what in tuple(_living):
        what.start_anew()
