"""When to recompute a cached value before it expires: a lottery per read.

The nearer the expiry and the longer computing takes, the likelier (XFetch, "Optimal
probabilistic cache stampede prevention", 2015): P = exp(-left / (beta x took)). The
plain rule has a long tail of needlessly early refreshes; this one is capped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from workstealing._checks import checked_number
from workstealing.chance import Chance

__all__ = ("XFETCH", "XFetch")


@dataclass(frozen=True, slots=True)
class XFetch:
    """Probabilistic early refresh.

    A *beta* above 1.0 refreshes earlier, 0.0 only at expiry. Never earlier than *cap*
    times beta times the time that computing took, and never in the first half of a
    value's life.
    """

    beta: float = 1.0
    cap: float = 5.0

    def __post_init__(self) -> None:
        for name, number in (("beta", self.beta), ("cap", self.cap)):
            checked_number(number, name, zero=True)

    def probability(self, left: float, took: float, ttl: float) -> float:
        """Return the chance of a refresh with *left* of *ttl*, all in one unit."""
        if left <= 0:
            return 1.0
        scale = self.beta * took
        if left >= min(self.cap * scale, ttl / 2):
            return 0.0
        return math.exp(-left / scale)

    def is_due(self, left: float, took: float, ttl: float, chance: Chance) -> bool:
        """Draw whether this read refreshes; if that is certain, draw nothing."""
        probability = self.probability(left, took, ttl)
        return probability >= 1.0 or (
            probability > 0.0 and chance.random() < probability
        )


XFETCH = XFetch()
