"""Texts of others can neither control a terminal nor forge a line of a log."""

from __future__ import annotations

import logging
import pickle
import sys

import pytest

from workstealing._logs import BackgroundLogger, flush_logs
from workstealing._printing import (
    escape_record,
    escaping_logger,
    on_one_line,
    printable,
)
from workstealing.errors import (
    BadSignature,
    GroupIncomplete,
    InputEnded,
    NotPermitted,
    NotReplicated,
    PayloadInvalid,
    RedisError,
    ResultTimeout,
    ScheduleNotFound,
    TaskCancelled,
    TaskDead,
    TaskFailed,
    WorkStealingError,
)
from workstealing.tasks.outcome import State, TaskState
from workstealing.tasks.retry import GiveUp, Retry, Snooze

TRICK = "\x1b[2J\r\n12:00:00 ERROR forged\u202e"
SHOWN = r"\x1b[2J\r\n12:00:00 ERROR forged\u202e"


def test_a_text_cannot_control_the_terminal() -> None:
    assert printable("zwei\nZeilen, größer") == "zwei\nZeilen, größer"
    assert printable("\x1b[2Jgone\r") == "\\x1b[2Jgone\\r"
    assert printable("turned \u202e round") == "turned \\u202e round"


def test_a_text_on_one_line_has_no_other_lines() -> None:
    assert on_one_line(TRICK) == SHOWN
    assert on_one_line("größer") == "größer"


@pytest.mark.parametrize(
    "error",
    [
        TaskFailed("id", "ValueError", TRICK),
        TaskDead("id", TRICK),
        TaskCancelled("id", TRICK),
        BadSignature("id", TRICK),
        PayloadInvalid("task", "field", TRICK),
        NotPermitted("task", TRICK, "", "permission"),
        RedisError(TRICK),
        ResultTimeout(TRICK),
        ScheduleNotFound(TRICK),
        GroupIncomplete(TRICK, 1, 2),
        InputEnded(TRICK),
        GiveUp(TRICK),
        Retry(1, TRICK),
        Snooze(1, TRICK),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_quotes_others_on_one_line(error: WorkStealingError) -> None:
    assert SHOWN in str(error)
    assert str(error).isprintable()
    assert TRICK in pickle.loads(pickle.dumps(error)).args


def test_an_error_quotes_its_cause_on_one_line() -> None:
    error = NotReplicated(("id",), 0, 1)
    error.__cause__ = ValueError(TRICK)

    assert SHOWN in str(error)
    assert str(error).isprintable()


def test_a_state_is_told_on_one_line() -> None:
    assert str(TaskState(State.FAILED, TRICK, reason=TRICK)).isprintable()


@pytest.mark.parametrize("kind", ["background", "plain"])
def test_a_log_line_cannot_be_forged(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    logger = (
        BackgroundLogger("workstealing.test_printing")
        if kind == "background"
        else escaping_logger("workstealing.test_printing")
    )

    logger.warning("task %s, attempt %d: %s", TRICK, 3, ValueError(TRICK))
    flush_logs()

    assert caplog.messages == [f"task {SHOWN}, attempt 3: {SHOWN}"]


def test_a_traceback_in_a_log_keeps_its_lines_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    try:
        raise ValueError(TRICK)
    except ValueError as error:
        BackgroundLogger("workstealing.test_printing").error("failed", error=error)
    flush_logs()

    text = logging.Formatter().format(caplog.records[0])
    assert text.splitlines()[:2] == ["failed", "Traceback (most recent call last):"]
    assert "ValueError: \\x1b[2J\\r\n    12:00:00 ERROR forged\\u202e" in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_the_middle_of_a_huge_message_is_cut_out_of_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    try:
        raise ValueError("first" + "x" * 10_000_000 + "last")
    except ValueError as error:
        BackgroundLogger("workstealing.test_printing").error("failed", error=error)
    flush_logs()

    text = logging.Formatter().format(caplog.records[0])
    assert len(text) < 70_000
    assert 'raise ValueError("first"' in text
    assert "ValueError: firstxxx" in text
    assert text.endswith("xxxlast")


def test_a_traceback_that_is_safe_is_left_to_the_formatter() -> None:
    error = ValueError("one line")
    info = (ValueError, error, None)
    record = logging.LogRecord("name", logging.ERROR, "", 1, "failed", (), info)

    assert escape_record(record)
    assert not record.exc_text


def test_an_error_that_cannot_be_written_does_not_stop_logging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("not now")

    logger = escaping_logger("workstealing.test_printing")
    logger.warning("failed", exc_info=Mute())

    assert caplog.messages == ["failed"]


def test_no_message_or_note_of_a_traceback_forges_a_line() -> None:
    cause = ValueError("first\nFORGED by a cause\n\nFORGED behind a gap")
    error = KeyError("x")
    notes = ["a note\nFORGED by a note", "Traceback (\nFORGED too"]
    vars(error)["__notes__"] = notes
    try:
        raise error from cause
    except KeyError:
        info = sys.exc_info()
    record = logging.LogRecord("name", logging.ERROR, "", 1, "failed", (), info)

    assert escape_record(record)

    assert record.exc_text is not None
    lines = record.exc_text.splitlines()
    assert not [line for line in lines if line.startswith("FORGED")]
    assert {"ValueError: first", "    FORGED by a cause", "KeyError: 'x'"} <= {*lines}
    assert lines.count("Traceback (most recent call last):") == 1
    joint = "The above exception was the direct cause of the following exception:"
    assert joint in lines
