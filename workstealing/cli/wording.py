"""Numbers as people like to read them."""

from __future__ import annotations

import math

from workstealing.recruiting.planning import DAY

__all__ = ("duration", "number", "percent", "quantile")


def number(value: float) -> str:
    """Return three digits, without an exponent where that reads well."""
    if value and not 0.001 <= value < 1e9:
        return f"{value:.1e}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def percent(share: float) -> str:
    """Return a share of 1.0 as a percentage."""
    if share and share < 0.0001:
        return "< 0.01 %"
    return f"{share * 100:.3g} %"


def quantile(share: float) -> str:
    """Return a quantile as a percentile, like p99.7."""
    # Rounded down: a percentile that is promised must be an untouched one.
    return f"p{math.floor(share * 10_000) / 100:g}" if share else "none"


def duration(seconds: float) -> str:
    """Return seconds in the unit that a person would take."""
    if seconds < 1:
        return f"{number(seconds * 1000)} ms"
    for unit, length in (("d", DAY), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length or seconds == length:
            return f"{number(seconds / length)} {unit}"
    return f"{number(seconds)} s"
