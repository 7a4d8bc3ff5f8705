"""What must not be run twice does not come back once it was begun."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing.queue import listing_calls
from workstealing.queue.inspection_calls import begun_at
from workstealing.queue.producer_calls import cancel, replay
from workstealing.queue.upkeep_calls import reassign
from workstealing.queue.worker_calls import Departure, begin, leave
from workstealing.tasks.attempt import Delivery
from workstealing.tasks.outcome import outcome_unknown

UNKNOWN = outcome_unknown().decode()


def reassigning(queue: Any, worker: str) -> Any:
    return reassign(queue.keys, queue.settings, worker, most=100)


def test_a_task_is_begun_by_its_holder_only(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit("a")
    (task,) = queue.take("v")
    stale = Delivery(task.id, "0", task.attempt, task.envelope)

    assert not queue.again(begin(queue.keys, "w", task))
    assert not queue.again(begin(queue.keys, "v", stale))
    assert queue.do(begin(queue.keys, "v", task))
    assert queue.again(begin(queue.keys, "v", task))


def test_those_who_look_see_when_it_was_begun(queue: Any) -> None:
    queue.join("v")
    queue.submit("a")
    (task,) = queue.take("v")
    taken_at = queue.do(begun_at(queue.keys, "v", "a"))
    queue.do(begin(queue.keys, "v", task))

    at = queue.do(begun_at(queue.keys, "v", "a"))
    assert at >= taken_at > 0
    assert queue.do(listing_calls.list_running(queue.keys, ["v"], most=5)) == (
        ("v", "a", at),
    )


def test_one_that_was_begun_is_done_as_ever(queue: Any) -> None:
    queue.join("v")
    queue.submit("a")
    (task,) = queue.take("v")
    queue.do(begin(queue.keys, "v", task))

    assert queue.report("v", "done", task).refused == ()
    assert "running:v" not in queue.state()


def test_when_its_worker_dies_its_outcome_is_unknown(queue: Any) -> None:
    queue.join("v")
    queue.submit("begun", "taken")
    begun, _ = queue.take("v", 2)
    queue.do(begin(queue.keys, "v", begun))
    queue.end_lease("v")
    call = reassigning(queue, "v")

    rescued = queue.do(call)
    assert (rescued.returned, rescued.taken) == (2, ("taken",))
    (lost,) = rescued.given_up
    assert lost.id == "begun"
    assert lost.reason.startswith("outcome unknown: its worker died while it ran")
    assert queue.again(call).returned == 0
    state = queue.check()
    assert state["done"] == {"begun": UNKNOWN}
    assert list(state["dead"]) == ["begun"]
    assert state["history"] == {"begun": "0:1:0", "taken": "0:1:0"}
    assert queue.waiting() == ["taken"]
    assert state["stats"]["dead"] == "1"


def test_when_its_worker_is_replaced_its_outcome_is_unknown(queue: Any) -> None:
    queue.join("v")
    queue.submit("begun", "taken")
    begun, _ = queue.take("v", 2)
    queue.do(begin(queue.keys, "v", begun))

    queue.join("v", incarnation="2")

    assert queue.check()["done"] == {"begun": UNKNOWN}
    assert queue.waiting() == ["taken"]


def test_when_its_worker_leaves_it_behind_its_outcome_is_unknown(queue: Any) -> None:
    queue.join("v")
    queue.submit("begun", "taken")
    begun, _ = queue.take("v", 2)
    queue.do(begin(queue.keys, "v", begun))
    call = leave(queue.keys, "v", "1", final=True)

    departure = queue.do(call)
    assert (departure.returned, departure.left) == (2, 0)
    why = "outcome unknown: its worker was stopped while it ran"
    assert [(one.id, one.reason) for one in departure.given_up] == [("begun", why)]
    assert queue.again(call) == Departure(0, 0)
    assert queue.check()["done"] == {"begun": outcome_unknown(left=True).decode()}
    assert queue.waiting() == ["taken"]


def test_while_its_worker_only_hands_back_what_waits_it_goes_on(queue: Any) -> None:
    queue.join("v")
    queue.submit("begun")
    (begun,) = queue.take("v")
    queue.do(begin(queue.keys, "v", begun))

    queue.do(leave(queue.keys, "v", "1", final=False))

    assert queue.report("v", "done", begun).refused == ()


def test_one_that_its_worker_does_not_know_of_any_more_is_given_up(queue: Any) -> None:
    """Its report was lost in a failover, after the worker had lost its lease."""
    queue.join("v", "w")
    queue.submit("begun", "taken")
    begun, _ = queue.take("v", 2)
    queue.do(begin(queue.keys, "v", begun))

    exchanged = queue.exchange("v", held=[])

    assert [one.id for one in exchanged.given_up] == ["begun"]
    assert queue.deque("v") == ["taken"]
    assert list(queue.check()["dead"]) == ["begun"]
    assert queue.check()["done"] == {"begun": UNKNOWN}
    assert queue.report("v", "done", begun).refused == ("begun",)


def test_one_that_its_worker_holds_goes_on(queue: Any) -> None:
    queue.join("v")
    queue.submit("begun", "taken")
    begun, _ = queue.take("v", 2)
    queue.do(begin(queue.keys, "v", begun))

    queue.exchange("v", held=["begun"])

    assert queue.deque("v") == ["taken"]
    assert queue.report("v", "done", begun).refused == ()


def test_one_that_was_handed_back_unbegun_can_be_begun_elsewhere(queue: Any) -> None:
    """A worker that did not learn whether it may begin gives the task back."""
    queue.join("v", "w")
    queue.submit("a")
    (task,) = queue.take("v")
    queue.do(begin(queue.keys, "v", task))
    queue.report("v", "back", task)

    (again,) = queue.take("w")
    assert not queue.again(begin(queue.keys, "v", task))
    assert queue.do(begin(queue.keys, "w", again))


def test_one_that_runs_can_be_asked_to_stop(queue: Any) -> None:
    queue.join("v")
    queue.submit("a")
    (task,) = queue.take("v")
    queue.do(begin(queue.keys, "v", task))

    assert queue.do(cancel(queue.keys, queue.settings, "a", "v", b"x")) == "asked"
    assert queue.report("v", "cancelled", task).refused == ()


@pytest.mark.parametrize("drop", [False, True])
def test_a_person_may_decide_to_run_it_again(queue: Any, drop: bool) -> None:
    queue.join("v")
    queue.submit("a")
    (task,) = queue.take("v")
    queue.do(begin(queue.keys, "v", task))
    queue.end_lease("v")
    queue.do(reassigning(queue, "v"))

    assert queue.do(replay(queue.keys, "a", drop=drop))
    assert queue.waiting() == ([] if drop else ["a"])
