"""Which change of a job's pace its slices call for: more, less, or none.

A slice that works shows that there was something to do, not how much: a job that
returns None counts as having worked each time. Only `Duty.MORE` shows a backlog. So it
is known within two bounds how full slices are. The lower bound follows from the share
that ended with work left, by the formulas of `plan`; for the upper bound, each slice
that worked counts as full. A higher pace is proposed if slices are too full even by the
lower bound, and a lower pace if they are mostly empty even by the upper bound. In
between, the pace stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from workstealing.recruiting.plan_formulas import HIGHEST_FILL, fill_of_slices
from workstealing.telemetry.events import REFUSALS, Outcome

__all__ = ("ENOUGH_SLICES", "MOSTLY_REFUSED", "Proposal", "SlicesSeen", "propose")

ENOUGH_SLICES = 50
"""Fewer slices are too few to judge by."""

MOSTLY_REFUSED = "most draws are refused to protect the hosts; no rate changes that"
"""Why nothing is proposed for a job that hardly gets any slice."""

# Above this share of slices with work left, the backlog may grow at any speed.
_BEHIND = 0.9
_MORE_WHEN_BEHIND = 2.0
# Smaller changes are noise.
_NOTABLE = 1.1
# Standard deviations: each bound holds with a probability of 97.7 %.
_SURE = 2.0


@dataclass(frozen=True, slots=True)
class SlicesSeen:
    """The slices of one job over some time, by how they ended."""

    worked: int
    empty: int
    unfinished: int
    """How many of the slices that worked ended with work left."""
    failed: int
    refused: int
    """How often it was drawn and not begun, to protect a host."""
    drawn: int
    """How often it was drawn, however that ended."""

    @classmethod
    def of(cls, outcomes: Mapping[Outcome, int], unfinished: int) -> SlicesSeen:
        """Return what was counted by outcome."""
        return cls(
            worked=outcomes.get(Outcome.RECRUITED, 0),
            empty=outcomes.get(Outcome.EMPTY, 0),
            unfinished=unfinished,
            failed=outcomes.get(Outcome.ERROR, 0),
            refused=sum(outcomes.get(outcome, 0) for outcome in REFUSALS),
            drawn=sum(outcomes.values()),
        )

    @property
    def judged(self) -> int:
        """How many slices show how much there was to do."""
        return self.worked + self.empty


@dataclass(frozen=True, slots=True)
class Proposal:
    """How much more often a job should be drawn, and why."""

    factor: float
    """What to multiply its rate by; 1.0 if nothing is to change."""
    why: str
    is_known: bool = True
    """False if what was seen does not suffice."""

    def changed(self, rate: float | None, step: float = math.inf) -> float | None:
        """Return the new rate, which changes by a factor of *step* at most."""
        if rate is None:
            return None
        return _rounded(min(1.0, rate * min(step, max(1 / step, self.factor))))

    def changed_every(
        self, every: float | None, step: float = math.inf
    ) -> float | None:
        """Return the new interval, which changes by a factor of *step* at most."""
        if every is None:
            return None
        return _rounded(every / min(step, max(1 / step, self.factor)))


def propose(
    seen: SlicesSeen, *, enough: int = ENOUGH_SLICES, needed: float = 0.0
) -> Proposal:
    """Return which change of pace these slices call for.

    Args:
        seen: the slices.
        enough: how many of them must show how much there was to do.
        needed: the least factor that keeps gaps short; 0.0 if gaps may be long.
    """
    judged = seen.judged
    if seen.failed > judged:
        return Proposal(1.0, "most slices raise: mend the job first", is_known=False)
    if seen.refused > seen.drawn / 2:
        return Proposal(1.0, MOSTLY_REFUSED, is_known=False)
    if needed > _NOTABLE:
        return Proposal(needed, "gaps would be longer than allowed")
    if judged < enough:
        why = f"{judged:,} of the {enough:,} slices that are needed to judge it"
        return Proposal(1.0, why, is_known=False)
    left, _ = _bounds(seen.unfinished, judged)
    leaving = _percent(seen.unfinished, judged)
    if left > _BEHIND:
        why = f"it falls behind: {leaving} of its slices end with work left"
        return Proposal(_MORE_WHEN_BEHIND, why)
    factor = fill_of_slices(left) / HIGHEST_FILL
    if factor > _NOTABLE:
        why = f"its slices are too full: {leaving} of them end with work left"
        return Proposal(factor, why)
    _, working = _bounds(seen.worked, judged)
    factor = max(working / HIGHEST_FILL, needed)
    if factor * _NOTABLE < 1.0:
        if not seen.worked:
            return Proposal(factor, f"none of its {judged:,} slices found work")
        why = f"only {_percent(seen.worked, judged)} of its slices find work"
        return Proposal(factor, why)
    if not seen.unfinished and seen.worked == judged:
        return Proposal(1.0, "every slice works, and none ends with work left")
    return Proposal(1.0, "slices are neither too full nor mostly empty")


def _bounds(part: int, whole: int) -> tuple[float, float]:
    """Return what a share surely is, at least and at most, by Wilson's formula."""
    share, extra = part / whole, _SURE**2 / whole
    middle = share + extra / 2
    spread = math.sqrt(extra * (share * (1 - share) + extra / 4))
    return (
        max(0.0, (middle - spread) / (1 + extra)),
        min(1.0, (middle + spread) / (1 + extra)),
    )


def _percent(part: int, whole: int) -> str:
    return f"{part / whole * 100:.3g} %"


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
