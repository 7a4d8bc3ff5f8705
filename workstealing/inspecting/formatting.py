"""Formats numbers, durations and times for people.

Shared by the inspector, the command line and the dashboard. Nothing here raises,
however odd the number.
"""

from __future__ import annotations

import math

from workstealing.clock import utc_time

__all__ = (
    "duration",
    "duration_ms",
    "one_decimal",
    "percent",
    "percentile",
    "plural",
    "relative_time",
    "significant",
    "timestamp",
)

_DAY = 86_400.0
_UNITS = (("days", _DAY), ("h", 3600.0), ("min", 60.0))
# A float holds no larger whole number exactly, and some integers fit into no float.
_LONGEST_MS = 2**53


def duration(seconds: float) -> str:
    """Return a duration in the unit a person would choose: 350 ms, 13.6 s, 2 h."""
    if seconds < 1:
        return f"{significant(max(0.0, seconds) * 1000)} ms"
    for unit, length in _UNITS:
        if seconds == length:
            return f"1 {unit.removesuffix('s')}"
        if seconds >= 2 * length:
            return f"{significant(seconds / length)} {unit}"
    return f"{significant(seconds)} s"


def duration_ms(ms: int) -> str:
    """Return a duration that is given in milliseconds."""
    return duration(min(ms, _LONGEST_MS) / 1000) if ms > 0 else "0 ms"


def timestamp(ms: int) -> str:
    """Return a point in time as UTC, to the second."""
    when = utc_time(ms)
    if when is None:
        return f"{ms} ms after 1970"
    return when.strftime("%Y-%m-%d %H:%M:%SZ")


def relative_time(at_ms: int, now_ms: int) -> str:
    """Return a point in time as seen from now: 3 s ago, in 2 min; empty if unknown."""
    if not at_ms:
        return ""
    if at_ms > now_ms:
        return f"in {duration_ms(at_ms - now_ms)}"
    return f"{duration_ms(now_ms - at_ms)} ago"


def significant(value: float) -> str:
    """Return three significant digits, without an exponent where that reads well."""
    if value and not 0.001 <= abs(value) < 1e9:
        return f"{value:.1e}"
    # From here on, three digits would be rounded to an exponent.
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def one_decimal(value: float) -> str:
    """Return one decimal, or none from 100 on; for columns of rates."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def percent(share: float) -> str:
    """Return a share of 1.0 as a percentage."""
    if 0 < share < 0.0001:
        return "< 0.01 %"
    return f"{significant(share * 100)} %"


def percentile(share: float) -> str:
    """Return a quantile as a percentile, like p99.7."""
    # Rounded down: the percentile that is named must hold.
    return f"p{math.floor(share * 10_000) / 100:g}" if share else "none"


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: 1 worker, 2,000 workers."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
