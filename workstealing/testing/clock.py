"""A clock that moves only when a test moves it."""

from __future__ import annotations

__all__ = ("ManualClock",)


class ManualClock:
    """Stands still at *start* until it is advanced."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def monotonic(self) -> float:
        """Return the seconds shown."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forward; a clock never goes back."""
        if seconds < 0:
            raise ValueError(f"a clock never goes back, not by {seconds!r} seconds")
        self._now += seconds
