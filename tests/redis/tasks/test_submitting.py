"""Giving tasks to a queue: one, many, later, by id, and what is refused."""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from workstealing import TaskQueue, Worker, WorkStealer
from workstealing.client.queue_internals import internals_of
from workstealing.errors import (
    ConfigurationError,
    InputEnded,
    InvalidName,
    PayloadInvalid,
    PayloadTooLarge,
    QueueFull,
    RedisUnavailable,
)
from workstealing.tasks.outcome import State
from workstealing.testing import wait_until


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Picture:
    path: str
    colour: Colour
    taken: datetime


def drain(queue: TaskQueue) -> None:
    Worker(queue).run(until_empty="all")


def test_a_submitted_task_is_run_with_its_arguments_and_tells_its_result(
    queue: TaskQueue,
) -> None:
    @queue.task
    def add(left: int, right: int = 1) -> int:
        return left + right

    handles = [add.submit(1), add.submit(2, 3), add.submit(right=5, left=4)]
    drain(queue)

    assert [handle.result(timeout=5) for handle in handles] == [2, 5, 9]


def test_a_task_can_still_be_called_like_the_function_it_is(queue: TaskQueue) -> None:
    @queue.task
    def add(left: int, right: int) -> int:
        return left + right

    assert add(1, 2) == 3
    assert queue.counts().tasks == 0


def test_arguments_and_results_keep_their_types(queue: TaskQueue) -> None:
    @queue.task
    def repaint(picture: Picture) -> Picture:
        assert isinstance(picture, Picture)
        assert picture.colour is Colour.RED
        return picture

    picture = Picture("cat.png", Colour.RED, datetime.now(timezone.utc))
    handle = repaint.submit(picture)
    drain(queue)

    assert handle.result(timeout=5) == picture


def test_many_tasks_are_run_each_once_and_in_order(queue: TaskQueue) -> None:
    seen: list[int] = []

    @queue.task
    def note(number: int) -> int:
        seen.append(number)
        return number

    numbers = range(2_500)
    handles = note.submit_many({"number": n} if n % 2 else (n,) for n in numbers)
    drain(queue)

    assert seen == list(numbers)
    assert handles[2_499].result(timeout=5) == 2_499
    assert queue.counts().outcomes == 2_500


def test_two_thousand_five_hundred_tasks_are_three_round_trips(
    queue: TaskQueue,
) -> None:
    @queue.task
    def note(number: int) -> None: ...

    note.submit(0)
    before = _calls(queue)
    note.submit_many([(n,) for n in range(2_500)])

    assert _calls(queue) - before == 3


def test_an_id_that_is_known_is_not_submitted_again(queue: TaskQueue) -> None:
    runs: list[str] = []

    @queue.task
    def pay(invoice: str) -> str:
        runs.append(invoice)
        return invoice

    first = pay.options(id="invoice-7").submit("seven")
    again = pay.options(id="invoice-7").submit("another")
    drain(queue)
    late = pay.options(id="invoice-7").submit("late")
    drain(queue)

    assert runs == ["seven"]
    assert [h.result(timeout=5) for h in (first, again, late)] == ["seven"] * 3
    assert {h.id for h in (first, again, late)} == {"invoice-7"}
    assert [h.is_new for h in (first, again, late)] == [True, False, False]
    assert queue.handle("invoice-7").is_new is None


def test_an_id_is_known_while_its_task_its_outcome_or_its_dead_letter_is_kept(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(retention=0.05)

    @queue.task(name="pay")
    def pay(invoice: str) -> str:
        if invoice == "bad":
            raise ValueError(invoice)
        return invoice

    one, bad = pay.options(id="one"), pay.options(id="bad")
    assert (one.submit("one").is_new, bad.submit("bad").is_new) == (True, True)
    assert (one.submit("one").is_new, bad.submit("bad").is_new) == (False, False)
    drain(queue)
    upkeep = WorkStealer(queue)

    def is_free() -> bool:
        # Its client waits for no more than 50 ms.
        with suppress(RedisUnavailable):
            upkeep.recruited()
        return bool(one.submit("one").is_new)

    wait_until(is_free, 15, "its outcome to expire")
    assert not bad.submit("bad").is_new


def test_of_many_each_handle_says_whether_it_is_new(queue: TaskQueue) -> None:
    @queue.task
    def pay(number: int) -> int:
        return number

    ids = [f"id-{number}" for number in range(2500)]
    pay.submit_many([(3,), (1500,)], ids=["id-3", "id-1500"])
    handles = pay.submit_many([(number,) for number in range(2500)], ids=ids)

    assert [handle.id for handle in handles] == ids
    assert [h.id for h in handles if not h.is_new] == ["id-3", "id-1500"]


def test_of_many_only_the_new_ids_are_submitted(queue: TaskQueue) -> None:
    runs: list[int] = []

    @queue.task
    def note(number: int) -> None:
        runs.append(number)

    note.options(id="b").submit(0)
    note.submit_many([(1,), (2,), (3,), (4,)], ids=["a", "b", "c", "a"])
    drain(queue)

    assert sorted(runs) == [0, 1, 3]


def test_each_of_many_needs_an_id_of_its_own_or_none_at_all(queue: TaskQueue) -> None:
    @queue.task
    def note(number: int) -> None: ...

    with pytest.raises(ConfigurationError, match="1 ids for 2 tasks"):
        note.submit_many([(1,), (2,)], ids=["a"])
    with pytest.raises(ConfigurationError, match="0 ids for 1 tasks"):
        note.submit_many([(1,)], ids=[])
    with pytest.raises(ConfigurationError, match="ids="):
        note.options(id="a").submit_many([(1,), (2,)])
    assert queue.counts().tasks == 0


def test_urgent_tasks_overtake_and_the_others_keep_their_order(
    queue: TaskQueue,
) -> None:
    seen: list[str] = []

    @queue.task
    def note(word: str) -> None:
        seen.append(word)

    @queue.task(priority=2, name="whenever")
    def whenever(word: str) -> None:
        seen.append(word)

    whenever.submit("last")
    note.submit("second")
    note.submit("third")
    note.options(priority=0).submit("first")
    drain(queue)

    assert seen == ["first", "second", "third", "last"]


def test_a_task_for_later_waits_until_it_is_due(queue: TaskQueue) -> None:
    @queue.task
    def now_ms() -> int:
        return int(datetime.now(timezone.utc).timestamp() * 1000)

    began = now_ms()
    soon = datetime.now(timezone.utc) + timedelta(seconds=0.2)
    handles = [
        now_ms.submit_in(0.2),
        now_ms.submit_in(timedelta(milliseconds=200)),
        now_ms.submit_at(soon),
        now_ms.options(delay=0.2).submit(),
        *now_ms.options(at=soon).submit_many([()]),
    ]
    assert {handle.state().state for handle in handles} == {State.DELAYED}
    drain(queue)

    # The two clocks are of one machine; a millisecond is lost by rounding.
    assert all(handle.result(timeout=5) >= began + 199 for handle in handles)


def test_a_task_that_was_due_long_ago_is_run(queue: TaskQueue) -> None:
    @queue.task
    def one() -> int:
        return 1

    handle = one.submit_at(datetime(2001, 1, 1, tzinfo=timezone.utc))
    drain(queue)

    assert handle.result(timeout=5) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 1, "at": datetime(2001, 1, 1, tzinfo=timezone.utc)},
        {"at": datetime(2001, 1, 1)},
        {"delay": -1},
        {"priority": 3},
        {"id": "two words"},
        {"id": ""},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(
    queue: TaskQueue, options: dict[str, Any]
) -> None:
    @queue.task
    def one() -> int:
        return 1

    with pytest.raises(ConfigurationError):
        one.options(**options).submit()
    assert queue.counts().tasks == 0


def test_arguments_that_do_not_fit_are_refused_by_name(queue: TaskQueue) -> None:
    @queue.task
    def resize(path: str, width: int) -> None: ...

    with pytest.raises(PayloadInvalid, match="'width'") as refusal:
        resize.submit("cat.png", width="wide")  # type: ignore[arg-type]
    assert refusal.value.field == "width"
    with pytest.raises(PayloadInvalid, match="'width'"):
        resize.submit_many([("a.png", 1), ("b.png", "wide")])
    assert queue.counts().tasks == 0


def test_a_payload_that_is_too_large_is_refused(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(max_payload=100)

    @queue.task
    def length(text: str) -> int:
        return len(text)

    with pytest.raises(PayloadTooLarge, match="limit is 100"):
        length.submit("x" * 100)
    handle = length.submit("x" * 80)
    drain(queue)

    assert handle.result(timeout=5) == 80


def test_a_full_queue_says_so_and_takes_more_when_it_was_emptied(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(max_length=3)

    @queue.task
    def one() -> int:
        return 1

    one.submit_many([()] * 3, ids=["a", "b", "c"])
    with pytest.raises(QueueFull, match="3 tasks"):
        one.submit()
    known = one.options(id="a").submit()
    drain(queue)
    more = one.submit()
    drain(queue)

    assert [known.result(timeout=5), more.result(timeout=5)] == [1, 1]


def test_dead_letters_keep_nobody_out_of_a_queue(make_queue: Any) -> None:
    queue = make_queue(max_length=1)

    @queue.task
    def fail() -> None:
        raise ValueError("no")

    fail.submit()
    Worker(queue).run(until_empty="all")
    fail.submit()

    with pytest.raises(QueueFull):
        fail.submit()
    assert queue.counts().dead == 1


def test_a_queue_whose_input_ended_takes_no_more_and_what_it_has_is_run(
    queue: TaskQueue,
) -> None:
    @queue.task
    def one() -> int:
        return 1

    handle = one.submit()
    queue.end_input()
    with pytest.raises(InputEnded):
        one.submit()
    drain(queue)
    assert handle.result(timeout=5) == 1

    queue.reopen_input()
    later = one.submit()
    drain(queue)
    assert later.result(timeout=5) == 1


@pytest.mark.parametrize(
    "name", ["", "two words", "br{ace", "a/b", "bell\a", "x" * 201]
)
def test_names_that_would_break_keys_are_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        TaskQueue(name)
    with pytest.raises(InvalidName):
        TaskQueue("q", run=name)
    with pytest.raises(InvalidName):
        Worker(TaskQueue("q"), pool=name or " ")


@pytest.mark.parametrize("pool", ["a#b", "a:b"])
def test_names_of_pools_that_would_break_locks_are_refused(pool: str) -> None:
    with pytest.raises(InvalidName):
        Worker(TaskQueue("q"), pool=pool)


def test_two_runs_of_a_queue_do_not_see_each_other(
    make_queue: Callable[..., TaskQueue],
) -> None:
    seen: list[tuple[str, int]] = []
    runs = [make_queue(run="monday"), make_queue(run="tuesday")]
    for run in runs:

        @run.task(name="note")
        def note(number: int, run: str) -> None:
            seen.append((run, number))

        note.submit_many([(n, run.run) for n in range(3)])
    assert [run.counts().tasks for run in runs] == [3, 3]

    drain(runs[0])

    assert seen == [("monday", 0), ("monday", 1), ("monday", 2)]
    assert [run.counts().tasks for run in runs] == [0, 3]


def _calls(queue: TaskQueue) -> int:
    client: Any = internals_of(queue).driver.client
    commands = client.info("commandstats")
    return sum(
        commands.get(f"cmdstat_{name}", {}).get("calls", 0)
        for name in ("eval", "evalsha")
    )
