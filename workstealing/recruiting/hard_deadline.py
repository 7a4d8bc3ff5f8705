"""Interrupts a slice that goes on for much too long, in the thread of its host.

Only the job is ever interrupted, and only where no lock can be left behind: see
`workstealing._interrupt`. Once it has returned or raised, nothing arrives any more.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer
from typing import TypeVar

from workstealing._checks import checked_seconds, threads_are_greenlets
from workstealing._interrupt import Interruptible, can_interrupt, deliver_until_ended
from workstealing.errors import ConfigurationError, SliceOverdue

__all__ = ("HardDeadline",)

T = TypeVar("T")


class HardDeadline:
    """Calls functions that are interrupted by `SliceOverdue` after some seconds.

    Raises:
        ConfigurationError: nothing can be interrupted in this process.
    """

    def __init__(self, seconds: float, deadline: float | None) -> None:
        self._seconds = checked_seconds(seconds, "hard_deadline")
        if deadline is not None and self._seconds < deadline:
            raise ConfigurationError(
                f"hard_deadline must be >= deadline ({deadline!r}), not {seconds!r}: it"
                " is for slices that ignore their deadline"
            )
        if threads_are_greenlets():
            raise ConfigurationError(
                "hard_deadline needs threads, and gevent has replaced them by greenlets"
                " in this process: leave it out here, and bound what the jobs do"
            )
        if not can_interrupt():
            raise ConfigurationError(
                "hard_deadline needs CPython with its GIL and ctypes, or no thread can"
                " be interrupted: leave it out here, and bound what the jobs do"
            )

    def call(self, function: Callable[[], T]) -> T:
        """Call the function, and interrupt it when the time is over."""
        scope = Interruptible()
        # A thread for each slice: they are rare, and a forked child has none to miss.
        timer = Timer(self._seconds, _interrupt, (scope,))
        timer.daemon = True
        timer.start()
        try:
            return scope.call(function)
        finally:
            timer.cancel()


def _interrupt(scope: Interruptible) -> None:
    scope.interrupt(SliceOverdue)
    deliver_until_ended([scope])
