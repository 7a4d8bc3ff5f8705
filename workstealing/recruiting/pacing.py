"""How often a job is wanted: per call of `enlist()`, or per time.

A rate per call follows the traffic: it starves at night and floods in a crowd. An
interval does neither, but counts per process. A job has exactly one of the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from numbers import Real
from typing import Any

from workstealing.chance import Chance
from workstealing.errors import AmbiguousPace, InvalidInterval, InvalidRate

__all__ = ("Every", "Pace", "PerCall", "PerTime", "interval", "pace")

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
    """Check what a user asked for."""
    if rate is not None and every is not None:
        raise AmbiguousPace("give rate= (per call) or every= (seconds), not both")
    if rate is not None:
        return PerCall(_checked_rate(rate))
    if every is not None:
        return PerTime(interval(every))
    raise AmbiguousPace(
        "how often? give rate= (share of calls, 0.0-1.0) or every= (seconds)"
    )


def interval(every: Every) -> float:
    """Check an interval; return its seconds."""
    seconds: Any = every.total_seconds() if isinstance(every, timedelta) else every
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        raise InvalidInterval(f"every= must be seconds or a timedelta, not {every!r}")
    checked = _float(seconds)
    if not 0.0 < checked < math.inf:
        raise InvalidInterval(f"every= must be above 0 seconds, not {every!r}")
    return checked


def _checked_rate(rate: Any) -> float:
    if isinstance(rate, bool) or not isinstance(rate, Real):
        raise InvalidRate(f"a rate must be a number from 0.0 to 1.0, not {rate!r}")
    checked = _float(rate)
    if not 0.0 <= checked <= 1.0:
        raise InvalidRate(f"a rate must be from 0.0 to 1.0, not {rate}")
    return checked


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf
