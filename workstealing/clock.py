"""Where time comes from: seconds that never go backwards, and the time of day.

A clock that only has the first is completed by the time of this machine. In Redis, a
time of day is a number of milliseconds since 1970; `utc_time` reads it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Protocol

__all__ = (
    "EPOCH",
    "LAST_MOMENT",
    "SYSTEM_CLOCK",
    "Clock",
    "SystemClock",
    "time_of_day",
    "utc_time",
)

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
LAST_MOMENT = datetime.max.replace(tzinfo=timezone.utc)
"""The last time that Python can write; what is later is taken for this."""


class Clock(Protocol):
    """A source of time."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never decreasing."""
        ...


class SystemClock:
    """The clock of this machine."""

    monotonic = staticmethod(time.monotonic)

    def __repr__(self) -> str:
        return "SYSTEM_CLOCK"


SYSTEM_CLOCK: Clock = SystemClock()


def time_of_day(clock: Clock) -> Callable[[], int]:
    """Return a function for the nanoseconds since 1970: the clock's, if it has one."""
    # Looked up now, not at import: a test may have replaced it meanwhile.
    told: Callable[[], int] = getattr(clock, "time_ns", time.time_ns)
    return told


def utc_time(ms: int) -> datetime | None:
    """Return a time, given in milliseconds since 1970; None if no calendar has it.

    Any program that can write to Redis may have put such a number there.
    """
    try:
        return EPOCH + timedelta(milliseconds=ms)
    except (OverflowError, ValueError):
        return None
