"""The arithmetic of the lottery: how a rate, a backlog and a gap are related.

The formulas are for slices that come at random moments, *slices* per second over the
whole fleet, each taking up to *batch* items of a backlog that grows by *garbage* items
per second. That is what a lottery over many calls gives. Calls that come more evenly do
a little better; a slice that repeats (`Duty.MORE`) does better still: then *batch* is
what all its repetitions take together.

`plan.py` combines the formulas; `visits` simulates the same backlog, slice by slice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from workstealing._checks import checked_number, checked_whole
from workstealing.errors import ConfigurationError

__all__ = (
    "DAY",
    "HIGHEST_FILL",
    "Backlog",
    "Drain",
    "Visit",
    "check_positive",
    "drain",
    "fill_of_slices",
    "gap_kept",
    "interval_for_slices",
    "longest_gap",
    "overlap",
    "share_of_wall_time",
    "slices_for_gap",
    "slices_for_throughput",
    "slices_of_interval",
    "steady_backlog",
    "tick_lateness",
    "untouched_quantile",
    "visits",
)

DAY = 86_400.0
"""Seconds."""

HIGHEST_FILL = 0.7
"""A plan fills slices to this share at most: the backlog explodes near 1.0."""

_HUGE = 1e300
_EULER = 0.5772156649015329
_MOST_ITEMS = 10**12


@dataclass(frozen=True, slots=True)
class Backlog:
    """A backlog that has settled."""

    root: float
    """P(n items) = (1 - root) * root**n; also the yield: slices that find work."""
    items: float
    """How many items wait, on average."""
    age: float
    """Seconds from garbage to removal: exponential with this mean, oldest first."""

    def late(self, seconds: float) -> float:
        """Return the share of items that get older than *seconds*."""
        return math.exp(-seconds / self.age)


@dataclass(frozen=True, slots=True)
class Drain:
    """How long a burst takes to be worked off, in seconds."""

    mean: float
    deviation: float


def steady_backlog(slices: float, garbage: float, batch: int) -> Backlog:
    """Return the backlog that settles; slices must take more than garbage comes."""
    capacity = _capacity(slices, garbage, batch)
    if garbage == 0:
        return Backlog(root=0.0, items=0.0, age=1 / slices)
    # With root = exp(-w), slices * (root + root**2 + … + root**batch) = garbage. The
    # sum falls with w, and w stays precise where the root itself would round to 1.
    aim = garbage / slices
    w = _crossing(
        lambda w: -math.expm1(-batch * w) * math.exp(-w) / -math.expm1(-w) - aim,
        2 * math.log1p(min((capacity - garbage) / garbage, _HUGE)) / (batch + 1),
        math.log(slices) - math.log(garbage)
        if slices / garbage > _HUGE
        else math.log1p(slices / garbage),
    )
    root = math.exp(-w)
    return Backlog(root, root / -math.expm1(-w), 1 / (slices * -math.expm1(-batch * w)))


def drain(burst: float, slices: float, garbage: float, batch: int) -> Drain:
    """Return how long *burst* items take to be gone, while more garbage comes."""
    check_positive(burst=burst)
    capacity = _capacity(slices, garbage, batch)
    spare = capacity - garbage
    mean = burst / spare
    variance = mean * (garbage / spare + batch * (capacity / spare)) / spare
    return Drain(mean, math.sqrt(variance))


def longest_gap(slices: float, horizon: float = DAY) -> float:
    """Return the longest time without a slice in *horizon* seconds, on average."""
    check_positive(slices=slices, horizon=horizon)
    expected = slices * horizon
    if expected > 20:
        return (math.log(slices) + math.log(horizon) + _EULER) / slices
    # The logarithm is an approximation for many slices; this series is exact.
    total, term = 0.0, 1.0
    for k in range(1, 100):
        total += term / k
        term *= -expected / (k + 1)
    return horizon * total


def tick_lateness(slices: float, share: float = 0.99) -> float:
    """Return the seconds within which a *share* of a schedule's ticks is fired.

    That is by recruits alone: a tick waits for the next slice, wherever that is.
    """
    check_positive(slices=slices, share=share)
    return -math.log1p(-share) / slices


def slices_for_gap(stale: float, horizon: float = DAY, failure: float = 0.01) -> float:
    """Return the slices per second that make a gap beyond *stale* improbable.

    P(a gap in *horizon*) is at most (1 + slices * (horizon - stale)) times
    exp(-slices * stale), the expected number of such gaps: that is set to *failure*.
    """
    check_positive(stale=stale, horizon=horizon)
    _check_probability(failure)
    if stale >= horizon:
        raise ConfigurationError(
            f"horizon must be longer than stale: {horizon!r} is not above {stale!r}"
        )
    others = min((horizon - stale) / stale, _HUGE)

    def excess(x: float) -> float:
        return math.log1p(x * others) - x - math.log(failure)

    high = 1.0
    while excess(high) > 0:
        high *= 2
    return _crossing(excess, 0.0, high) / stale


def gap_kept(slices: float, horizon: float = DAY, failure: float = 0.01) -> float:
    """Return the shortest *stale* for which *slices* per second are enough."""
    check_positive(slices=slices, horizon=horizon)
    _check_probability(failure)
    return _crossing(
        lambda stale: (
            math.log1p(slices * (horizon - stale)) - slices * stale - math.log(failure)
        ),
        0.0,
        horizon,
    )


def slices_for_throughput(garbage: float, batch: int) -> float:
    """Return the slices per second that work off *garbage* without being full."""
    check_positive(garbage=garbage, batch=batch)
    return garbage / (batch * HIGHEST_FILL)


def fill_of_slices(unfinished: float) -> float:
    """Return how full slices are, 0.0 to 1.0, if this share ends with work left.

    With a root r and batches of b items, r**b of the slices find a whole batch, and
    the mean of r, r**2, … r**b is how full they are; this is its limit for large b.
    Batches of a few items are a little less full.
    """
    if not 0.0 < unfinished < 1.0:
        return 1.0 if unfinished >= 1.0 else 0.0
    return (unfinished - 1.0) / math.log(unfinished)


def interval_for_slices(slices: float, calls: float, processes: int) -> float:
    """Return the `every=` that gives *slices* per second; 0.0 if none does."""
    check_positive(slices=slices, calls=calls, processes=processes)
    return max(0.0, processes * (1 / slices - 1 / calls))


def slices_of_interval(every: float, calls: float, processes: int) -> float:
    """Return the fleet's slices per second under `every=`.

    Each process waits *every* seconds, on average, and then for its next call.
    """
    check_positive(every=every, calls=calls, processes=processes)
    return 1 / (every / processes + 1 / calls)


def share_of_wall_time(slices: float, processes: int, slice_seconds: float) -> float:
    """Return side work's share of each process's time; may exceed 1.

    With a timeout for *slice_seconds* this is the share that an outage costs while
    no breaker is open.
    """
    check_positive(slices=slices, processes=processes, slice_seconds=slice_seconds)
    return slices / processes * slice_seconds


def untouched_quantile(rate: float, calls_per_request: float = 1.0) -> float:
    """Return the quantile of latency below which side work does not show.

    A share p = *rate* * *calls_per_request* of the requests does a slice. Quantile q of
    the latency is then at most the former quantile q / (1 - p), as long as q is below
    1 - p, which is returned; beyond it are the slices.
    """
    check_positive(rate=rate, calls_per_request=calls_per_request)
    return max(0.0, 1 - rate * calls_per_request)


def overlap(slices: float, slice_seconds: float) -> float:
    """Return the probability that a slice runs at the same time as another one."""
    check_positive(slices=slices, slice_seconds=slice_seconds)
    return -math.expm1(-2 * slices * slice_seconds)


def check_positive(**fields: float) -> None:
    """Refuse what is not a positive number, by its name; some may be 0."""
    for name, value in fields.items():
        if name in ("batch", "processes"):
            checked_whole(value, name, 1, _MOST_ITEMS)
        else:
            checked_number(value, name, zero=name in ("burst", "garbage"))


def _capacity(slices: float, garbage: float, batch: int) -> float:
    """Return the items per second that slices can take: more than there is garbage."""
    check_positive(slices=slices, garbage=garbage, batch=batch)
    capacity = slices * batch
    if not garbage < capacity < math.inf:
        raise ConfigurationError(
            f"slices are too few: {slices:g} per second of {batch} items each never"
            f" work off {garbage:g} items of garbage per second"
        )
    return capacity


def _check_probability(failure: float) -> None:
    check_positive(failure=failure)
    if failure >= 1:
        raise ConfigurationError(
            f"failure must be a probability below 1, not {failure!r}"
        )


def _crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that is positive at first becomes negative."""
    while low < (middle := low + (high - low) / 2) < high:
        if function(middle) > 0:
            low = middle
        else:
            high = middle
    return high


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
