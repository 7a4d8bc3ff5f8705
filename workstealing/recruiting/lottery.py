"""Draws which call works for which job, and knows the number of calls uncounted.

The lottery does not toss a coin per call. It draws how many calls are dismissed before
the next recruit (geometric in the total rate R), and then which job it is, by its share
of R. Both draws together give each job exactly its rate.

A stride is a number of calls that are dismissed without a look at the lottery, held as
a C iterator: stepping it is all that a dismissed call costs. Draws are memoryless, so
one may be thrown away at any time (when a rate changes, in a forked child). Until the
next one, the stride is empty: the next call finds its end at once, and draws then, when
it knows the time. So changing fifty rates in a row costs one draw.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate, repeat
from operator import length_hint

from workstealing.chance import Chance
from workstealing.recruiting.job import Duty, PerCall, PerTime
from workstealing.recruiting.roster import InstalledJob, Roster

__all__ = ("Lottery", "StrideClock")

# Never reached, and a size that `repeat` takes on every platform.
_FOREVER = 2**31 - 2
# Longer than any process lives; the smallest rates would draw infinity.
_LONGEST_GAP = 2.0**62


class Lottery:
    """The draws among the jobs of one roster. Its caller holds a lock.

    Args:
        roster: the installed jobs; `refresh()` when they or their rates change.
        chance: where randomness comes from.
        longest_stride: look at the lottery after this many calls at the latest.
    """

    def __init__(
        self, roster: Roster, chance: Chance, longest_stride: int | None
    ) -> None:
        self._roster = roster
        self._longest = longest_stride or _FOREVER
        self._chance = chance
        self._stride_clock = StrideClock()
        self._gap: int | None = None
        self._ended_calls = 0
        self._begin(0)
        self.refresh()

    @property
    def calls(self) -> int:
        """How many calls there were."""
        return self._ended_calls + self._length - length_hint(self.stride)

    def refresh(self) -> None:
        """Take over the jobs and rates of the roster; throws the draw away."""
        jobs = tuple(self._roster)
        self._timed = [job for job in jobs if isinstance(job.pace, PerTime)]
        # A job of rate 0 has no place in the lottery, not even at a boundary.
        drawable = [
            (job, job.pace.rate) for job in jobs if isinstance(job.pace, PerCall)
        ]
        drawable = [(job, rate) for job, rate in drawable if rate > 0.0]
        self._drawable = [job for job, _ in drawable]
        self._cumulative = list(accumulate(rate for _, rate in drawable))
        self._total = min(1.0, math.fsum(rate for _, rate in drawable))
        self._discard()

    def pause(self) -> None:
        """Dismiss every call until `refresh()`."""
        self._discard()
        self._begin(_FOREVER)

    def forget_calls(self) -> None:
        """Count from zero again; throws the draw away."""
        self._discard()
        self._ended_calls = 0

    def next_job(self, now: float, wake_at: float | None) -> InstalledJob | None:
        """Return the job that a call is drawn for, which found its stride at its end.

        None dismisses the call. Its stride may have been empty because there was no
        draw, and another thread may have begun the next one: both are looked at here.
        *wake_at* is a moment at which the caller wants its clock read, if any.
        """
        if not self._is_drawn:
            self._draw(now, wake_at)
        for _ in self.stride:
            return None
        return self._end_stride(now, wake_at)

    def skip(self, now: float, wake_at: float | None) -> None:
        """Replace a draw that cannot be used; at once, as the next call goes by it."""
        if self._is_drawn:
            self._discard()
            self._draw(now, wake_at)

    def schedule(self, job: InstalledJob, now: float) -> None:
        """Draw when a job with an interval is due next."""
        if isinstance(job.pace, PerTime):
            job.due_at = now + job.pace.wait(self._chance)
            self._find_soonest()

    def longest_waiting(self) -> InstalledJob | None:
        """Return the job that was drawn least recently; never one of rate 0."""
        wanted = [job for job in self._roster if job.pace != PerCall(0.0)]
        return min(wanted, key=lambda job: job.drawn_at, default=None)

    def _discard(self) -> None:
        """Throw the draw away; the next call draws again."""
        self._ended_calls = self.calls
        self._gap = None
        self._find_soonest()
        self._begin(0)
        self._is_drawn = False

    def _end_stride(self, now: float, wake_at: float | None) -> InstalledJob | None:
        """Return the job that the call which ended a stride is drawn for, if any.

        Also begins the next stride.
        """
        self._ended_calls += self._length + 1
        job = None if self._gap is None else self._end_gap(self._gap)
        if job is None and self._soonest is not None and now >= self._soonest.due_at:
            job = self._soonest
            self.schedule(job, now)
        self._draw(now, wake_at)
        return job

    def _draw(self, now: float, wake_at: float | None) -> None:
        """Begin a stride, up to the next recruit or the next look at the clock."""
        if self._gap is None and self._total > 0.0:
            self._gap = self._draw_gap()
        length = self._longest if self._gap is None else min(self._gap, self._longest)
        if self._soonest is not None and (
            wake_at is None or self._soonest.due_at < wake_at
        ):
            wake_at = self._soonest.due_at
        if wake_at is not None:
            length = min(length, self._stride_clock.calls(wake_at - now, now))
        self._begin(length)

    def _draw_gap(self) -> int:
        """Draw how many calls to dismiss before the next recruit."""
        if self._total >= 1.0:
            return 0
        gap = math.log1p(-self._chance.random()) / math.log1p(-self._total)
        return int(min(gap, _LONGEST_GAP))

    def _end_gap(self, gap: int) -> InstalledJob | None:
        left = gap - self._length
        self._gap = left - 1 if left else None
        return None if left else self._draw_job()

    def _draw_job(self) -> InstalledJob:
        """Draw the job of a recruit, by its share of the total rate."""
        number = self._chance.random() * self._total
        index = bisect_right(self._cumulative, number)
        return self._drawable[min(index, len(self._drawable) - 1)]

    def _find_soonest(self) -> None:
        timed = self._timed
        self._soonest = min(timed, key=lambda job: job.due_at, default=None)

    def _begin(self, length: int) -> None:
        self._length = length
        self.stride = repeat(Duty.DISMISSED, length)
        self._is_drawn = True


_MOST_CALLS = 256
_LOOKS_PER_WAIT = 20
_LONGEST_BETWEEN_LOOKS = 0.1


class StrideClock:
    """Decides how many calls pass between two looks at the clock.

    Reading it at every call would cost more than the call. It adapts to how quickly
    calls come, so that a job with an interval is late by a twentieth of its wait, and
    by 0.1 seconds at most, as long as calls keep coming as they did.
    """

    def __init__(self) -> None:
        self._period = 1
        self._looked_at: float | None = None

    def calls(self, wait: float, now: float) -> int:
        """Return how many calls to let pass when *wait* seconds remain."""
        if wait <= 0.0:
            return 0
        aim = min(_LONGEST_BETWEEN_LOOKS, wait / _LOOKS_PER_WAIT)
        if self._looked_at is not None:
            passed = now - self._looked_at
            fitting = self._period * aim / passed if passed > 0.0 else _MOST_CALLS
            # Growth is careful, since calls come in bursts; shrinking is at once.
            self._period = max(1, min(int(fitting), 2 * self._period, _MOST_CALLS))
        self._looked_at = now
        # The call that looks is one of the period.
        return self._period - 1
