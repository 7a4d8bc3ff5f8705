"""Where time comes from: seconds that never go backwards."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ("SYSTEM_CLOCK", "Clock", "SystemClock")


class Clock(Protocol):
    """A source of time."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never decreasing."""
        ...


class SystemClock:
    """The clock of this machine."""

    monotonic = staticmethod(time.monotonic)


SYSTEM_CLOCK: Clock = SystemClock()
