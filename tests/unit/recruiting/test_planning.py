"""The formulas of the lottery, and the plan made with them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing.errors import ConfigurationError
from workstealing.recruiting import plan_formulas
from workstealing.recruiting.plan import Forecast, Plan, plan
from workstealing.recruiting.plan_formulas import (
    drain,
    gap_kept,
    interval_for_slices,
    longest_gap,
    overlap,
    share_of_wall_time,
    slices_for_gap,
    slices_for_throughput,
    slices_of_interval,
    steady_backlog,
    untouched_quantile,
)

SHOP = {
    "calls_day": 1000,
    "calls_night": 50,
    "processes": 50,
    "garbage": 2,
    "batch": 20,
    "stale": 600,
}

any_positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
sensible = st.floats(1e-6, 1e6)
batches = st.integers(1, 10_000)
fills = st.floats(1e-6, 0.999)


# The formulas


@pytest.mark.parametrize(
    ("garbage", "items"), [(20 / 3, 7.20), (50 / 3, 55.5), (19, 203)]
)
def test_the_backlog_is_the_one_that_was_simulated(
    garbage: float, items: float
) -> None:
    assert steady_backlog(1.0, garbage, 20).items == pytest.approx(items, rel=0.01)


@given(slices=sensible, fill=fills, batch=batches)
def test_the_root_solves_its_equation(slices: float, fill: float, batch: int) -> None:
    garbage = slices * batch * fill

    z = steady_backlog(slices, garbage, batch).root

    assert 0 < z < 1
    taken = slices * math.fsum(z**k for k in range(1, batch + 1))
    assert taken == pytest.approx(garbage, rel=1e-6)


@given(slices=sensible, fill=fills, batch=batches)
def test_the_backlog_is_its_age_times_its_growth(
    slices: float, fill: float, batch: int
) -> None:
    garbage = slices * batch * fill

    backlog = steady_backlog(slices, garbage, batch)

    assert backlog.items == pytest.approx(backlog.age * garbage, rel=1e-6)
    assert backlog.age >= 1 / slices * (1 - 1e-9)


def test_slices_that_take_everything_leave_garbage_for_one_mean_distance() -> None:
    backlog = steady_backlog(0.5, 20.0, 10**9)

    assert backlog.age == pytest.approx(2.0)
    assert backlog.root == pytest.approx(20 / 20.5)


def test_without_garbage_there_is_no_backlog() -> None:
    backlog = steady_backlog(0.5, 0, 20)

    assert (backlog.items, backlog.root, backlog.age) == (0, 0, 2)


def test_slices_that_garbage_outruns_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="slices are too few"):
        steady_backlog(1.0, 20, 20)
    with pytest.raises(ConfigurationError, match="slices are too few"):
        drain(100, 1.0, 21, 20)


@given(slices=any_positive, garbage=any_positive, batch=st.integers(1, 10**12))
def test_no_number_makes_the_backlog_overflow(
    slices: float, garbage: float, batch: int
) -> None:
    try:
        backlog = steady_backlog(slices, garbage, batch)
        burst = drain(garbage, slices, garbage, batch)
    except ConfigurationError:
        assert not garbage < slices * batch < math.inf
    else:
        numbers = (
            backlog.root,
            backlog.items,
            backlog.age,
            burst.mean,
            burst.deviation,
        )
        assert not any(math.isnan(number) or number < 0 for number in numbers)


def test_the_drain_of_a_burst_is_the_one_that_was_simulated() -> None:
    burst = drain(20_000, 3.0, 10, 20)

    assert burst.mean == pytest.approx(20_000 / 50)
    assert burst.deviation == pytest.approx(math.sqrt(20_000 * 1210 / 50**3))


def test_no_burst_is_drained_at_once() -> None:
    assert drain(0, 3.0, 10, 20) == plan_formulas.Drain(0, 0)


@given(slices=any_positive, horizon=any_positive)
def test_no_gap_is_longer_than_the_horizon(slices: float, horizon: float) -> None:
    assert 0 <= longest_gap(slices, horizon) <= horizon * (1 + 1e-9)


def test_the_longest_gap_of_many_slices_grows_with_the_logarithm() -> None:
    assert longest_gap(0.05, 86_400) == pytest.approx(
        (math.log(4320) + 0.577) / 0.05, rel=1e-4
    )


def test_both_ways_to_reckon_the_longest_gap_meet() -> None:
    below, above = longest_gap(1.0, 20), longest_gap(1.0, 20.000001)

    assert below == pytest.approx(above, rel=1e-6)


@given(stale=st.floats(1e-3, 1e5), failure=st.floats(1e-9, 0.999))
def test_the_slices_for_a_gap_are_just_enough(stale: float, failure: float) -> None:
    horizon = stale * 150

    slices = slices_for_gap(stale, horizon, failure)

    expected_gaps = (1 + slices * (horizon - stale)) * math.exp(-slices * stale)
    assert expected_gaps == pytest.approx(failure, rel=1e-6)
    assert gap_kept(slices, horizon, failure) == pytest.approx(stale, rel=1e-6)


def test_the_slices_for_a_gap_agree_with_the_known_iteration() -> None:
    slices = 1.0
    for _ in range(100):
        slices = (math.log(86_400 / (600 * 0.01)) + math.log(slices * 600)) / 600

    assert slices_for_gap(600, 86_400, 0.01) == pytest.approx(slices, rel=0.01)


@given(stale=any_positive, horizon=any_positive, failure=st.floats(1e-300, 0.9999))
def test_no_number_makes_the_gap_overflow(
    stale: float, horizon: float, failure: float
) -> None:
    if stale < horizon:
        assert slices_for_gap(stale, horizon, failure) > 0
    else:
        with pytest.raises(ConfigurationError, match="horizon"):
            slices_for_gap(stale, horizon, failure)


@pytest.mark.parametrize("failure", [0, 1, 1.5, -0.1, math.nan])
def test_a_failure_that_is_no_probability_is_refused(failure: float) -> None:
    with pytest.raises(ConfigurationError, match="failure"):
        slices_for_gap(600, 86_400, failure)
    with pytest.raises(ConfigurationError, match="failure"):
        gap_kept(0.02, 86_400, failure)


def test_slices_for_throughput_are_seven_tenths_full() -> None:
    assert slices_for_throughput(14, 20) == pytest.approx(1.0)


@given(every=sensible, calls=sensible, processes=st.integers(1, 10_000))
def test_an_interval_and_its_slices_are_two_names_of_one_pace(
    every: float, calls: float, processes: int
) -> None:
    slices = slices_of_interval(every, calls, processes)

    assert slices <= calls
    back = interval_for_slices(slices, calls, processes)
    assert back == pytest.approx(every, rel=1e-3, abs=1e-8 * processes / slices)


def test_an_interval_gives_the_slices_that_were_simulated() -> None:
    assert slices_of_interval(50 / 3, 5, 50) == pytest.approx(1.875)
    assert slices_of_interval(50 / 3, 1000, 50) == pytest.approx(2.99, abs=0.01)


def test_more_slices_than_calls_have_no_interval() -> None:
    assert interval_for_slices(6, 5, 50) == 0


def test_the_cost_formulas() -> None:
    assert share_of_wall_time(3.0, 50, 0.025) == pytest.approx(0.0015)
    assert overlap(1.0, 0.02) == pytest.approx(1 - math.exp(-0.04))


@pytest.mark.parametrize(
    ("rate", "calls", "quantile"),
    [(0.003, 1, 0.997), (0.003, 10, 0.97), (0.5, 4, 0.0)],
)
def test_quantiles_below_the_share_of_slow_requests_are_untouched(
    rate: float, calls: float, quantile: float
) -> None:
    assert untouched_quantile(rate, calls) == pytest.approx(quantile)


# The plan


def test_the_rate_is_the_larger_of_both_rules() -> None:
    patient = plan(**SHOP, failure=0.01)
    busy = plan(**{**SHOP, "garbage": 20})

    assert patient.rate >= patient.rate_for_throughput > patient.rate_for_gap
    assert patient.rate_for_gap == pytest.approx(slices_for_gap(600) / 50)
    assert busy.rate == pytest.approx(20 / (50 * 20 * 0.7), rel=0.01)


def test_a_gap_target_alone_can_decide() -> None:
    made = plan(**{**SHOP, "garbage": 0, "stale": 60})

    assert made.rate == pytest.approx(slices_for_gap(60) / 50, rel=0.01)
    assert made.rate >= made.rate_for_gap
    assert made.night.backlog.items == 0


def test_the_quietest_hours_decide_whichever_they_are() -> None:
    swapped = {**SHOP, "calls_day": 50, "calls_night": 1000}

    assert plan(**swapped).rate == plan(**SHOP).rate


def test_the_rate_has_three_digits_and_is_never_rounded_down() -> None:
    made = plan(**SHOP)

    assert made.rate == float(f"{made.rate:.3g}")
    assert made.rate >= max(made.rate_for_gap, made.rate_for_throughput)


def test_night_is_slower_than_day_but_keeps_its_promise() -> None:
    made = plan(**SHOP)

    assert made.night.backlog.age > made.day.backlog.age
    assert made.night.drain.mean > made.day.drain.mean
    assert made.night.longest_gap < SHOP["stale"]
    assert made.night.share < made.day.share


def test_an_interval_does_by_night_what_the_rate_does_and_less_by_day() -> None:
    made = plan(**SHOP)

    assert made.every is not None
    assert made.every_night is not None
    assert made.every_day is not None
    assert made.every_night.slices == pytest.approx(made.night.slices, rel=0.02)
    assert made.every_day.slices < made.day.slices / 2


def test_a_rate_of_one_has_no_interval() -> None:
    made = plan(**{**SHOP, "calls_night": 2 / (20 * 0.7)})

    assert made.rate == 1.0
    assert (made.every, made.every_day, made.every_night) == (None, None, None)


def test_garbage_that_no_rate_outruns_is_refused_with_the_batch_that_would_do() -> None:
    with pytest.raises(ConfigurationError, match="Raise batch to 143 or more"):
        plan(**{**SHOP, "garbage": 5000})

    assert plan(**{**SHOP, "garbage": 5000, "batch": 143}).rate <= 1.0


def test_a_gap_that_no_rate_keeps_is_refused_with_the_one_that_it_would() -> None:
    impatient = {**SHOP, "garbage": 0, "calls_night": 0.1}

    with pytest.raises(ConfigurationError, match="Raise stale to 137 s or more"):
        plan(**{**impatient, "stale": 60})

    assert plan(**{**impatient, "stale": 137}).rate <= 1.0


@pytest.mark.parametrize("field", [*SHOP, "horizon", "slice_seconds", "failure"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "3", True, None])
def test_a_number_that_makes_no_sense_is_refused_by_name(
    field: str, value: Any
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{field} must be"):
        plan(**{**SHOP, field: value})


@pytest.mark.parametrize("field", [name for name in SHOP if name != "garbage"])
def test_nothing_but_garbage_may_be_zero(field: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{field} must be"):
        plan(**{**SHOP, field: 0})


@pytest.mark.parametrize("field", ["batch", "processes"])
def test_what_is_counted_is_whole(field: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{field} must be a whole number"):
        plan(**{**SHOP, field: 2.5})


wide = st.floats(1e-30, 1e30)


@given(
    calls_day=wide,
    calls_night=wide,
    processes=st.integers(1, 10**12),
    garbage=st.one_of(st.just(0.0), wide),
    batch=st.integers(1, 10**12),
    stale=wide,
    failure=st.floats(1e-30, 0.9999),
    horizon=wide,
    slice_seconds=wide,
    burst=st.one_of(st.just(0.0), wide),
    calls_per_request=wide,
)
def test_any_plan_is_refused_or_keeps_its_promises(**numbers: Any) -> None:
    try:
        made = plan(**numbers)
    except ConfigurationError:
        return

    assert_sound(made, numbers)


@given(
    calls_day=st.floats(10, 1e6),
    calls_night=st.floats(0.1, 1e4),
    processes=st.integers(1, 1000),
    garbage=st.one_of(st.just(0.0), st.floats(1e-6, 100)),
    batch=st.integers(50, 1000),
    stale=st.floats(300, 10_000),
)
def test_a_usual_plan_keeps_its_promises(**numbers: Any) -> None:
    try:
        made = plan(**numbers)
    except ConfigurationError as refusal:
        assert "calls_night is too low" in str(refusal)  # noqa: PT017
        return

    assert_sound(made, numbers)


def assert_sound(made: Plan, numbers: dict[str, Any]) -> None:
    assert 0 < made.rate <= 1
    forecasts = [made.day, made.night, made.every_day, made.every_night]
    for forecast in filter(None, forecasts):
        assert all(number >= 0 for number in flat(forecast))
        assert forecast.longest_gap <= numbers.get("horizon", plan_formulas.DAY) * (
            1 + 1e-9
        )
        full = numbers["garbage"] / (forecast.slices * numbers["batch"])
        assert full <= plan_formulas.HIGHEST_FILL * (1 + 1e-6)
        failure = numbers.get("failure", 0.01)
        horizon = numbers.get("horizon", plan_formulas.DAY)
        kept = gap_kept(forecast.slices, horizon, failure)
        assert kept <= numbers["stale"] * (1 + 1e-6)


def flat(forecast: Forecast) -> list[float]:
    numbers: list[float] = []
    for value in dataclasses.asdict(forecast).values():
        numbers += value.values() if isinstance(value, dict) else [value]
    return numbers
