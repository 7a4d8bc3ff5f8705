"""How often a job is wanted: per call of `enlist()`, or per time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from workstealing._checks import checked_rate, checked_seconds
from workstealing.chance import Chance
from workstealing.errors import AmbiguousPace, InvalidInterval

__all__ = ("Every", "Pace", "PerCall", "PerTime", "checked_interval", "pace")

Every = float | timedelta


@dataclass(frozen=True, slots=True)
class PerCall:
    """A share of all `enlist()` calls."""

    rate: float


@dataclass(frozen=True, slots=True)
class PerTime:
    """One slice per *every* seconds and process, on average."""

    every: float

    def wait(self, chance: Chance) -> float:
        """Draw the seconds until the next slice.

        Exponential, hence memoryless: a draw may be thrown away at any moment without
        changing the rate, and processes that started together drift apart.
        """
        return -self.every * math.log1p(-chance.random())


Pace = PerCall | PerTime


def pace(rate: float | None, every: Every | None) -> Pace:
    """Return the pace that a user asked for, checked."""
    if rate is not None and every is not None:
        raise AmbiguousPace("give rate= (per call) or every= (seconds), not both")
    if rate is not None:
        return PerCall(checked_rate(rate))
    if every is not None:
        return PerTime(checked_interval(every))
    raise AmbiguousPace(
        "how often? give rate= (share of calls, 0.0-1.0) or every= (seconds)"
    )


def checked_interval(every: Every) -> float:
    """Return the seconds of an interval.

    Raises:
        InvalidInterval: it is not above 0 seconds.
    """
    return checked_seconds(every, "every=", error=InvalidInterval)
