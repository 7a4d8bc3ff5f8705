"""Times and numbers as people like to read them, and texts that do no harm."""

from __future__ import annotations

from datetime import datetime, timezone

__all__ = ("counted", "moment", "printable", "rate", "span")

# Of what is longer, a float cannot tell.
_LONGEST = 2**53
_UNITS = (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))


def span(ms: int) -> str:
    """Return a duration in the unit that a person would take."""
    ms = min(ms, _LONGEST)
    for unit, length in _UNITS:
        if ms >= 2 * length or (unit == "s" and ms >= 1000):
            number = ms / length
            return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
    return f"{max(0, ms)} ms"


def moment(ms: int) -> str:
    """Return a moment as UTC, to the second."""
    try:
        when = datetime.fromtimestamp(ms / 1000, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return f"{ms} ms after 1970"
    return when.strftime("%Y-%m-%d %H:%M:%SZ")


def rate(number: float) -> str:
    """Return tasks per second in few digits."""
    return f"{number:,.0f}" if number >= 100 else f"{number:,.1f}"


def counted(number: int, thing: str, things: str = "") -> str:
    """Return a number with its noun: 1 worker, 2,000 workers."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def printable(text: str) -> str:
    """Return a text that does nothing to a terminal but stand there.

    Names, ids and messages may come from anywhere.
    """
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
