"""Where time comes from: seconds that never go backwards, and the time of day.

A clock that only has the first is completed by the time of this machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

__all__ = ("SYSTEM_CLOCK", "Clock", "SystemClock", "time_of_day")


class Clock(Protocol):
    """A source of time."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never decreasing."""
        ...


class SystemClock:
    """The clock of this machine."""

    monotonic = staticmethod(time.monotonic)


SYSTEM_CLOCK: Clock = SystemClock()


def time_of_day(clock: Clock) -> Callable[[], int]:
    """Return a function for the nanoseconds since 1970: the clock's, if it has one."""
    # Looked up now, not at import: a test may have replaced it meanwhile.
    told: Callable[[], int] = getattr(clock, "time_ns", time.time_ns)
    return told
