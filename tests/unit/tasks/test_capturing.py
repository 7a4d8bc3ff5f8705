"""What one task logs and prints, while others do so beside it."""

# ruff: noqa: T201 - what is printed is what this is about

from __future__ import annotations

import asyncio
import contextvars
import io
import logging
import sys
from threading import Barrier, Thread

import pytest

from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.output_capture import LONGEST_MESSAGE, Capture, LogRecord


def capture(name: str = "task") -> tuple[Capture, list[LogRecord], ExecutionContext]:
    records: list[LogRecord] = []

    def sink(record: LogRecord) -> bool:
        records.append(record)
        return True

    context = ExecutionContext("id", name, worker="w.0", attempt=2)
    return Capture(context, sink), records, context


def said(records: list[LogRecord]) -> list[tuple[str, str]]:
    return [(record.stream, record.message) for record in records]


def test_what_is_printed_and_logged_comes_in_order() -> None:
    capturing, records, context = capture()

    with capturing:
        print("one")
        context.logger.info("two %s", "words")
        print("three", file=sys.stderr)
        logging.getLogger("elsewhere").warning("four")
        context.stdout.write("five\nsix\n")
        context.stderr.write("seven\n")

    assert said(records) == [
        ("stdout", "one"),
        ("log", "two words"),
        ("stderr", "three"),
        ("log", "four"),
        ("stdout", "five"),
        ("stdout", "six"),
        ("stderr", "seven"),
    ]
    assert [record.sequence for record in records] == [1, 2, 3, 4, 5, 6, 7]
    assert (records[1].level, records[1].logger) == ("INFO", "workstealing.task.task")
    assert {(record.attempt, record.worker) for record in records} == {(2, "w.0")}


def test_what_is_printed_is_captured_while_standard_output_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    capturing, records, _ = capture()

    with capturing:
        print("one")
        outside = Thread(target=print, args=("not the task",))
        outside.start()
        outside.join()

    assert said(records) == [("stdout", "one")]
    assert sys.stdout is None


def test_a_record_can_be_written_and_read() -> None:
    capturing, records, context = capture()
    with capturing:
        context.logger.info("größe")

    (record,) = records
    assert LogRecord.read(record.encode()) == record
    assert str(record).endswith("INFO workstealing.task.task: größe")


def test_nothing_is_touched_before_and_afterwards(
    capsys: pytest.CaptureFixture[str],
) -> None:
    capturing, records, context = capture()
    before = (sys.stdout, sys.stderr, list(logging.getLogger().handlers))

    with capturing:
        pass

    assert (sys.stdout, sys.stderr, list(logging.getLogger().handlers)) == before
    print("outside")
    assert context.stdout is sys.stdout
    assert (records, capsys.readouterr().out) == ([], "outside\n")


def test_a_line_is_one_record_however_it_is_written() -> None:
    capturing, records, _ = capture()

    with capturing:
        print("a", "b", sep="", end="")
        print("c")
        sys.stdout.write("d\n\ne")

    assert said(records) == [
        ("stdout", "abc"),
        ("stdout", "d"),
        ("stdout", ""),
        ("stdout", "e"),
    ]


def test_what_is_flushed_is_told_at_once() -> None:
    capturing, records, _ = capture()

    with capturing:
        print("half a line", end="", flush=True)
        assert said(records) == [("stdout", "half a line")]


def test_an_error_is_logged_with_its_traceback() -> None:
    capturing, records, context = capture()

    with capturing:
        try:
            raise KeyError("lost")
        except KeyError:
            context.logger.exception("it failed")

    assert records[0].level == "ERROR"
    assert records[0].message.startswith("it failed\nTraceback")
    assert records[0].message.endswith("KeyError: 'lost'")


def test_a_text_that_cannot_be_made_is_no_error_of_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The handlers of pytest do raise.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    capturing, records, context = capture()

    with capturing:
        context.logger.info("%d", "no number")

    assert records[0].message == "(its text cannot be shown: TypeError)"


def test_a_long_message_is_cut() -> None:
    capturing, records, _ = capture()

    with capturing:
        print("ä" * LONGEST_MESSAGE)

    assert records[0].message == "ä" * (LONGEST_MESSAGE // 2) + "…"


def test_tasks_in_threads_do_not_mix() -> None:
    names, together = ["a", "b", "c"], Barrier(3)
    all_records = {}

    def run(name: str) -> None:
        capturing, records, context = capture(name)
        all_records[name] = records
        with capturing:
            for number in range(50):
                together.wait()
                print(name, number)
                context.logger.info("%s %d", name, number)

    threads = [Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for name in names:
        lines = [f"{name} {number}" for number in range(50) for _ in range(2)]
        assert [record.message for record in all_records[name]] == lines


async def test_coroutines_of_one_thread_do_not_mix() -> None:
    async def run(name: str) -> list[str]:
        capturing, records, context = capture(name)
        with capturing:
            for number in range(20):
                print(name, number)
                await asyncio.sleep(0)
                context.logger.info("%s %d", name, number)
        return [record.message for record in records]

    a, b = await asyncio.gather(run("a"), run("b"))

    assert a == [f"a {number}" for number in range(20) for _ in range(2)]
    assert b == [f"b {number}" for number in range(20) for _ in range(2)]


def test_threads_beside_it_print_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    capturing, records, _ = capture()

    with capturing:
        other = Thread(target=lambda: print("other"))
        other.start()
        other.join()

    assert records == []
    assert capsys.readouterr().out == "other\n"


def test_a_thread_that_takes_its_context_along_belongs_to_it() -> None:
    capturing, records, _ = capture()

    with capturing:
        context = contextvars.copy_context()
        own = Thread(target=lambda: context.run(print, "own"))
        own.start()
        own.join()

    assert said(records) == [("stdout", "own")]


def test_a_record_that_cannot_be_told_is_counted_and_no_error_of_the_task(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told: list[LogRecord] = []
    is_away = True

    def sink(record: LogRecord) -> bool:
        if is_away:
            raise ConnectionError("no Redis")
        told.append(record)
        return True

    with Capture(ExecutionContext("id", "task"), sink):
        print("lost")
        logging.getLogger("task").warning("lost")
        is_away = False
        print("told")
        print("after")

    assert [(r.message, r.sequence, r.dropped) for r in told] == [
        ("told", 3, 2),
        ("after", 4, 0),
    ]
    # What was printed is seen where it would have been seen without us.
    assert capsys.readouterr().out == "lost\n"


def test_a_sink_that_logs_itself_does_not_go_round_in_circles() -> None:
    told: list[LogRecord] = []

    def sink(record: LogRecord) -> bool:
        logging.getLogger("client").warning("sending")
        told.append(record)
        return True

    with Capture(ExecutionContext("id", "task"), sink):
        print("x")

    assert [record.message for record in told] == ["x"]


def test_who_replaces_the_streams_meanwhile_keeps_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    capturing, _, _ = capture()
    other = io.StringIO()
    real = sys.stdout

    with capturing:
        monkeypatch.setattr(sys, "stdout", other)

    assert sys.stdout is other
    monkeypatch.undo()
    sys.stdout.write("")
    sys.stdout = real


def test_the_streams_know_what_the_real_ones_know() -> None:
    capturing, _, _ = capture()
    real = sys.stdout

    with capturing:
        assert sys.stdout.encoding == real.encoding
        assert sys.stdout.errors == real.errors
        assert sys.stdout.writable()
        assert not sys.stdout.isatty()
