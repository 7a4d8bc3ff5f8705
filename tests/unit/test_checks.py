"""Every number and name that a user gives is checked by one module, in one way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from workstealing._checks import (
    LARGEST,
    LONGEST_NAME,
    checked_batch,
    checked_job_name,
    checked_name,
    checked_number,
    checked_rate,
    checked_seconds,
    checked_share,
    checked_text,
    checked_timeout,
    checked_whole,
    milliseconds,
)
from workstealing.errors import (
    ConfigurationError,
    InvalidInterval,
    InvalidName,
    InvalidRate,
)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, "workers must be 1 or more, not 0"),
        (LARGEST + 1, f"workers must be 1 to {LARGEST}, not {LARGEST + 1}"),
        (1 << 16609, f"workers must be 1 to {LARGEST}, not a number of 16610 bits"),
        (True, "workers must be a whole number, not True"),
        (2.0, "workers must be a whole number, not 2.0"),
        (None, "workers must be a whole number, not None"),
    ],
    ids=range(6),
)
def test_a_count_is_a_whole_number_within_its_bounds(number: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        checked_whole(number, "workers", 1)

    assert str(refused.value) == message
    assert checked_whole(1, "workers", 1) == 1


def test_a_batch_has_both_bounds_in_its_message() -> None:
    with pytest.raises(ConfigurationError, match="batch must be 1 to 1000, not 0"):
        checked_batch(0)
    assert checked_batch(1000) == 1000


@pytest.mark.parametrize(
    "check",
    [
        lambda value: checked_number(value, "beta"),
        lambda value: checked_share(value, "beta"),
        lambda value: checked_seconds(value, "beta"),
        lambda value: checked_timeout(value, "beta"),
    ],
)
@pytest.mark.parametrize(
    "value", ["1", True, 1j, Decimal(1), -1, float("nan"), float("inf"), 10**400]
)
def test_nothing_but_a_finite_real_number_passes(
    check: Callable[[Any], Any], value: Any
) -> None:
    with pytest.raises(ConfigurationError, match=r"^beta must be"):
        check(value)


@pytest.mark.parametrize(
    "check",
    [
        lambda value: checked_number(value, "beta"),
        lambda value: checked_share(value, "beta"),
        lambda value: checked_seconds(value, "beta"),
        checked_rate,
        checked_timeout,
    ],
)
@pytest.mark.parametrize("value", [1, 0.5, Fraction(1, 3)])
def test_any_real_number_becomes_a_float(
    check: Callable[[Any], Any], value: Any
) -> None:
    checked = check(value)

    assert type(checked) is float
    assert checked == pytest.approx(float(value))


def test_zero_passes_only_where_it_makes_sense() -> None:
    assert checked_number(0, "jitter", zero=True) == 0.0
    assert checked_seconds(0, "delay", zero=True) == 0.0
    assert checked_timeout(0) == 0.0
    assert checked_rate(0) == 0.0
    with pytest.raises(ConfigurationError, match="max_memory must be above 0 MiB"):
        checked_number(0, "max_memory", unit=" MiB")
    with pytest.raises(ConfigurationError, match="lease must be above 0 seconds"):
        checked_seconds(0, "lease")
    with pytest.raises(ConfigurationError, match=r"share must be a number above 0\.0"):
        checked_share(0, "share")


def test_a_timedelta_is_seconds() -> None:
    assert checked_seconds(timedelta(minutes=1), "lease") == 60.0
    assert milliseconds(timedelta(microseconds=1)) == 1


def test_a_duration_may_have_an_upper_bound_and_an_error_of_its_own() -> None:
    with pytest.raises(InvalidInterval) as refused:
        checked_seconds(11, "every=", most=10, error=InvalidInterval)

    assert (
        str(refused.value) == "every= must be above 0 seconds, and at most 10, not 11"
    )


def test_no_timeout_is_no_limit_and_a_thread_cannot_wait_longer_than_it_can() -> None:
    assert checked_timeout(None) is None
    with pytest.raises(ConfigurationError, match="and at most"):
        checked_timeout(1e300)


@pytest.mark.parametrize("rate", [-0.1, 1.1, "0.1", True, None])
def test_a_rate_is_a_share_of_calls(rate: Any) -> None:
    with pytest.raises(InvalidRate, match=r"from 0\.0 to 1\.0"):
        checked_rate(rate)


@pytest.mark.parametrize("name", ["", "a b", "a\n", "a{b}", "x" * 201, None, b"a"])
def test_a_name_fits_in_a_key_and_on_a_line(name: Any) -> None:
    with pytest.raises(InvalidName, match=r"^the name of a run must be 1 to 200"):
        checked_name(name, "the name of a run", frozenset("{}"))


def test_a_long_name_that_is_refused_does_not_fill_the_screen() -> None:
    with pytest.raises(InvalidName) as refused:
        checked_name("x" * 10_000, "an id")

    assert len(str(refused.value)) < LONGEST_NAME


@pytest.mark.parametrize("name", ["", "-a", "a b", "ä", "x" * 101, None])
def test_a_job_name_is_one_that_metrics_can_carry(name: Any) -> None:
    with pytest.raises(InvalidName, match=r"^a job's name must be"):
        checked_job_name(name)


def test_text_is_what_redis_can_store_as_utf_8() -> None:
    assert checked_text("") == ""
    with pytest.raises(ConfigurationError, match="a name must be a string of text"):
        checked_text("\ud800")


def test_the_checks_are_light_to_import() -> None:
    code = (
        "import sys; import workstealing._checks;"
        "print(sorted({'redis', 'asyncio', 'msgspec'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
