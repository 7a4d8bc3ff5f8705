"""How a task ended, in few bytes; where a task is, in words."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing.errors import BadOutcome, TaskCancelled, TaskDead, TaskFailed
from workstealing.tasks.outcome import ErrorReport, State, TaskOutcome, TaskState

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
MILLISECONDS = st.integers(0, 2**53)
OUTCOMES = st.builds(
    TaskOutcome,
    state=st.sampled_from(["done", "failed", "dead", "cancelled"]),
    result=(TEXT | st.integers() | st.none()).map(
        lambda value: msgspec.Raw(msgspec.json.encode(value))
    ),
    error=st.none() | st.builds(ErrorReport, TEXT, TEXT, TEXT),
    reason=TEXT,
    worker=TEXT,
    ended=MILLISECONDS,
    took=MILLISECONDS,
    attempt=st.integers(1, 100),
)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_a_task_that_returned_nothing_takes_no_words() -> None:
    assert TaskOutcome().encode() == b"{}"
    assert TaskOutcome.read(b"{}") == TaskOutcome()
    assert bytes(TaskOutcome().result) == b"null"


def test_an_ordinary_outcome_is_short() -> None:
    outcome = TaskOutcome(
        result=msgspec.Raw(b"7"), worker="main.0", ended=1_790_000_000_003, took=3
    )

    assert len(outcome.encode()) <= 64
    assert outcome.began == 1_790_000_000_000


@given(OUTCOMES)
def test_an_outcome_is_read_as_it_was_written(outcome: TaskOutcome) -> None:
    written = outcome.encode()

    assert TaskOutcome.read(written) == outcome
    assert json.loads(written).get("attempt", 1) == outcome.attempt


@given(st.binary() | TEXT.map(str.encode))
def test_any_bytes_are_an_outcome_or_refused(written: bytes) -> None:
    try:
        outcome = TaskOutcome.read(written)
    except BadOutcome:
        return
    assert TaskOutcome.read(outcome.encode()) == outcome


def test_a_state_that_ends_nothing_is_no_outcome() -> None:
    with pytest.raises(BadOutcome, match="running"):
        TaskOutcome.read(b'{"state":"running"}')


def test_an_error_is_told_by_class_message_and_traceback() -> None:
    report = ErrorReport.of(_raised(ValueError("bad width")))

    assert (report.type, report.message) == ("ValueError", "bad width")
    assert report.traceback.startswith("Traceback")
    assert "in _raised" in report.traceback
    assert ErrorReport.of(Unspeakable()).type.endswith("test_outcome.Unspeakable")


@pytest.mark.parametrize(
    "error",
    [ValueError("x" * 100_000), ValueError("ä😀" * 10_000), Unspeakable(), KeyError()],
    ids=["long", "wide", "unspeakable", "empty"],
)
def test_what_is_told_of_an_error_is_bounded(error: BaseException) -> None:
    report = ErrorReport.of(_raised(error))

    assert len(report.message.encode()) <= 1024 + 3
    assert len(report.traceback.encode()) <= 8 * 1024 + 3
    assert TaskOutcome.read(TaskOutcome(error=report).encode()).error == report


def test_the_end_of_a_long_traceback_is_kept() -> None:
    try:
        raise ValueError("y" * 9000) from _raised(KeyError("first"))
    except ValueError as error:
        report = ErrorReport.of(error)

    assert report.traceback.startswith("…")
    assert report.traceback.endswith("yyy\n")


def test_an_error_with_a_broken_string_can_be_written() -> None:
    report = ErrorReport.of(_raised(ValueError("\ud800")))

    assert report.message == "\\ud800"
    assert TaskOutcome(state="failed", error=report).encode()


def test_a_caller_is_told_how_it_ended() -> None:
    report = ErrorReport("ValueError", "bad width", "Traceback …")

    failed = TaskOutcome(state="failed", error=report).problem("id1")
    dead = TaskOutcome(state="dead", reason="3 deaths").problem("id1")
    cancelled = TaskOutcome(state="cancelled", reason="by ann").problem("id1")

    assert TaskOutcome().problem("id1") is None
    assert isinstance(failed, TaskFailed)
    assert (failed.error, failed.message) == ("ValueError", "bad width")
    assert failed.traceback == "Traceback …"
    assert "id1 failed with ValueError: bad width" in str(failed)
    assert isinstance(dead, TaskDead)
    assert "given up: 3 deaths" in str(dead)
    assert isinstance(cancelled, TaskCancelled)
    assert str(cancelled) == "task id1 was cancelled: by ann"


@pytest.mark.parametrize("state", ["failed", "dead", "cancelled"])
def test_a_caller_is_told_even_if_the_worker_said_little(state: Any) -> None:
    assert "id1" in str(TaskOutcome(state=state).problem("id1"))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (TaskState(State.UNKNOWN), "unknown"),
        (TaskState(State.ASSIGNED, "main.3"), "assigned to main.3"),
        (
            TaskState(State.RUNNING, "main.3", 1_700_000_000_000),
            "running on main.3 since 2023-11-14T22:13:20.000Z",
        ),
        (
            TaskState(State.DELAYED, since_ms=1_700_000_000_500),
            "delayed until 2023-11-14T22:13:20.500Z",
        ),
        (
            TaskState(State.PARKED, reason="no worker can run a@2"),
            "parked: no worker can run a@2",
        ),
    ],
)
def test_where_a_task_is_can_be_said_in_words(state: TaskState, words: str) -> None:
    assert str(state) == words


def test_a_state_reads_as_its_value() -> None:
    assert str(State.DONE) == f"{State.DONE}" == "done"
