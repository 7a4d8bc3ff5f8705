"""Cancelling: at once what waits, by asking what runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workstealing.queue.inspection_calls import counts, trace
from workstealing.queue.listing_calls import count_parked
from workstealing.queue.producer_calls import cancel, cancel_all
from workstealing.queue.upkeep_calls import promote, unpark
from workstealing.queue.worker_calls import leave, park, release


def cancelling(queue: Any, name: str, worker: str = "", needs: str = "") -> Any:
    return cancel(queue.keys, queue.settings, name, worker, b"cancelled", needs=needs)


def test_a_waiting_task_is_cancelled_and_passed_over(queue: Any) -> None:
    queue.submit("a", "b", "c")
    call = cancelling(queue, "b")

    assert queue.do(call) == "cancelled"
    assert queue.again(call) == "ended"
    assert queue.state()["done"] == {"b": "cancelled"}
    assert queue.do(counts(queue.keys)).unfinished == 2
    queue.join("w")
    assert [task.id for task in queue.take("w")] == ["a", "c"]
    assert "cancelled" not in queue.state()


def test_of_tasks_that_are_cancelled_together_each_has_its_own_verdict(
    queue: Any,
) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdef")
    queue.take("v", 1, keep=2)
    outcomes = [(name, f"{name} is cancelled".encode()) for name in "abxff"]
    of_nobody = cancel_all(queue.keys, queue.settings, outcomes, "", "")
    of_v = cancel_all(queue.keys, queue.settings, outcomes, "v", "")

    assert queue.do(of_nobody) == ["moved", "moved", "unknown", "cancelled", "ended"]
    assert queue.do(of_v) == ["asked", "cancelled", "unknown", "ended", "ended"]
    assert queue.again(of_v) == ["asked", "ended", "unknown", "ended", "ended"]
    state = queue.state()
    assert state["done"] == {"b": "b is cancelled", "f": "f is cancelled"}
    assert queue.deque("v") == ["c"]
    assert state["stats"]["cancelled"] == "2"


def test_an_assigned_task_is_cancelled_in_its_deque(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdef")
    queue.take("v", 1, keep=2)

    assert queue.do(cancelling(queue, "b")) == "moved"
    assert queue.do(cancelling(queue, "b", "w")) == "moved"
    assert queue.do(cancelling(queue, "b", "v")) == "cancelled"

    assert queue.deque("v") == ["c"]
    assert queue.state()["loads"] == {"v": 1}
    assert queue.do(cancelling(queue, "c", "v")) == "cancelled"
    assert "loads" not in queue.state()


def test_a_running_task_is_asked_to_stop(queue: Any) -> None:
    queue.join("v")
    queue.submit("a", "b")
    a, _ = queue.take("v")
    call = cancelling(queue, "a", "v")

    assert queue.do(call) == "asked"
    assert queue.again(call) == "asked"
    assert queue.do(trace(queue.keys, "a")).is_cancelling
    assert queue.exchange("v").cancelled == ("a",)

    queue.report("v", "cancelled", a)

    state = queue.state()
    assert "cancelling" not in state
    assert state["stats"]["cancelled"] == "1"
    assert queue.do(call) == "ended"


def test_a_task_that_was_asked_and_failed_stays_cancelled(queue: Any) -> None:
    queue.join("v")
    queue.submit("a")
    queue.do(cancelling(queue, "a", "v"))
    taken = queue.take("v")
    queue.do(cancelling(queue, "a", "v"))

    queue.report("v", "retry", *taken)

    exchanged = queue.exchange("v", want=1)
    assert [task.id for task in exchanged.tasks] == ["a"]
    assert exchanged.cancelled == ("a",)


def test_one_that_was_asked_and_handed_back_can_be_cancelled_at_once(
    queue: Any,
) -> None:
    queue.join("v")
    queue.submit("a", "b")
    taken = queue.take("v")
    for task in taken:
        queue.do(cancelling(queue, task.id, "v"))
    queue.do(release(queue.keys, "v", taken[1:]))
    assert queue.do(cancelling(queue, "b", "v")) == "cancelled"
    queue.do(leave(queue.keys, "v", "1", final=True))
    assert queue.do(cancelling(queue, "a")) == "cancelled"

    assert "cancelling" not in queue.state()


def test_a_delayed_task_is_cancelled(queue: Any) -> None:
    queue.submit("a", delay_ms=60_000)
    call = cancelling(queue, "a")

    assert queue.do(call) == "cancelled"
    assert queue.again(call) == "ended"
    queue.client.zadd(queue.keys.later, {"a": 1}, xx=True)
    assert queue.do(promote(queue.keys, most=10)) == 0
    assert queue.waiting() == []


def test_a_parked_task_is_cancelled(queue: Any) -> None:
    queue.join("v", abilities=["x@1"])
    queue.submit("a", "b")
    for task in queue.take("v"):
        queue.do(park(queue.keys, "v", task, "x@1"))
    call = cancelling(queue, "a", needs="x@1")

    assert queue.do(call) == "cancelled"
    assert queue.again(call) == "ended"
    assert queue.do(counts(queue.keys)).parked == 1
    assert queue.do(unpark(queue.keys, "x@1", most=10)) == 1
    assert queue.waiting() == ["b"]


def test_a_parked_task_that_is_cancelled_leaves_nothing_behind(queue: Any) -> None:
    queue.join("v")
    queue.submit("a", "b")
    for task in queue.take("v"):
        queue.do(park(queue.keys, "v", task, "x@1"))

    queue.do(cancelling(queue, "a", needs="x@1"))
    (waiting,) = queue.do(count_parked(queue.keys, ["x@1"]))
    assert waiting.tasks == 1
    queue.do(cancelling(queue, "b", needs="x@1"))
    state = queue.check()
    assert not {"parked", "parked_abilities", "parked:x@1"} & set(state)


def test_a_task_that_is_parked_or_returned_meanwhile_has_moved(queue: Any) -> None:
    queue.join("v", abilities=["x@1"])
    queue.submit("a")
    (task,) = queue.take("v")
    queue.do(park(queue.keys, "v", task, "x@1"))

    assert queue.again(cancelling(queue, "a")) == "moved"
    assert queue.again(cancelling(queue, "a", needs="y@1")) == "moved"
    queue.do(unpark(queue.keys, "x@1", most=10))
    assert queue.again(cancelling(queue, "a", needs="x@1")) == "moved"
    assert queue.do(cancelling(queue, "a")) == "cancelled"


def test_what_is_not_there_cannot_be_cancelled(queue: Any) -> None:
    assert queue.again(cancelling(queue, "never")) == "unknown"


def test_what_has_ended_cannot_be_cancelled(queue: Any) -> None:
    queue.join("v")
    queue.submit("a", "b")
    a, b = queue.take("v")
    queue.report("v", "done", a)
    queue.report("v", "dead", b)

    assert queue.again(cancelling(queue, "a")) == "ended"
    assert queue.again(cancelling(queue, "b")) == "ended"


def test_without_retention_nothing_is_left_of_a_cancelled_task(
    make_queue: Callable[..., Any],
) -> None:
    queue = make_queue(retention_ms=0)
    queue.join("v")
    queue.submit("a")

    assert queue.do(cancelling(queue, "a")) == "cancelled"
    assert queue.again(cancelling(queue, "a")) == "unknown"
    assert queue.take("v") == ()
    assert set(queue.state()) == {"workers", "members", "stats"}


def test_a_cancelled_task_takes_its_history_along(queue: Any) -> None:
    queue.join("v")
    queue.submit("a")
    queue.report("v", "retry", *queue.take("v"))

    queue.do(cancelling(queue, "a"))

    assert "history" not in queue.state()


def test_many_cancelled_tasks_are_passed_over_a_part_at_a_time(queue: Any) -> None:
    queue.join("w")
    names = [f"{number}" for number in range(3000)]
    for start in range(0, 3000, 1000):
        queue.submit(*names[start : start + 1000])
    queue.submit("last")
    queue.client.hdel(queue.keys.task, *names)
    queue.client.hset(queue.keys.cancelled, mapping=dict.fromkeys(names, 1))

    assert [task.id for task in queue.take("w", 1)] == ["last"]
    assert "cancelled" not in queue.state()


def test_cancelled_tasks_are_not_assigned(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdef")
    for name in "bd":
        queue.do(cancelling(queue, name))

    queue.take("v", 1, keep=3)

    assert queue.deque("v") == ["c"]
    assert "cancelled" not in queue.state()
    assert set(queue.state()["lock"]) == {"a", "c"}
