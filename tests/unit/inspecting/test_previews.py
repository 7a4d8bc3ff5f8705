"""What a list can still read from texts whose middle was cut out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing.tasks.outcome import ErrorReport, TaskOutcome
from workstealing.tasks.previews import (
    one_line_reason,
    preview_envelope,
    preview_outcome,
)


def test_a_whole_envelope_names_its_task() -> None:
    envelope = b'{"v":1,"name":"images.resize","version":3,"priority":2,"payload":{}}'

    preview = preview_envelope(envelope)

    assert preview.ability == "images.resize@3"
    assert preview.priority == 2


def test_a_cut_envelope_names_its_task_not_what_its_payload_contains() -> None:
    start = b'{"v":1,"name":"images.resize","version":3,"at":7,"payload":{"name":"ann'

    preview = preview_envelope(start + b'","version":9')

    assert preview.ability == "images.resize@3"
    assert preview.at == 7


@given(st.binary(max_size=200))
def test_no_envelope_and_no_outcome_makes_a_preview_raise(junk: bytes) -> None:
    assert isinstance(preview_envelope(junk).ability, str)
    assert isinstance(preview_outcome(junk).state, str)


def test_what_is_not_an_envelope_has_a_question_mark_for_a_name() -> None:
    assert preview_envelope(b"junk").ability == "?"
    assert preview_envelope(b'{"name": 5').ability == "5"


@pytest.mark.parametrize("state", ["done", "failed"])
def test_an_outcome_whose_middle_is_gone_has_state_worker_and_time(
    state: str,
) -> None:
    whole = TaskOutcome(
        state=state,  # type: ignore[arg-type]
        error=ErrorReport("ValueError", "x" * 9000),
        worker="pool.0",
        ended=1_700_000_000_000,
        took=12,
    ).encode()

    outcome = preview_outcome(whole[:600] + whole[-300:])

    assert outcome.state == state
    assert (outcome.worker, outcome.ended) == ("pool.0", 1_700_000_000_000)


def test_a_reason_is_one_line() -> None:
    error = ErrorReport("ValueError", "not\ntoday")

    assert (
        one_line_reason(TaskOutcome(state="failed", error=error)) == "ValueError: not"
    )
    assert one_line_reason(TaskOutcome(state="dead", reason="died")) == "died"
    assert one_line_reason(TaskOutcome()) == ""
