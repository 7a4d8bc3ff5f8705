"""The simulation plays by the rules, and the formulas agree with it."""

from __future__ import annotations

import math
import statistics
from itertools import islice, pairwise
from random import Random

import pytest

from workstealing.errors import ConfigurationError
from workstealing.recruiting.plan_formulas import (
    Visit,
    drain,
    gap_kept,
    longest_gap,
    steady_backlog,
    visits,
)


def test_equal_seeds_give_equal_visits() -> None:
    assert played(seed=5, number=50) == played(seed=5, number=50)
    assert played(seed=5, number=50) != played(seed=6, number=50)


def test_a_visit_takes_a_batch_at_most_and_never_more_than_there_is() -> None:
    for visit in played(seed=1, number=2000):
        assert visit.left == max(0, visit.found - 20)


def test_a_backlog_grows_between_visits_and_time_goes_on() -> None:
    for before, after in pairwise(played(seed=2, number=2000)):
        assert after.time > before.time
        assert after.found >= before.left


def test_the_burst_is_there_at_the_first_visit() -> None:
    first = next(visits(Random(1), calls=9, rate=0.5, garbage=0, batch=10, burst=77))

    assert (first.found, first.left) == (77, 67)


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.01])
def test_a_rate_is_the_share_of_calls_that_are_recruited(rate: float) -> None:
    endless = visits(Random(3), calls=50, rate=rate, garbage=0, batch=1)

    *_, last = islice(endless, 9999)

    assert last.time == pytest.approx(9999 / (50 * rate), rel=0.05)


@pytest.mark.parametrize(
    ("field", "value"),
    [("rate", 1.5), ("rate", 0), ("calls", -1), ("batch", 0), ("garbage", math.nan)],
)
def test_a_wrong_number_is_refused_by_name(field: str, value: float) -> None:
    arguments = {"calls": 9, "rate": 0.5, "garbage": 1, "batch": 1, field: value}

    with pytest.raises(ConfigurationError, match=field):
        next(visits(Random(1), **arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("garbage", "batch"),
    [(6.6, 20), (16.6, 20), (0.4, 1), (0.1, 100), (160, 200)],
)
def test_the_steady_backlog_is_the_one_of_the_formula(
    garbage: float, batch: int
) -> None:
    expected = steady_backlog(1.0, garbage, batch)

    found = [
        v.found for v in played(seed=7, number=30_000, garbage=garbage, batch=batch)
    ]

    assert statistics.fmean(found) == pytest.approx(expected.items, rel=0.1)
    worked = sum(1 for number in found if number) / len(found)
    assert worked == pytest.approx(expected.root, rel=0.05)


def test_the_age_of_garbage_is_exponential_with_the_mean_of_the_formula() -> None:
    expected = steady_backlog(1.0, 14.0, 20)

    ages = ages_at_removal(played(seed=8, number=30_000, garbage=14.0, batch=20))

    assert statistics.fmean(ages) == pytest.approx(expected.age, rel=0.1)
    late = sum(1 for age in ages if age > 5.0) / len(ages)
    assert late == pytest.approx(expected.late(5.0), rel=0.15)


def test_a_burst_drains_in_the_time_of_the_formula() -> None:
    expected = drain(4000, 1.0, 10.0, 20)

    taken = [
        next(
            v.time
            for v in visits(
                Random(seed), calls=100, rate=0.01, garbage=10.0, batch=20, burst=4000
            )
            if not v.left
        )
        for seed in range(150)
    ]

    assert statistics.fmean(taken) == pytest.approx(expected.mean, rel=0.05)
    assert statistics.stdev(taken) == pytest.approx(expected.deviation, rel=0.2)


@pytest.mark.parametrize("horizon", [0.5, 3.0, 15.0, 40.0, 400.0])
def test_the_longest_gap_is_the_one_of_the_formula(horizon: float) -> None:
    longest = [max(gaps(seed, horizon)) for seed in range(400)]

    assert statistics.fmean(longest) == pytest.approx(
        longest_gap(1.0, horizon), rel=0.08
    )


def test_gaps_beyond_the_target_are_as_rare_as_was_asked() -> None:
    horizon, failure = 100.0, 0.2
    stale = gap_kept(1.0, horizon, failure)

    failed = sum(max(gaps(seed, horizon)) > stale for seed in range(1000)) / 1000

    assert 0.14 <= failed <= 0.23


def played(
    seed: int, number: int, garbage: float = 10.0, batch: int = 20
) -> list[Visit]:
    """Play with one slice per second, on average."""
    endless = visits(Random(seed), calls=100, rate=0.01, garbage=garbage, batch=batch)
    return list(islice(endless, number))


def gaps(seed: int, horizon: float) -> list[float]:
    """Return the distances of slices in a horizon, with its begin and its end."""
    moments = [0.0]
    for visit in visits(Random(seed), calls=1000, rate=0.001, garbage=0, batch=1):
        if visit.time >= horizon:
            break
        moments.append(visit.time)
    return [after - before for before, after in pairwise([*moments, horizon])]


def ages_at_removal(visited: list[Visit]) -> list[float]:
    """Give each item a moment between two visits, and remove the oldest first."""
    random, waiting, ages = Random(0), [], []
    left, time = 0, 0.0
    for visit in visited:
        born = (random.uniform(time, visit.time) for _ in range(visit.found - left))
        waiting += sorted(born)
        taken = visit.found - visit.left
        ages += [visit.time - moment for moment in waiting[:taken]]
        del waiting[:taken]
        left, time = visit.left, visit.time
    return ages
