"""Times things against each other: rounds alternate, so noise hits both sides alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ("Budget", "alternate", "best", "report")


@dataclass(frozen=True, slots=True)
class Budget:
    """A figure that was measured, and what it should be."""

    what: str
    measured: float
    limit: float
    unit: str = "x"
    at_least: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether the figure is within its limit."""
        if self.at_least:
            return self.measured >= self.limit
        return self.measured <= self.limit


def alternate(
    rounds: int,
    sides: Mapping[str, Callable[[], object]],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Run each side in turn; return the seconds of every round.

    For work that only computes, a clock of CPU time keeps neighbours out of it.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for work in sides.values():
        work()
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, work in sides.items():
                began_at = clock()
                work()
                seconds[name].append(clock() - began_at)
    finally:
        gc.enable()
    return seconds


def best(seconds: list[float]) -> float:
    """Return the round that was disturbed least: the mean of the quickest quarter."""
    quickest = sorted(seconds)[: max(1, len(seconds) // 4)]
    return statistics.fmean(quickest)


def report(budgets: list[Budget]) -> bool:
    """Print a line per budget; tell whether all are kept."""
    for budget in budgets:
        sign = ">=" if budget.at_least else "<="
        mark = "kept" if budget.is_kept else "MISSED"
        print(
            f"{budget.what:<58} {budget.measured:>9.3g} {budget.unit:<5}"
            f" {sign} {budget.limit:<6g} {mark}"
        )
    return all(budget.is_kept for budget in budgets)
