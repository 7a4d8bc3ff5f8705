"""Which pace the slices that were seen speak for: more, less, or as it is.

A slice that works shows that there was something to do, not that there was much: a job
that returns None has always worked. What shows a backlog is a slice that ends with
`Duty.MORE`. So how full slices are is known within two bounds: at least as full as
those that ended with work left say, by the formulas of `plan`, and at most as if each
that worked had been full. Only what is certain by the nearer bound is proposed; in
between, a pace is good, or nothing speaks against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from workstealing.recruiting.plan_formulas import HIGHEST_FILL, fill_of_slices
from workstealing.telemetry.events import REFUSALS, Outcome

__all__ = ("ENOUGH_SLICES", "MOSTLY_REFUSED", "Proposal", "SlicesSeen", "propose")

ENOUGH_SLICES = 50
"""Fewer say too little."""

MOSTLY_REFUSED = "most draws are refused to protect the hosts; no rate changes that"
"""Why nothing is proposed for a job that hardly gets any slice."""

# Above this share of slices with work left, the backlog may grow at any speed.
_BEHIND = 0.9
_MORE_WHEN_BEHIND = 2.0
# Smaller changes are noise.
_NOTABLE = 1.1
# Standard deviations: what is certain is so with a probability of 97.7 %.
_SURE = 2.0


@dataclass(frozen=True, slots=True)
class SlicesSeen:
    """The slices of one job over some time, by how they ended."""

    worked: int
    empty: int
    unfinished: int
    """Those of the ones that worked which ended with work left."""
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
    """So many times as often; 1.0 if nothing is to change."""
    why: str
    is_known: bool = True
    """False if what was seen does not suffice."""

    def changed(self, rate: float | None, step: float = math.inf) -> float | None:
        """Return the rate that it leads to, in a step of *step* times at most."""
        if rate is None:
            return None
        return _rounded(min(1.0, rate * min(step, max(1 / step, self.factor))))

    def changed_every(
        self, every: float | None, step: float = math.inf
    ) -> float | None:
        """Return the interval that it leads to, in such a step."""
        if every is None:
            return None
        return _rounded(every / min(step, max(1 / step, self.factor)))


def propose(
    seen: SlicesSeen, *, enough: int = ENOUGH_SLICES, needed: float = 0.0
) -> Proposal:
    """Return what the slices that were seen speak for.

    Args:
        seen: the slices.
        enough: how many must have been judged.
        needed: the least factor, for gaps that must be kept; 0.0 if none must.
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
