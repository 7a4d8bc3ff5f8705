"""How many calls may pass before somebody looks at the clock.

Reading the clock at every call would cost more than the call. So a stride is kept short
enough to take about a twentieth of the time that is waited for, going by the calls
seen last, and at most 256 calls: that is how late a job can be when traffic stops
suddenly. A patrol has no such limit.
"""

from __future__ import annotations

__all__ = ("Lookout",)

_MOST_CALLS = 256
_LOOKS_PER_WAIT = 20
_LONGEST_BLINK = 0.1


class Lookout:
    """Adapts the number of unwatched calls to how quickly they come."""

    def __init__(self) -> None:
        self._period = 1
        self._looked_at: float | None = None

    def calls(self, wait: float, now: float) -> int:
        """Return how many calls to let pass when *wait* seconds remain."""
        if wait <= 0.0:
            return 0
        blink = min(_LONGEST_BLINK, wait / _LOOKS_PER_WAIT)
        if self._looked_at is not None:
            passed = now - self._looked_at
            fitting = self._period * blink / passed if passed > 0.0 else _MOST_CALLS
            # Growth is careful, since calls come in bursts; shrinking is at once.
            self._period = max(1, min(int(fitting), 2 * self._period, _MOST_CALLS))
        self._looked_at = now
        # The call that looks is one of the period.
        return self._period - 1
