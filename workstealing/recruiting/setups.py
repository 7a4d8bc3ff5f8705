"""Setup functions: each runs once per process, before the first lottery.

One that raises is called again after a pause. The jobs that it had installed by then
are uninstalled, so that the next try may install them under the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

__all__ = ("Setup", "Setups", "in_setup", "setting_up")

Setup = Callable[[Any], Any]

_running: ContextVar[bool] = ContextVar("workstealing_setup", default=False)


def in_setup() -> bool:
    """Tell whether the caller is a setup function."""
    return _running.get()


class Setups:
    """Which setup functions have run in this process, and which have not yet."""

    retry_seconds: ClassVar[float] = 10.0

    def __init__(self) -> None:
        self._all: list[Setup] = []
        self._pending: list[Setup] = []
        self._in_progress = False
        self.due_at: float | None = None
        self.failures = 0

    def add(self, function: Setup, now: float) -> None:
        """Add a function; it is due at once."""
        self._all.append(function)
        self._pending.append(function)
        self.due_at = now

    def begin(self, now: float) -> list[Setup]:
        """Return what must run now; until `end()`, no other caller gets anything."""
        if self._in_progress or self.due_at is None or now < self.due_at:
            return []
        self._in_progress = True
        return list(self._pending)

    def done(self, function: Setup) -> None:
        """Note that a function has run."""
        self._pending.remove(function)

    def end(self, now: float) -> None:
        """Finish what `begin` began; what is still pending is due after a pause."""
        self._in_progress = False
        self.due_at = now + self.retry_seconds if self._pending else None

    def reset(self, now: float) -> bool:
        """Make all due again, in a forked child; tell whether there are any."""
        self._pending = list(self._all)
        self._in_progress = False
        self.due_at = now if self._pending else None
        self.failures = 0
        return bool(self._pending)

    @property
    def in_progress(self) -> bool:
        """Whether a thread or task is running setup functions."""
        return self._in_progress


@contextmanager
def setting_up() -> Iterator[None]:
    """Mark what runs inside as part of a setup."""
    token = _running.set(True)
    try:
        yield
    finally:
        _running.reset(token)
