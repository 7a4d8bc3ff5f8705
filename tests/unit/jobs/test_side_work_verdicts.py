"""What is said of a job of the fleet, going by what was counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workstealing.jobs.fleet_side_work import FleetJob
from workstealing.jobs.side_work_rows import why_text
from workstealing.jobs.side_work_verdicts import Verdict
from workstealing.telemetry.events import Outcome

HOUR = 3600.0


def job(pace: dict[str, Any] | None = None, **counted: int) -> FleetJob:
    """Return a job that two processes have had for an hour."""
    unfinished = counted.pop("unfinished", 0)
    wall_seconds = counted.pop("wall_seconds", HOUR)
    outcomes = {outcome: counted.pop(outcome.value, 0) for outcome in Outcome}
    assert not counted
    return FleetJob(
        name="sweep",
        host="",
        hosts=2,
        outcomes=outcomes,
        unfinished=unfinished,
        rounds=0,
        seconds=1.0,
        longest=0.1,
        overran=0,
        process_seconds=2 * wall_seconds,
        wall_seconds=wall_seconds,
        calls=36_000,
        last_productive_ms=None,
        last_error="",
        **{"rate": None, "every": None, "of_fleet": False, **(pace or {"rate": 0.01})},
    )


@pytest.mark.parametrize(
    ("seen", "kind", "words"),
    [
        (
            job(recruited=80, empty=20),
            Verdict.GOOD,
            "works: 80 % of its slices find work",
        ),
        (
            job(empty=20),
            Verdict.USELESS,
            "does nothing: none of 20 slices found work",
        ),
        (job(empty=3), Verdict.UNKNOWN, "too early to say: 3 slices so far"),
        (
            job(recruited=2, budget=98),
            Verdict.STARVING,
            (
                "starving: 98 % of its draws are refused: side work has used up"
                " its share of time (budget)"
            ),
        ),
        (
            job(),
            Verdict.STARVING,
            "starving: not drawn for 1 h; its pace is too low for this traffic",
        ),
        (job(wall_seconds=60), Verdict.UNKNOWN, "too early to say: 0 slices so far"),
        (job({"rate": 0.0}), Verdict.UNKNOWN, "switched off: its rate is 0"),
        (
            job({"rate": 0.0}, budget=90),
            Verdict.UNKNOWN,
            "switched off: its rate is 0",
        ),
        (
            job({"every": 60.0}, recruited=20),
            Verdict.STARVING,
            (
                "starving: 20 slices instead of 120; its hosts enlist too rarely,"
                " or refuse it"
            ),
        ),
        (
            job({"every": 60.0, "of_fleet": True}, recruited=58, conflict=900),
            Verdict.GOOD,
            "works: 100 % of its slices find work",
        ),
        (
            job({"every": 60.0, "of_fleet": True}, recruited=10, conflict=900),
            Verdict.STARVING,
            (
                "starving: 10 slices instead of 60; its hosts enlist too rarely,"
                " or refuse it"
            ),
        ),
        (job(error=3, open=200), Verdict.FAILING, "failing: 3 of 3 slices raised"),
        (
            job(recruited=10, error=90),
            Verdict.FAILING,
            "failing: 90 of 100 slices raised",
        ),
        (
            job(recruited=100, unfinished=95),
            Verdict.BEHIND,
            "falls behind: 95 % of its slices end with work left",
        ),
    ],
)
def test_a_verdict_says_in_words_how_a_job_fares(
    seen: FleetJob, kind: Verdict, words: str
) -> None:
    assert (seen.verdict.kind, str(seen.verdict)) == (kind, words)


def test_only_what_somebody_can_change_needs_a_look() -> None:
    assert job(empty=20).verdict.needs_a_look
    assert not job(recruited=1).verdict.needs_a_look
    assert not job(empty=1).verdict.needs_a_look


def test_a_step_that_was_just_taken_is_not_proposed_again() -> None:
    """The hour that was seen is still that of the rate before."""
    raised = job({"rate": 0.02}, recruited=360, unfinished=350)
    lowered = job({"rate": 0.005}, recruited=144, empty=216)

    changed = "its rate was changed after most slices that were seen"
    assert (raised.proposal().factor, raised.proposal().why) == (1.0, changed)
    assert (lowered.proposal().factor, lowered.proposal().why) == (1.0, changed)


def test_a_plan_from_what_was_seen_keeps_the_gaps_that_are_asked_for() -> None:
    seen = job(recruited=36, empty=324)

    assert seen.proposal().factor == pytest.approx(0.1945, abs=0.0001)
    # 360 slices an hour are one in 10 s; gaps of 20 s need far more, by `plan`.
    assert seen.proposal(stale=20.0).why == "gaps would be longer than allowed"
    assert seen.proposal(stale=20.0).factor == pytest.approx(7.85, abs=0.1)
    assert seen.proposal(stale=3600.0).factor == pytest.approx(0.1945, abs=0.0001)


def test_turns_of_a_fleet_come_regularly_so_gaps_are_an_interval_or_two() -> None:
    regular = job({"every": 2.0, "of_fleet": True}, recruited=1800)

    assert regular.proposal(stale=10.0).factor == 1.0
    rare = job({"every": 30.0, "of_fleet": True}, recruited=120)
    assert rare.proposal(stale=60.0).factor == 1.0
    assert rare.proposal(stale=40.0).why == "gaps would be longer than allowed"
    assert rare.proposal(stale=40.0).changed_every(rare.every) == 20.0
    idle = job({"every": 2.0, "of_fleet": True}, empty=1800)
    assert idle.proposal(stale=10.0).changed_every(idle.every) == 5.0


def test_what_keeps_most_draws_from_becoming_slices_is_said_with_a_next_step() -> None:
    assert job(recruited=10, budget=80, busy=10).proposal().why == (
        "most draws are refused: side work has used up its share. Raise share=, or"
        " lower the rate of the job that takes most of the time"
    )
    assert job(recruited=10, open=80, budget=10).proposal().why == (
        "most draws are refused: what it depends on has failed; no rate changes that"
    )


def test_the_job_that_takes_most_of_the_time_is_named_where_the_share_is_used_up() -> (
    None
):
    refused, busy = job(recruited=10, budget=90), job(recruited=500)
    busy = replace(busy, name="brief", seconds=24.0)
    jobs = [refused, busy]

    assert why_text(refused.proposal(), jobs).endswith(
        "of the job that takes most of the time (brief, 0.333 %)"
    )
    assert why_text(busy.proposal(), jobs) == busy.proposal().why
