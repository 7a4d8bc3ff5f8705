"""Checks the numbers that users give to tasks, when they give them."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from workstealing.errors import ConfigurationError

__all__ = ("LARGEST", "checked_seconds", "checked_whole")

LARGEST = 2**31 - 1
"""The largest count or version: every language and every Lua can hold it."""


def checked_whole(number: Any, what: str, least: int, most: int = LARGEST) -> int:
    """Return a whole number that is within its bounds."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise ConfigurationError(f"{what} must be a whole number, not {number!r}")
    if not least <= number <= most:
        told = _told(number)
        raise ConfigurationError(f"{what} must be {least} to {most}, not {told}")
    return int(number)


def checked_seconds(duration: Any, what: str, *, zero: bool = False) -> float:
    """Return a finite duration in seconds; zero only where it makes sense."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ConfigurationError(f"{what} must be seconds, not {duration!r}")
    try:
        exact = float(seconds)
    except OverflowError:
        exact = math.inf
    if not math.isfinite(exact) or exact < 0 or (exact == 0 and not zero):
        bound = "0 seconds or more" if zero else "above 0 seconds"
        raise ConfigurationError(f"{what} must be {bound}, not {_told(duration)}")
    return exact


def _told(number: Any) -> str:
    # Python refuses to write whole numbers of thousands of digits.
    if isinstance(number, int) and number.bit_length() > _MOST_BITS:
        return f"a number of {number.bit_length()} bits"
    return repr(number)


_MOST_BITS = 256
