"""What a list can still tell of texts whose middle was cut out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing.inspecting.heads import heading_of, outcome_of, reason_of
from workstealing.tasks.outcome import ErrorReport, TaskOutcome


def test_a_whole_envelope_tells_its_task() -> None:
    envelope = b'{"v":1,"name":"images.resize","version":3,"priority":2,"payload":{}}'

    heading = heading_of(envelope)

    assert heading.ability == "images.resize@3"
    assert heading.priority == 2


def test_a_cut_envelope_tells_its_task_not_what_its_payload_says() -> None:
    start = b'{"v":1,"name":"images.resize","version":3,"at":7,"payload":{"name":"ann'

    heading = heading_of(start + b'","version":9')

    assert heading.ability == "images.resize@3"
    assert heading.at == 7


@given(st.binary(max_size=200))
def test_no_envelope_and_no_outcome_upsets_the_reader(junk: bytes) -> None:
    assert isinstance(heading_of(junk).ability, str)
    assert isinstance(outcome_of(junk).state, str)


def test_what_is_no_envelope_has_a_question_mark_for_a_name() -> None:
    assert heading_of(b"junk").ability == "?"
    assert heading_of(b'{"name": 5').ability == "5"


@pytest.mark.parametrize("state", ["done", "failed"])
def test_an_outcome_whose_middle_is_gone_tells_state_worker_and_time(
    state: str,
) -> None:
    whole = TaskOutcome(
        state=state,  # type: ignore[arg-type]
        error=ErrorReport("ValueError", "x" * 9000),
        worker="pool.0",
        ended=1_700_000_000_000,
        took=12,
    ).encode()

    outcome = outcome_of(whole[:600] + whole[-300:])

    assert outcome.state == state
    assert (outcome.worker, outcome.ended) == ("pool.0", 1_700_000_000_000)


def test_a_reason_is_one_line() -> None:
    error = ErrorReport("ValueError", "not\ntoday")

    assert reason_of(TaskOutcome(state="failed", error=error)) == "ValueError: not"
    assert reason_of(TaskOutcome(state="dead", reason="died")) == "died"
    assert reason_of(TaskOutcome()) == ""
