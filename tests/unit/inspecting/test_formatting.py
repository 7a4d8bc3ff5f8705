"""Numbers, durations and texts as people read them."""

from __future__ import annotations

import pytest

from workstealing.inspecting.formatting import (
    duration,
    duration_ms,
    one_decimal,
    percent,
    percentile,
    plural,
    significant,
    timestamp,
)

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0 ms"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (1500, "1.5 s"),
        (60_000, "1 min"),
        (119_999, "120 s"),
        (120_000, "2 min"),
        (3_600_000, "1 h"),
        (5_400_000, "90 min"),
        (7_200_000, "2 h"),
        (DAY_MS, "1 day"),
        (7 * DAY_MS, "7 days"),
        (400 * DAY_MS, "400 days"),
        (4000 * DAY_MS, "4,000 days"),
        (10**400, "104,249,991 days"),
    ],
)
def test_a_duration_is_in_the_unit_that_a_person_would_choose(
    ms: int, words: str
) -> None:
    assert duration_ms(ms) == words


def test_a_duration_shorter_than_a_millisecond_is_not_zero() -> None:
    assert duration(0.000_25) == "0.25 ms"
    assert duration(0.0615) == "61.5 ms"


def test_a_timestamp_is_in_utc_whatever_its_number() -> None:
    assert timestamp(1_700_000_000_999) == "2023-11-14 22:13:20Z"
    assert timestamp(10**18) == f"{10**18} ms after 1970"


def test_a_noun_is_plural_unless_there_is_one() -> None:
    assert plural(1, "worker") == "1 worker"
    assert plural(2000, "worker") == "2,000 workers"
    assert plural(0, "task is late", "tasks are late") == "0 tasks are late"


def test_numbers_have_few_digits() -> None:
    assert [significant(n) for n in (0, 0.699, 27.23, 1234.5, 2e9, 1e-5)] == [
        *("0", "0.699", "27.2", "1,234", "2.0e+09", "1.0e-05")
    ]
    assert [significant(n) for n in (999.4, 999.5, 999.9)] == ["999", "1,000", "1,000"]
    assert duration(0.9999) == "1,000 ms"
    assert percent(12.345) == "1,234 %"
    assert percent(-0.5) == "-50 %"
    assert [one_decimal(n) for n in (0.25, 99.94, 1234.5)] == ["0.2", "99.9", "1,234"]
    assert [percent(n) for n in (0, 0.00001, 0.412)] == ["0 %", "< 0.01 %", "41.2 %"]
    assert [percentile(n) for n in (0, 0.99719)] == ["none", "p99.71"]
