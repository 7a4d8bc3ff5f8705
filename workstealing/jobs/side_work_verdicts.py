"""How a job of the fleet fares, and why.

Command line, dashboard and Prometheus show the same verdicts. A verdict is about all
that the ledger has, which is the last hour, not about the present moment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from workstealing.inspecting.formatting import duration, percent, plural
from workstealing.recruiting.observed_plan import (
    MOSTLY_REFUSED,
    Proposal,
    propose,
)
from workstealing.recruiting.plan_formulas import DAY, slices_for_gap
from workstealing.telemetry.events import REFUSALS, Outcome

if TYPE_CHECKING:
    from workstealing.jobs.fleet_side_work import FleetJob

__all__ = ("OUT_OF_SHARE", "JobVerdict", "Verdict", "judge", "proposal_of")

OUT_OF_SHARE = (
    "most draws are refused: side work has used up its share. Raise share=, or lower"
    " the rate of the job that takes most of the time"
)
"""Why nothing is proposed for a job that others leave no time for."""

_MOSTLY = 0.9
# Fewer draws, or slices without work, are too few to judge by.
_FEW_SLICES = 5
# A job with an interval starves below this share of the slices that it asks for.
_STARVING_SHARE = 0.5
# If it asks for fewer slices than this, half of them may be missing by chance.
_ENOUGH_ASKED = 20
# A job may well wait this long by chance.
_LONG_SECONDS = 1800.0
# A change below the first factor is chance. One beyond the second has another cause
# than a new rate, such as a ticker.
_NOTABLY_CHANGED = 1.25
_MOST_CHANGED = 2.0
_REASONS = {
    Outcome.BUSY: "another slice was in flight",
    Outcome.OPEN: "what it depends on has failed",
    Outcome.BUDGET: "side work has used up its share of time",
    Outcome.STORE: "the store is slow",
}


class Verdict(str, Enum):
    """How a job fares."""

    GOOD = "good"
    STARVING = "starving"
    """It gets few slices of those that it asks for, or none."""
    FAILING = "failing"
    """Most slices raise."""
    BEHIND = "behind"
    """Too many slices end with work left."""
    USELESS = "useless"
    """No slice found work."""
    UNKNOWN = "unknown"
    """Too little was seen, or it is switched off."""

    __str__ = str.__str__


@dataclass(frozen=True, slots=True)
class JobVerdict:
    """A verdict, and the words for it."""

    kind: Verdict
    words: str

    @property
    def needs_a_look(self) -> bool:
        """Whether somebody should do something about it."""
        return self.kind not in (Verdict.GOOD, Verdict.UNKNOWN)

    def __str__(self) -> str:
        return self.words


def judge(job: FleetJob) -> JobVerdict:
    """Return how a job fares."""
    return (
        _failing(job)
        or _starving(job)
        or _useless(job)
        or _behind(job)
        or _unknown(job)
        or JobVerdict(
            Verdict.GOOD, f"works: {percent(job.yielded)} of its slices find work"
        )
    )


def proposal_of(job: FleetJob, stale: float | None = None) -> Proposal:
    """Return which pace would be planned for a job, going by what was seen of it.

    Args:
        job: the job.
        stale: seconds without a slice in the whole fleet that are too many, if any.
    """
    needed = 0.0 if stale is None else _needed_for_gaps(job, stale)
    proposal = propose(job.seen, needed=needed)
    if proposal.why == MOSTLY_REFUSED:
        return replace(proposal, why=_why_refused(job))
    if proposal.factor == 1.0:
        return proposal
    factor = proposal.factor * _pace_so_far(job)
    if (factor > 1.0) is not (proposal.factor > 1.0):
        return Proposal(1.0, "its rate was changed after most slices that were seen")
    return replace(proposal, factor=factor)


def _why_refused(job: FleetJob) -> str:
    """Say what keeps a job from its slices, and what to do if it is other jobs."""
    why = _most_refusals(job)
    if why is Outcome.BUDGET:
        return OUT_OF_SHARE
    return f"most draws are refused: {_REASONS[why]}; no rate changes that"


def _most_refusals(job: FleetJob) -> Outcome:
    return max(REFUSALS, key=lambda outcome: job.outcomes[outcome])


def _needed_for_gaps(job: FleetJob, stale: float) -> float:
    """Return how much more often a job must be drawn to have no longer gaps."""
    if job.of_fleet and job.every:
        # Turns come regularly: a gap is an interval, or two if one was missed.
        return 2 * job.every / stale
    slices = job.slices / job.wall_seconds if job.wall_seconds else 0.0
    # As `plan` has it: at most one such gap in a hundred days.
    return slices_for_gap(stale, DAY) / slices if slices else 0.0


def _pace_so_far(job: FleetJob) -> float:
    """Return how often a job was drawn, as a part of what its rate now gives.

    The hour that was seen may have begun with another rate.
    """
    expected = (job.rate or 0.0) * job.calls
    part = job.drawn / expected if expected else 1.0
    if 1 / _NOTABLY_CHANGED < part < _NOTABLY_CHANGED:
        return 1.0
    return min(_MOST_CHANGED, max(1 / _MOST_CHANGED, part))


def _failing(job: FleetJob) -> JobVerdict | None:
    failed = job.seen.failed
    if failed <= job.slices / 2:
        return None
    words = f"failing: {failed:,} of {plural(job.slices, 'slice')} raised"
    return JobVerdict(Verdict.FAILING, words)


def _starving(job: FleetJob) -> JobVerdict | None:
    words, asked = "", job.asked or 0.0
    if job.rate == 0:
        # It is switched off, so it asks for nothing.
        return None
    if job.drawn >= _FEW_SLICES and job.refused >= _MOSTLY * job.drawn:
        why = _most_refusals(job)
        share = percent(job.refused / job.drawn)
        words = f"{share} of its draws are refused: {_REASONS[why]} ({why})"
    elif asked >= _ENOUGH_ASKED and job.slices < _STARVING_SHARE * asked:
        few = f"{plural(job.slices, 'slice')} instead of {asked:,.0f}"
        words = f"{few}; its hosts enlist too rarely, or refuse it"
    elif not job.drawn and job.wall_seconds >= _LONG_SECONDS:
        passed = duration(job.wall_seconds)
        words = f"not drawn for {passed}; its pace is too low for this traffic"
    return JobVerdict(Verdict.STARVING, f"starving: {words}") if words else None


def _useless(job: FleetJob) -> JobVerdict | None:
    if job.worked or job.seen.empty < _FEW_SLICES:
        return None
    words = f"does nothing: none of {plural(job.seen.empty, 'slice')} found work"
    return JobVerdict(Verdict.USELESS, words)


def _behind(job: FleetJob) -> JobVerdict | None:
    if propose(job.seen).factor <= 1.0:
        return None
    share = percent(job.seen.unfinished / job.seen.judged)
    words = f"falls behind: {share} of its slices end with work left"
    return JobVerdict(Verdict.BEHIND, words)


def _unknown(job: FleetJob) -> JobVerdict | None:
    if job.worked:
        return None
    if job.rate == 0:
        return JobVerdict(Verdict.UNKNOWN, "switched off: its rate is 0")
    words = f"too early to say: {plural(job.slices, 'slice')} so far"
    return JobVerdict(Verdict.UNKNOWN, words)
