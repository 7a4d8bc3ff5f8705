"""A backlog under the lottery, played through: what the formulas are checked against.

Calls and garbage come at random moments; the lottery draws how many calls are dismissed
before the next recruit, as a recruiter does. Nothing here is used while a host enlists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from workstealing.errors import ConfigurationError
from workstealing.recruiting.planning import check_positive

__all__ = ("Visit", "visits")

_MANY = 100.0


@dataclass(frozen=True, slots=True)
class Visit:
    """One slice: when it came, how many items it found, how many it left."""

    time: float
    found: int
    left: int


def visits(
    random: Random,
    *,
    calls: float,
    rate: float,
    garbage: float,
    batch: int,
    burst: int = 0,
) -> Iterator[Visit]:
    """Yield one slice after another, without end, from a backlog of *burst* items."""
    check_positive(calls=calls, rate=rate, garbage=garbage, batch=batch, burst=burst)
    if rate > 1:
        raise ConfigurationError(f"rate must be 1.0 at most, not {rate!r}")
    time, backlog = 0.0, burst
    while True:
        waited = random.gammavariate(_calls_until_recruit(random, rate), 1 / calls)
        time += waited
        found = backlog + _arrivals(random, garbage * waited)
        backlog = max(0, found - batch)
        yield Visit(time, found, backlog)


def _calls_until_recruit(random: Random, rate: float) -> int:
    if rate == 1:
        return 1
    return 1 + int(math.log1p(-random.random()) / math.log1p(-rate))


def _arrivals(random: Random, mean: float) -> int:
    """Draw from a Poisson distribution; for a large mean from its normal limit."""
    if mean > _MANY:
        return max(0, round(random.gauss(mean, math.sqrt(mean))))
    number, left = 0, random.expovariate(1.0)
    while left < mean:
        number += 1
        left += random.expovariate(1.0)
    return number
