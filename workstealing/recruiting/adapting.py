"""Rates that follow what slices find: `Recruiter(adapt=Adapt(least=…, most=…))`.

Each process goes by the slices that it did itself. The lottery makes these a fair
sample of all slices of the fleet, so its processes come to the same rates without
asking anybody, and go on to do so while Redis is away. Only jobs with `rate=` are
adapted: an interval was chosen because the work does not follow the traffic, and all
processes of a fleet must have the same interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workstealing._checks import checked_number, checked_share, checked_whole
from workstealing.errors import ConfigurationError, InvalidRate
from workstealing.recruiting.job import Pace, PerCall
from workstealing.recruiting.observed_plan import ENOUGH_SLICES, SlicesSeen, propose
from workstealing.recruiting.roster import InstalledJob
from workstealing.recruiting.stats import JobCounts
from workstealing.telemetry.events import RateAdapted

__all__ = ("Adapt", "RateAdapter")

# A change must show before the next one: other processes change theirs, too.
_REST_SECONDS = 60.0
# Smaller changes are not worth an event.
_NOTABLE_CHANGE = 0.1


@dataclass(frozen=True, slots=True)
class Adapt:
    """Within which bounds a recruiter may change the rate of a job by itself."""

    least: float
    """The lowest rate, above 0.0: it decides how long gaps get when there is little
    to do."""
    most: float
    """The highest rate."""
    step: float = 2.0
    """The largest factor by which one change raises or lowers a rate."""
    evidence: int = ENOUGH_SLICES
    """How many slices this process must have done since the last change, which must
    also be a minute ago."""

    def __post_init__(self) -> None:
        least = checked_share(self.least, "least")
        if checked_share(self.most, "most") < least:
            raise ConfigurationError(
                f"most must be >= least ({self.least!r}), not {self.most!r}"
            )
        if checked_number(self.step, "step") <= 1.0:
            raise ConfigurationError(f"step must be above 1.0, not {self.step!r}")
        checked_whole(self.evidence, "evidence", 10)

    def bounded(self, rate: float, factor: float, room: float) -> float:
        """Return the rate after one change, with the *room* that other jobs leave."""
        wanted = rate * min(self.step, max(1 / self.step, factor))
        return min(max(wanted, self.least), self.most, room)


class RateAdapter:
    """Decides when a rate changes, and to what. Its caller holds a lock.

    Args:
        adapt: the bounds of all jobs, or those of some by their names.
    """

    def __init__(self, adapt: Adapt | Mapping[str, Adapt]) -> None:
        self._of_all = adapt if isinstance(adapt, Adapt) else None
        self._by_name: dict[str, Adapt] = {}
        if not isinstance(adapt, Adapt):
            self._by_name = _checked_bounds(adapt)
        self._windows: dict[str, _Window] = {}

    def check(self, name: str, pace: Pace) -> None:
        """Refuse a rate that is not within its bounds; 0.0 switches a job off."""
        adapt = self._by_name.get(name, self._of_all)
        if adapt is None or not isinstance(pace, PerCall) or not pace.rate:
            return
        if not adapt.least <= pace.rate <= adapt.most:
            raise InvalidRate(
                f"the rate of {name!r}, {pace.rate:g}, is outside of the bounds of its"
                f" Adapt, {adapt.least:g} to {adapt.most:g}: change one of them"
            )

    def change(self, job: InstalledJob, room: float, now: float) -> RateAdapted | None:
        """Return how the rate of a job that just had a slice changes, if it does."""
        adapt = self._by_name.get(job.name, self._of_all)
        if adapt is None or not isinstance(job.pace, PerCall) or not job.pace.rate:
            return None
        window = self._windows.get(job.name)
        if window is None or window.counts is not job.counts:
            # Its first slice since it was installed, or since the process forked.
            self._windows[job.name] = _Window(job.counts, _seen(job.counts), now)
            return None
        seen = window.since()
        if seen.judged < adapt.evidence or now - window.began_at < _REST_SECONDS:
            return None
        # What was seen before a decision says nothing about the time after it.
        self._windows[job.name] = _Window(job.counts, _seen(job.counts), now)
        proposal = propose(seen, enough=adapt.evidence)
        before = job.pace.rate
        after = adapt.bounded(before, proposal.factor, room)
        if abs(after - before) <= _NOTABLE_CHANGE * before:
            return None
        return RateAdapted(job.name, before, after, proposal.why)

    def forget(self, name: str) -> None:
        """Forget what was seen of a job: its rate was set, or it is uninstalled."""
        self._windows.pop(name, None)


@dataclass(frozen=True, slots=True)
class _Window:
    """What was counted of a job when its rate was last looked at."""

    counts: JobCounts
    before: SlicesSeen
    began_at: float

    def since(self) -> SlicesSeen:
        now, before = _seen(self.counts), self.before
        return SlicesSeen(
            worked=now.worked - before.worked,
            empty=now.empty - before.empty,
            unfinished=now.unfinished - before.unfinished,
            failed=now.failed - before.failed,
            refused=now.refused - before.refused,
            drawn=now.drawn - before.drawn,
        )


def _seen(counts: JobCounts) -> SlicesSeen:
    return SlicesSeen.of(counts.outcomes, counts.unfinished)


def _checked_bounds(adapt: Any) -> dict[str, Adapt]:
    if isinstance(adapt, Mapping) and all(
        isinstance(name, str) and isinstance(bounds, Adapt)
        for name, bounds in adapt.items()
    ):
        return dict(adapt)
    raise ConfigurationError(
        "adapt must be an Adapt, such as Adapt(least=0.001, most=0.05), or a mapping"
        f" of job names to these, not {adapt!r}"
    )
