"""How many workers a pool should have, by its backlog. Pure: it is told the time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from workstealing.errors import ConfigurationError
from workstealing.tasks.checking import checked_seconds, checked_whole

__all__ = ("Autoscaling", "Scaler")


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """Between which numbers, and by what."""

    least: int
    most: int
    backlog: int
    """Tasks per worker, due and not ended, that are fine."""
    cooldown: float
    """Seconds for which fewer must have been enough before there are fewer."""

    def __post_init__(self) -> None:
        checked_whole(self.least, "least", 1)
        checked_whole(self.most, "most", 1)
        checked_whole(self.backlog, "backlog", 1)
        checked_seconds(self.cooldown, "cooldown", zero=True)
        if self.most < self.least:
            raise ConfigurationError(
                f"most is at least least, unlike {self.most} and {self.least}"
            )


class Scaler:
    """Grows at once, and shrinks only to what was enough all through a cool-down."""

    def __init__(self, plan: Autoscaling) -> None:
        self.plan = plan
        self._needed: list[tuple[float, int]] = []

    def decide(self, now: float, workers: int, due: int) -> int:
        """Return how many there should be."""
        plan = self.plan
        needed = min(plan.most, max(plan.least, math.ceil(due / plan.backlog)))
        self._needed.append((now, needed))
        if needed >= workers:
            self._needed.clear()
            return needed
        if now - self._needed[0][0] < plan.cooldown:
            return min(max(workers, plan.least), plan.most)
        enough = max(number for _, number in self._needed)
        self._needed.clear()
        return enough
