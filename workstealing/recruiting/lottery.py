"""Draws who is recruited, and knows how many calls there were without counting them.

A stride is the number of calls that are dismissed before the next recruit, held as a C
iterator: stepping it is all that a dismissed call costs. Draws are memoryless, so one
may be thrown away at any time (when a rate changes, in a forked child) and drawn anew.
"""

from __future__ import annotations

from itertools import repeat
from operator import length_hint

from workstealing.chance import Chance
from workstealing.recruiting.job import Duty
from workstealing.recruiting.lookout import Lookout
from workstealing.recruiting.pacing import PerCall, PerTime
from workstealing.recruiting.roster import Entry, Roster

__all__ = ("Lottery",)

# Never reached, and a size that `repeat` takes on every platform.
_FOREVER = 2**31 - 2


class Lottery:
    """The strides over one roster. Its caller holds a lock."""

    def __init__(
        self, roster: Roster, chance: Chance, longest_stride: int | None
    ) -> None:
        self._roster = roster
        self._longest = longest_stride or _FOREVER
        self._chance = chance
        self._lookout = Lookout()
        self._gap: int | None = None
        self._soonest: Entry | None = None
        self._ended_calls = 0
        self._begin(0)
        self.is_drawn = False

    @property
    def calls(self) -> int:
        """How many calls there were."""
        return self._ended_calls + self._length - length_hint(self.stride)

    def pause(self) -> None:
        """Dismiss everybody until further notice."""
        self.discard()
        self._begin(_FOREVER)

    def forget_calls(self) -> None:
        """Count from zero again."""
        self.discard()
        self._ended_calls = 0

    def discard(self) -> None:
        """Throw the draw away; the next call draws anew."""
        self._ended_calls = self.calls
        self._gap = None
        self._find_soonest()
        self._begin(0)
        self.is_drawn = False

    def draw(self, now: float, wake_at: float | None) -> None:
        """Begin a stride, up to the next recruit or the next look at the clock.

        *wake_at* is a moment at which the caller wants its clock read, if any.
        """
        if self._gap is None and self._roster.has_rates:
            self._gap = self._roster.gap(self._chance)
        length = self._longest if self._gap is None else min(self._gap, self._longest)
        if self._soonest is not None and (
            wake_at is None or self._soonest.due_at < wake_at
        ):
            wake_at = self._soonest.due_at
        if wake_at is not None:
            length = min(length, self._lookout.calls(wake_at - now, now))
        self._begin(length)

    def end_stride(self, now: float, wake_at: float | None) -> Entry | None:
        """Tell whom the call that ended a stride is drawn for, and draw the next."""
        self._ended_calls += self._length + 1
        entry = None if self._gap is None else self._end_of_gap(self._gap)
        if entry is None and self._soonest is not None:
            entry = self._due(self._soonest, now)
        self.draw(now, wake_at)
        return entry

    def schedule(self, entry: Entry, now: float) -> None:
        """Draw when a job with an interval is due next."""
        if isinstance(entry.pace, PerTime):
            entry.due_at = now + entry.pace.wait(self._chance)
            self._find_soonest()

    def longest_waiting(self) -> Entry | None:
        """Return the job that was drawn least recently; one of rate 0 never."""
        wanted = [e for e in self._roster if e.pace != PerCall(0.0)]
        return min(wanted, key=lambda e: e.drawn_at, default=None)

    def _end_of_gap(self, gap: int) -> Entry | None:
        left = gap - self._length
        self._gap = left - 1 if left else None
        return None if left else self._roster.pick(self._chance)

    def _due(self, entry: Entry, now: float) -> Entry | None:
        if now < entry.due_at:
            return None
        self.schedule(entry, now)
        return entry

    def _find_soonest(self) -> None:
        timed = self._roster.timed
        self._soonest = min(timed, key=lambda e: e.due_at, default=None)

    def _begin(self, length: int) -> None:
        self._length = length
        self.stride = repeat(Duty.DISMISSED, length)
        self.is_drawn = True
