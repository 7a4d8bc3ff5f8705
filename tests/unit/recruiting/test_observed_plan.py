"""Which pace would be planned, going by the slices that were seen."""

from __future__ import annotations

import math
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing.recruiting.observed_plan import Proposal, SlicesSeen, propose
from workstealing.recruiting.plan_formulas import fill_of_slices, visits


def seen(
    worked: int = 0,
    empty: int = 0,
    unfinished: int = 0,
    failed: int = 0,
    refused: int = 0,
    conflicts: int = 0,
) -> SlicesSeen:
    drawn = worked + empty + failed + refused + conflicts
    return SlicesSeen(worked, empty, unfinished, failed, refused, drawn)


@pytest.mark.parametrize("batch", [20, 100])
@pytest.mark.parametrize("fill", [0.2, 0.5, 0.7, 0.9])
def test_how_full_slices_are_is_known_by_those_that_end_with_work_left(
    batch: int, fill: float
) -> None:
    slices = islice(
        visits(Random(4), calls=100, rate=0.01, garbage=fill * batch, batch=batch),
        40_000,
    )

    left = sum(visit.found >= batch for visit in slices) / 40_000

    assert fill_of_slices(left) == pytest.approx(fill, abs=0.03)


@pytest.mark.parametrize(
    ("slices", "factor", "why"),
    [
        (
            seen(worked=100, unfinished=100),
            2.0,
            "it falls behind: 100 % of its slices end with work left",
        ),
        (
            seen(worked=1000, unfinished=700),
            pytest.approx(1.177, abs=0.001),
            "its slices are too full: 70 % of them end with work left",
        ),
        (
            seen(worked=900, empty=100, unfinished=300),
            1.0,
            "slices are neither too full nor mostly empty",
        ),
        (seen(worked=500), 1.0, "every slice works, and none ends with work left"),
        (
            seen(worked=70, empty=930),
            pytest.approx(0.126, abs=0.005),
            "only 7 % of its slices find work",
        ),
        (
            seen(empty=100),
            pytest.approx(0.055, abs=0.001),
            "none of its 100 slices found work",
        ),
    ],
)
def test_a_pace_follows_what_is_certain(
    slices: SlicesSeen, factor: float, why: str
) -> None:
    assert propose(slices) == Proposal(factor, why)


@pytest.mark.parametrize(
    ("slices", "why"),
    [
        (seen(worked=3, empty=4), "7 of the 50 slices that are needed to judge it"),
        (seen(worked=10, failed=90), "most slices raise: mend the job first"),
        (
            seen(worked=10, refused=90),
            "most draws are refused to protect the hosts; no rate changes that",
        ),
    ],
)
def test_what_does_not_suffice_changes_nothing_and_says_so(
    slices: SlicesSeen, why: str
) -> None:
    assert propose(slices) == Proposal(1.0, why, is_known=False)


def test_turns_that_another_process_had_are_no_refusals() -> None:
    assert propose(seen(worked=100, refused=200, conflicts=900)).is_known


def test_gaps_that_must_be_kept_are_a_reason_for_more_and_against_less() -> None:
    assert propose(seen(empty=100), needed=3.0) == Proposal(
        3.0, "gaps would be longer than allowed"
    )
    assert propose(seen(empty=100), needed=0.5).factor == 0.5
    assert propose(seen(empty=100), needed=1.0).factor == 1.0


def test_a_change_is_bounded_by_its_step_and_by_every_call() -> None:
    less = Proposal(0.05, "")
    assert less.changed(0.01) == 0.0005
    assert less.changed(0.01, step=2.0) == 0.005
    assert less.changed_every(30.0, step=2.0) == 60.0
    assert less.changed(None) is None
    assert less.changed_every(None) is None
    assert Proposal(2.0, "").changed(0.8) == 1.0


counts = st.integers(min_value=0, max_value=10**9)


@given(counts, counts, counts, counts, counts, st.floats(0.0, 1e9))
def test_a_factor_is_always_a_positive_number(
    worked: int, empty: int, unfinished: int, failed: int, refused: int, needed: float
) -> None:
    # What comes from Redis may be anything; more unfinished than worked, too.
    slices = seen(worked, empty, min(unfinished, worked + empty), failed, refused)

    factor = propose(slices, needed=needed).factor

    assert 0.0 < factor < math.inf
    assert factor <= max(2.0, needed)
