"""What a running task tells of itself."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing.queue import task_output_calls
from workstealing.queue.task_output_calls import log, note, read_log, read_note
from workstealing.tasks.attempt import Delivery


@pytest.fixture
def task(queue: Any) -> Any:
    queue.join("v", "w")
    queue.submit("a")
    (task,) = queue.take("v")
    return task


def told(queue: Any, after: str = task_output_calls.BEGINNING, most: int = 500) -> Any:
    return queue.do(read_log(queue.keys, "a", after, most=most))


def test_records_are_read_in_the_order_in_which_they_were_told(
    queue: Any, task: Delivery
) -> None:
    for number in range(1, 6):
        assert queue.do(log(queue.keys, "v", task, number, b"line %d" % number))

    page = told(queue, most=3)
    assert page.records == (b"line 1", b"line 2", b"line 3")
    assert not page.is_over
    rest = told(queue, page.after)
    assert rest.records == (b"line 4", b"line 5")
    end = told(queue, rest.after)
    assert (end.records, end.after) == ((), rest.after)


def test_the_same_record_is_told_once(queue: Any, task: Delivery) -> None:
    call = log(queue.keys, "v", task, 1, b"once")

    assert queue.do(call)
    assert queue.again(call)
    assert told(queue).records == (b"once",)


def test_the_next_worker_goes_on_where_the_first_was(
    queue: Any, task: Delivery
) -> None:
    queue.do(log(queue.keys, "v", task, 1, b"first"))
    queue.report("v", "back", task)
    (again,) = queue.take("w")
    queue.do(log(queue.keys, "w", again, 1, b"second"))

    assert told(queue).records == (b"first", b"second")


def test_a_worker_that_lost_the_task_tells_nothing_any_more(
    queue: Any, task: Delivery
) -> None:
    queue.report("v", "back", task)

    assert not queue.again(log(queue.keys, "v", task, 1, b"late"))
    assert not queue.again(note(queue.keys, "v", task, "checkpoint", b"1"))


@pytest.mark.parametrize("verdict", ["done", "dead", "cancelled"])
def test_a_log_is_over_when_its_task_has_ended(
    queue: Any, task: Delivery, verdict: Any
) -> None:
    queue.do(log(queue.keys, "v", task, 1, b"x"))
    assert not told(queue).is_over

    queue.report("v", verdict, task)

    page = told(queue)
    assert (page.records, page.is_over) == ((b"x",), True)


@pytest.mark.parametrize("verdict", ["retry", "back"])
def test_a_log_is_not_over_when_its_task_comes_again(
    queue: Any, task: Delivery, verdict: Any
) -> None:
    queue.report("v", verdict, task)

    assert not told(queue).is_over


def test_a_page_that_is_full_is_not_the_last(queue: Any, task: Delivery) -> None:
    for number in range(1, 4):
        queue.do(log(queue.keys, "v", task, number, b"x"))
    queue.report("v", "done", task)

    assert not told(queue, most=2).is_over
    assert not told(queue, most=3).is_over


def test_a_log_keeps_its_last_records(
    queue: Any, task: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_output_calls, "LOG_RECORDS", 5)
    for number in range(1, 21):
        queue.do(log(queue.keys, "v", task, number, b"%d" % number))

    assert told(queue).records == (b"16", b"17", b"18", b"19", b"20")


def test_a_log_keeps_no_more_than_its_bytes(
    queue: Any, task: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_output_calls, "LOG_BYTES", 100)
    for number in range(1, 21):
        queue.do(log(queue.keys, "v", task, number, b"%09d " % number))
    assert [int(record) for record in told(queue).records] == list(range(11, 21))

    queue.do(log(queue.keys, "v", task, 21, b"x" * 1000))
    assert told(queue).records == (b"x" * 1000,)


def test_what_was_told_expires(queue: Any, task: Delivery) -> None:
    queue.do(log(queue.keys, "v", task, 1, b"x"))
    queue.do(note(queue.keys, "v", task, "progress", b"1"))

    for key in (queue.keys.log("a"), queue.keys.notes("a")):
        assert 0 < queue.client.pttl(key) <= task_output_calls.KEPT_MS


def test_notes_are_read_by_whoever_asks(queue: Any, task: Delivery) -> None:
    call = note(queue.keys, "v", task, "checkpoint", b'{"page": 7}')
    assert queue.do(call)
    assert queue.again(call)
    queue.do(note(queue.keys, "v", task, "progress", b"1"))

    read = read_note(queue.keys, "a", task.envelope, "checkpoint")
    assert queue.do(read) == b'{"page": 7}'
    queue.do(note(queue.keys, "v", task, "checkpoint", b"8"))
    assert queue.do(read) == b"8"


def test_what_was_never_noted_is_nothing(queue: Any, task: Delivery) -> None:
    assert queue.do(read_note(queue.keys, "a", task.envelope, "checkpoint")) is None


def test_another_task_of_the_same_id_does_not_get_its_notes(
    queue: Any, task: Delivery
) -> None:
    queue.do(note(queue.keys, "v", task, "checkpoint", b"1"))
    other = Delivery(task.id, task.token, 1, b'{"id": "a", "at": 2}')

    assert queue.do(read_note(queue.keys, "a", other.envelope, "checkpoint")) is None
    queue.do(note(queue.keys, "v", other, "progress", b"2"))
    assert queue.do(read_note(queue.keys, "a", other.envelope, "checkpoint")) is None


def test_notes_of_an_ended_task_expire_soon(queue: Any, task: Delivery) -> None:
    queue.do(note(queue.keys, "v", task, "checkpoint", b"1"))
    queue.do(task_output_calls.drop_notes(queue.keys, "a"))

    assert queue.client.pttl(queue.keys.notes("a")) <= 60_000
