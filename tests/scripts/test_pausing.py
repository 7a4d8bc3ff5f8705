"""A pause holds back the tasks of a queue or of a name, wherever they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workstealing.queue.inspection_calls import counts, locate, trace
from workstealing.queue.listing_calls import scan_tasks
from workstealing.queue.pause_calls import (
    Pauses,
    Resumed,
    count_paused,
    first_paused,
    pause,
    read_pauses,
    resume,
    resume_all,
)
from workstealing.queue.producer_calls import cancel, replay, submit
from workstealing.queue.upkeep_calls import promote, reassign, survey
from workstealing.queue.worker_calls import leave, steal
from workstealing.tasks.outcome import State


def put(queue: Any, name: str, *ids: str, priority: int = 1, **more: Any) -> None:
    envelope = {"v": 1, "name": name, "version": 1, "priority": priority}
    written = json.dumps({**envelope, "payload": {}}, separators=(",", ":")).encode()
    tasks = [(task_id, written) for task_id in ids]
    queue.do(submit(queue.keys, queue.settings, tasks, priority=priority, **more))


def taken(queue: Any, worker: str, **more: Any) -> list[str]:
    return [task.id for task in queue.take(worker, **more)]


def resumed(queue: Any, name: str | None = None, *, most: int = 1000) -> int:
    """Resume a name in parts, as a client does; return how many came back."""
    done = queue.do(resume(queue.keys, name, goes_on=False, most=most))
    moved = done.moved
    while done.has_more:
        done = queue.do(resume(queue.keys, name, goes_on=True, most=most))
        moved += done.moved
    return int(moved)


def in_line(queue: Any, name: str) -> list[str]:
    return list(queue.do(first_paused(queue.keys, name, most=100)))


def test_a_paused_queue_gives_out_nothing(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", "1", "2")

    assert queue.do(pause(queue.keys, None))
    assert not queue.do(pause(queue.keys, None)), "it was paused already"

    seen = queue.exchange("a.0", want=5)
    assert (seen.tasks, seen.unfinished, seen.runnable) == ((), 2, 0)
    assert seen.pauses.queue_since_ms is not None
    assert queue.waiting() == ["1", "2"]
    queue.do(resume(queue.keys, None, goes_on=False))
    assert taken(queue, "a.0") == ["1", "2"]


def test_what_runs_on_a_paused_queue_ends_and_is_settled(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", "1", "2")
    (task,) = queue.take("a.0", want=1)

    queue.do(pause(queue.keys, None))
    queue.report("a.0", "done", task)

    assert list(queue.state()["done"]) == ["1"]


def test_nothing_is_stolen_from_a_paused_queue(queue: Any) -> None:
    queue.join("a.0", "a.1")
    put(queue, "x", *"123456")
    queue.take("a.0", want=1, keep=4)
    had = queue.deque("a.0")
    queue.do(pause(queue.keys, None))

    assert queue.do(steal(queue.keys, "a.0", "a.1")) == 0
    assert queue.exchange("a.1", want=1).victims == ()
    assert queue.deque("a.0") == had


def test_others_run_past_tasks_whose_name_is_paused(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", "1", "2")
    put(queue, "y", "3")
    put(queue, "x", "4")
    put(queue, "y", "5")

    queue.do(pause(queue.keys, "x"))

    assert taken(queue, "a.0", want=2) == ["3", "5"]
    assert in_line(queue, "x") == ["1", "2", "4"]
    seen = queue.exchange("a.0", want=5)
    assert (seen.held_back, seen.runnable) == (3, 2)


def test_the_tasks_of_a_resumed_name_come_back_in_order(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", *"12345")
    queue.do(pause(queue.keys, "x"))
    assert taken(queue, "a.0") == []
    put(queue, "x", "6")
    put(queue, "y", "7")

    assert resumed(queue, "x", most=2) == 5

    assert queue.waiting() == list("1234567")
    assert taken(queue, "a.0") == list("1234567")
    assert not queue.do(read_pauses(queue.keys))


def test_a_name_that_begins_like_another_is_another(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", "1")
    put(queue, "xy", "2")
    queue.do(pause(queue.keys, "x"))
    queue.do(pause(queue.keys, "xy"))
    taken(queue, "a.0")

    assert queue.do(count_paused(queue.keys, "x")) == 1
    assert resumed(queue, "x") == 1

    assert (taken(queue, "a.0"), in_line(queue, "xy")) == (["1"], ["2"])


def test_paused_tasks_keep_their_priorities(queue: Any) -> None:
    queue.join("a.0")
    for priority in (2, 1, 0):
        put(queue, "x", f"p{priority}", priority=priority)
    queue.do(pause(queue.keys, "x"))
    taken(queue, "a.0")

    resumed(queue, "x")

    assert queue.waiting() == ["p0", "p1", "p2"]


def test_paused_tasks_in_deques_are_put_aside_when_they_are_met(queue: Any) -> None:
    queue.join("a.0", "a.1")
    put(queue, "x", *"12345678")
    first = taken(queue, "a.0", want=1, keep=4)
    queue.do(pause(queue.keys, "x"))
    queue.do(steal(queue.keys, "a.0", "a.1"))

    assert taken(queue, "a.0") == taken(queue, "a.1") == []

    assert first == ["1"]
    assert sorted(in_line(queue, "x")) == list("2345678")
    assert "lock" not in queue.state() or list(queue.state()["lock"]) == ["1"]
    assert "loads" not in queue.state()


def test_a_worker_that_wants_one_gets_past_thousands(queue: Any) -> None:
    queue.join("a.0")
    for start in range(0, 3000, 1000):
        put(queue, "x", *(f"x{n}" for n in range(start, start + 1000)))
    put(queue, "y", "last")
    queue.do(pause(queue.keys, "x"))

    got = [taken(queue, "a.0", want=1) for _ in range(3)]

    assert ["last"] in got, "each exchange gets past two thousand"
    assert resumed(queue, "x", most=700) == 3000
    assert queue.waiting() == [f"x{n}" for n in range(3000)]


def test_a_delayed_task_that_comes_due_while_paused_waits(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", "1", due_ms=1)
    queue.do(pause(queue.keys, "x"))
    queue.do(promote(queue.keys, most=10))

    assert taken(queue, "a.0") == []
    assert resumed(queue, "x") == 1
    assert taken(queue, "a.0") == ["1"]


def test_a_retry_waits_while_its_name_is_paused_and_is_counted(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", "1")
    (task,) = queue.take("a.0")
    queue.do(pause(queue.keys, "x"))
    queue.report("a.0", "retry", task)

    assert taken(queue, "a.0") == []
    resumed(queue, "x")
    assert [one.attempt for one in queue.take("a.0")] == [2]


def test_the_tasks_of_a_dead_worker_wait_while_their_name_is_paused(queue: Any) -> None:
    queue.join("a.0", "a.1")
    put(queue, "x", *"123")
    queue.take("a.0", want=1, keep=2)
    queue.do(pause(queue.keys, "x"))
    queue.end_lease("a.0")
    queue.do(reassign(queue.keys, queue.settings, "a.0", most=100))

    assert taken(queue, "a.1") == []
    assert resumed(queue, "x") == 3
    got: list[str] = []
    # The one whose worker died runs alone.
    while tasks := queue.take("a.1"):
        got += [task.id for task in tasks]
        queue.report("a.1", "done", *tasks)
    assert sorted(got) == list("123")


def test_a_worker_that_leaves_gives_back_what_then_waits(queue: Any) -> None:
    queue.join("a.0", "a.1")
    put(queue, "x", *"123")
    queue.take("a.0", want=1, keep=2)
    queue.do(pause(queue.keys, None))
    queue.do(leave(queue.keys, "a.0", "1", final=True))

    assert taken(queue, "a.1") == []
    queue.do(resume(queue.keys, None, goes_on=False))
    assert sorted(taken(queue, "a.1")) == list("123")


def test_a_replayed_dead_letter_waits_while_its_name_is_paused(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", "1")
    queue.report("a.0", "dead", *queue.take("a.0"))
    queue.do(pause(queue.keys, "x"))
    queue.do(replay(queue.keys, "1", drop=False))

    assert taken(queue, "a.0") == []
    assert in_line(queue, "x") == ["1"]


def test_a_paused_task_is_cancelled_at_once(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", "1", "2")
    queue.do(pause(queue.keys, "x"))
    taken(queue, "a.0")

    assert queue.do(cancel(queue.keys, queue.settings, "1", "", b"gone")) == "cancelled"

    assert in_line(queue, "x") == ["2"]
    assert queue.state()["done"] == {"1": "gone"}
    put(queue, "x", "3")
    resumed(queue, "x")
    assert taken(queue, "a.0") == ["2", "3"]


def test_an_id_that_was_cancelled_and_came_again_is_not_taken_from_its_line(
    queue: Any,
) -> None:
    queue.join("a.0")
    put(queue, "x", "1", priority=0)
    queue.do(cancel(queue.keys, queue.settings, "1", "", b"gone"))
    queue.client.delete(queue.keys.done, queue.keys.outcome_times)
    put(queue, "x", "1")
    queue.do(pause(queue.keys, "x"))

    assert taken(queue, "a.0") == taken(queue, "a.0") == []
    assert in_line(queue, "x") == ["1"]
    resumed(queue, "x")
    assert taken(queue, "a.0") == ["1"]
    assert "cancelled" not in queue.state()


def test_two_that_resume_at_once_bring_each_task_back_once(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", *"123456")
    queue.do(pause(queue.keys, "x"))
    taken(queue, "a.0")

    one = queue.do(resume(queue.keys, "x", goes_on=False, most=2))
    other = queue.do(resume(queue.keys, "x", goes_on=False, most=2))
    while queue.do(resume(queue.keys, "x", goes_on=True, most=2)).has_more:
        pass

    assert (one.was_paused, other.was_paused) == (True, False)
    assert queue.waiting() == list("123456")


def test_a_pause_stops_a_resume_that_is_under_way(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", *"1234")
    queue.do(pause(queue.keys, "x"))
    taken(queue, "a.0")
    queue.do(resume(queue.keys, "x", goes_on=False, most=1))

    assert queue.do(pause(queue.keys, "x"))
    late = queue.do(resume(queue.keys, "x", goes_on=True, most=1))

    assert (late.moved, late.has_more) == (0, False)
    assert taken(queue, "a.0") == []
    assert in_line(queue, "x") == list("1234")


def test_upkeep_learns_which_resume_was_left_unfinished(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", *"1234")
    queue.do(pause(queue.keys, "x"))
    taken(queue, "a.0")
    queue.do(resume(queue.keys, "x", goes_on=False, most=1))

    assert queue.do(survey(queue.keys)).resuming == ("x",)
    queue.do(resume(queue.keys, "x", goes_on=True))
    assert queue.do(survey(queue.keys)).resuming == ()
    assert taken(queue, "a.0") == list("1234")


def test_what_is_paused_is_seen_wherever_the_task_is(queue: Any) -> None:
    queue.join("a.0")
    put(queue, "x", "1", "2")
    queue.do(pause(queue.keys, "x"))

    def place(task_id: str) -> State | None:
        flow = locate(queue.keys, task_id)
        answer: Any = None
        try:
            while True:
                answer = queue.do(flow.send(answer))
        except StopIteration as end:
            place: State | None = end.value.place
            return place

    assert place("1") is State.PAUSED
    taken(queue, "a.0")
    assert queue.do(trace(queue.keys, "1")).is_aside
    assert place("1") is State.PAUSED
    seen = queue.do(counts(queue.keys))
    assert (seen.paused, seen.unfinished, set(seen.pauses.tasks)) == (2, 2, {"x"})


def test_a_resume_asks_until_nothing_is_left(queue: Any) -> None:
    flow = resume_all(queue.keys, "x")
    first: Any = next(flow)
    second: Any = flow.send(Resumed(True, 1000, True))
    third: Any = flow.send(Resumed(False, 1000, True))

    with pytest.raises(StopIteration) as end:
        flow.send(Resumed(False, 3, False))

    assert end.value.value is True
    assert [call.arguments[2] for call in (first, second, third)] == [0, 1, 1]


def test_pauses_say_what_is_paused_in_words() -> None:
    pauses = Pauses.read(["*", "1000", "resize", "2000", "old", "0"])

    assert pauses.sentences() == [
        "the queue is paused since 1970-01-01T00:00:01.000Z",
        "task resize is paused since 1970-01-01T00:00:02.000Z",
    ]
    assert pauses.reason("resize") == "the queue is paused"
    assert Pauses.read(["resize", "2000"]).reason("resize") == "task resize is paused"
    assert not Pauses.read(["old", "0"])


def test_a_scan_tells_what_a_pause_has_put_aside(queue: Any) -> None:
    queue.join("w")
    put(queue, "x", "one")
    queue.do(pause(queue.keys, "x"))
    assert queue.take("w") == ()
    put(queue, "y", "two")

    stretch = queue.do(scan_tasks(queue.keys, "0", count=9))

    assert {one.id: one.is_aside for one in stretch.tasks} == {
        "one": True,
        "two": False,
    }


def test_upkeep_wakes_nobody_for_a_paused_queue(queue: Any) -> None:
    put(queue, "x", "1")
    queue.do(pause(queue.keys, None))
    queue.client.delete(queue.keys.bell)

    queue.do(survey(queue.keys))

    assert queue.client.llen(queue.keys.bell) == 0
