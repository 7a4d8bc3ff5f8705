"""Tasks that no worker can run wait for one that can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workstealing.queue.inspection_calls import counts, trace
from workstealing.queue.producer_calls import cancel
from workstealing.queue.upkeep_calls import survey, unpark
from workstealing.queue.worker_calls import park


def park_all(queue: Any, worker: str, ability: str) -> None:
    for task in queue.take(worker, 1000):
        assert queue.do(park(queue.keys, worker, task, ability))


def test_a_parked_task_waits_for_its_ability(queue: Any) -> None:
    queue.join("v")
    queue.submit("a")
    (task,) = queue.take("v")
    call = park(queue.keys, "v", task, "x@2")

    assert queue.do(call)
    assert not queue.again(call)
    assert queue.do(trace(queue.keys, "a")).needs == "x@2"
    seen = queue.do(counts(queue.keys))
    assert (seen.parked, seen.unfinished, seen.assigned) == (1, 0, 0)
    assert queue.take("v") == ()


def test_only_its_holder_parks_a_task(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit("a")
    (task,) = queue.take("v")

    assert not queue.again(park(queue.keys, "w", task, "x@1"))


def test_parked_tasks_stay_while_nobody_is_able(queue: Any) -> None:
    queue.join("v", abilities=["y@1"])
    queue.submit("a")
    park_all(queue, "v", "x@1")

    assert queue.again(unpark(queue.keys, "x@1", most=10)) == 0
    assert queue.do(survey(queue.keys)).wanted == ()


def test_parked_tasks_return_in_order_when_somebody_is_able(queue: Any) -> None:
    queue.join("v")
    queue.submit("a", "b", "c")
    queue.submit("low", priority=2)
    park_all(queue, "v", "x@1")
    queue.submit("d")
    queue.join("w", abilities=["x@1"])
    assert queue.do(survey(queue.keys)).wanted == ("x@1",)

    assert queue.do(unpark(queue.keys, "x@1", most=2)) == 2
    assert queue.do(unpark(queue.keys, "x@1", most=10)) == 2

    assert queue.waiting() == ["a", "b", "c", "d", "low"]
    state = queue.state()
    assert not {"parked", "parked_abilities", "parked:x@1"} & set(state)
    assert queue.again(unpark(queue.keys, "x@1", most=10)) == 0


def test_a_thousand_parked_tasks_return_at_once(queue: Any) -> None:
    queue.join("v", abilities=["x@1"])
    names = [f"{number:04}" for number in range(1000)]
    queue.submit(*names)
    park_all(queue, "v", "x@1")

    assert queue.do(unpark(queue.keys, "x@1", most=5000)) == 1000
    assert queue.waiting() == names


def test_one_that_was_cancelled_and_parked_anew_waits_for_what_it_needs_now(
    make_queue: Callable[..., Any],
) -> None:
    queue = make_queue(retention_ms=0)
    queue.join("v", abilities=["x@1"])
    queue.submit("a")
    park_all(queue, "v", "x@1")
    call = cancel(queue.keys, queue.settings, "a", "", b"cancelled", needs="x@1")
    assert queue.do(call) == "cancelled"
    queue.submit("a")
    park_all(queue, "v", "y@1")

    assert queue.do(unpark(queue.keys, "x@1", most=10)) == 0

    assert queue.waiting() == []
    assert queue.do(trace(queue.keys, "a")).needs == "y@1"
