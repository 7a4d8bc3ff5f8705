"""What differs from an undisturbed run is said in words that need no explanation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from workstealing.rehearsing.comparing import (
    StoryResult,
    problems_of,
    problems_of_undisturbed,
)
from workstealing.rehearsing.process_messages import StoryFindings
from workstealing.rehearsing.rehearsal import Rehearsal, StoryVerdict
from workstealing.rehearsing.rehearsal_server import InQueues
from workstealing.rehearsing.stories import RehearsalStory, StoryPoint
from workstealing.tasks.outcome import ErrorReport, TaskOutcome, outcome_unknown

KILLED = RehearsalStory("killed", StoryPoint("at step", 3))
DONE = TaskOutcome(result=msgspec.Raw(b"1"))


def seen(
    outcome: TaskOutcome | None = DONE,
    submitted: tuple[str, ...] = (),
    result: Any = 1,
    left: Any = None,
    **findings: Any,
) -> StoryResult:
    return StoryResult(
        StoryFindings(**findings), InQueues(outcome, submitted), result, left
    )


def judged(
    found: StoryResult, usual: StoryResult | None = None, **options: Any
) -> list[str]:
    options.setdefault("runs_once", False)
    return problems_of(KILLED, found, usual or seen(), **options)


def test_what_is_as_usual_is_no_problem() -> None:
    assert judged(seen(left={"a": 1}), seen(left={"a": 1})) == []


def test_another_result_is_shown_beside_the_usual_one() -> None:
    assert judged(seen(result="two")) == ["It returned 'two' instead of 1."]


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ({"a": 2, "b": 2}, "'a' is 2 instead of 1"),
        ({"b": 2}, "'a' is missing"),
        ({"a": 1, "b": 2, "c": 3}, "'c' is there too: 3"),
        ([1, 2], "[1, 2] instead of {'a': 1, 'b': 2}"),
    ],
)
def test_of_what_is_left_behind_only_the_difference_is_shown(
    left: Any, words: str
) -> None:
    usual = seen(left={"a": 1, "b": 2})

    assert judged(seen(left=left), usual) == [
        f"It left something else behind: {words}."
    ]


def test_many_differences_are_counted_after_three() -> None:
    usual = seen(left=dict.fromkeys(range(10), "x"))

    (problem,) = judged(seen(left={}), usual)

    assert problem.endswith("2 is missing, and 7 more.")


def test_long_values_are_cut_short() -> None:
    (problem,) = judged(seen(result="x" * 10_000))

    assert len(problem) < 200


def test_tasks_that_were_submitted_more_or_less_often_are_named() -> None:
    usual = seen(submitted=("mail {}", "bill {}"))

    assert judged(seen(submitted=("mail {}",) * 3), usual) == [
        "It submitted bill {} never, instead of once.",
        "It submitted mail {} 3 times, instead of once.",
    ]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (None, "It has not ended, and no process runs it any more."),
        (
            TaskOutcome(state="failed", error=ErrorReport("KeyError", "'a'")),
            "It failed: KeyError: 'a'.",
        ),
        (TaskOutcome(state="dead", reason="no luck"), "It was given up: no luck."),
        (TaskOutcome(state="cancelled"), "It is cancelled."),
    ],
)
def test_a_task_that_is_not_done_is_the_only_problem(
    outcome: TaskOutcome | None, words: str
) -> None:
    assert judged(seen(outcome, result=None, left=0)) == [words]


def test_what_must_not_run_twice_has_to_be_given_up_and_is_not_compared() -> None:
    unknown = TaskOutcome.read(outcome_unknown())

    given_up = seen(unknown, result=None, left="whatever", begun=1)
    run_again = seen(begun=2)

    assert judged(given_up, runs_once=True) == []
    assert judged(run_again, runs_once=True) == [
        "It was begun 2 times, and must not be run again.",
        "It was not given up with “outcome unknown”. It is done.",
    ]


def test_two_undisturbed_runs_that_differ_are_not_taken_for_a_defect() -> None:
    (problem,) = problems_of_undisturbed(seen(result=1), seen(result=2))

    assert problem == (
        "It returned 2 instead of 1: two runs of it differ. Give key= (--key) to"
        " compare only what must be the same."
    )
    assert problems_of_undisturbed(seen(), seen()) == []


def test_an_explanation_is_given_once_for_each_kind_that_failed() -> None:
    failed = StoryVerdict(
        "killed at step 1", "failed", ("It is late.",), "", "killed: x"
    )
    passed = StoryVerdict("report lost", "passed", explanation="report lost: y")
    rehearsal = Rehearsal("shop.count", 7, (failed, failed, passed))

    assert rehearsal.explanations == ("killed: x",)
    with pytest.raises(AssertionError) as raised:
        rehearsal.raise_for_failures()
    assert str(raised.value).splitlines() == [
        "shop.count failed 2 of 3 stories (seed 7):",
        *("failed  killed at step 1", "        It is late.") * 2,
        "passed  report lost",
        "killed: x",
    ]
