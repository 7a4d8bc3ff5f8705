"""Steps wait for others to end, and what they need is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workstealing.queue.composition_calls import NewGroup, NewStep, submit_steps
from workstealing.queue.producer_calls import cancel, forget, read_outcomes, replay
from workstealing.queue.upkeep_calls import expire

DONE = b'{"result":1}'
FAILED = b'{"state":"failed","error":{"type":"ValueError","message":"bad"}}'


def submit(queue: Any, *steps: NewStep, group: NewGroup | None = None) -> str:
    call = submit_steps(
        queue.keys,
        queue.settings,
        steps,
        group or NewGroup(),
        whole=len(steps),
        limits={},
    )
    verdict: str = queue.do(call)
    assert queue.again(call) == verdict
    return verdict


def group_of(queue: Any, *members: str, step: str = "s", total: int = 0) -> None:
    new = [NewStep(step, b"{}", waits=True)]
    new += [NewStep(one, b"{}", follower=step, is_member=True) for one in members]
    assert submit(queue, *new, group=NewGroup(step, total or len(members))) == "ok"


def end(queue: Any, number: int, verdict: Any = "done", outcome: bytes = DONE) -> None:
    tasks = queue.take("w", number)
    assert len(tasks) == number
    queue.report("w", verdict, *tasks, outcome=outcome)
    queue.check()


@pytest.fixture
def queue(make_queue: Any) -> Any:
    queue = make_queue()
    queue.join("w")
    return queue


def test_a_chain_is_handed_from_step_to_step(queue: Any) -> None:
    steps = [
        NewStep("a", b"{}", follower="b"),
        NewStep("b", b"{}", follower="c", waits=True),
        NewStep("c", b"{}", priority=0, waits=True),
    ]
    assert submit(queue, *steps) == "ok"
    for name in "abc":
        (task,) = queue.take("w")
        assert task.id == name
        queue.report("w", "done", task, outcome=DONE)
        queue.check()
    assert "steps" not in queue.state()


def test_a_report_that_comes_twice_hands_over_once(queue: Any) -> None:
    submit(
        queue,
        NewStep("a", b"{}", follower="b"),
        NewStep("b", b"{}", waits=True),
    )
    (task,) = queue.take("w")
    for _ in range(2):
        queue.report("w", "done", task, outcome=DONE)
    assert queue.waiting() == ["b"]


@pytest.mark.parametrize("verdict", ["failed", "dead", "cancelled", "expired"])
def test_steps_after_one_that_is_not_done_are_cancelled(
    queue: Any, verdict: Any
) -> None:
    submit(
        queue,
        NewStep("a", b"{}", follower="b"),
        NewStep("b", b"{}", follower="c", waits=True),
        NewStep("c", b"{}", waits=True),
    )
    end(queue, 1, verdict, FAILED)

    outcomes = queue.state()["done"]
    for name in "bc":
        outcome = json.loads(outcomes[name])
        assert outcome["state"] == "cancelled"
        assert outcome["reason"] == "the earlier step a failed: ValueError: bad"
    assert queue.state()["stats"]["cancelled"] >= "2"


def test_a_step_is_begun_when_the_last_member_has_ended(queue: Any) -> None:
    group_of(queue, "m1", "m2", "m3")
    end(queue, 1)
    end(queue, 1, "dead", FAILED)
    assert queue.waiting() == ["m3"]
    call = cancel(queue.keys, queue.settings, "m3", "", b"{}")
    assert queue.do(call) == "cancelled"
    assert queue.take("w")[0].id == "s"
    assert queue.state()["groups"]["s"].startswith("0:3:2:")


def test_a_dead_member_that_is_replayed_later_counts_once(queue: Any) -> None:
    group_of(queue, "m1")
    end(queue, 1, "dead", FAILED)
    (step,) = queue.take("w")
    assert step.id == "s"
    assert queue.do(replay(queue.keys, "m1", drop=False))
    end(queue, 1)

    assert queue.state()["groups"]["s"].startswith("0:1:1:")
    assert queue.waiting() == []


def test_a_letter_that_is_dropped_leaves_what_the_step_needs(queue: Any) -> None:
    group_of(queue, "m1", "m2")
    end(queue, 1, "dead", FAILED)
    assert queue.do(replay(queue.keys, "m1", drop=True))
    queue.check()

    (seen,) = queue.do(read_outcomes(queue.keys, ["m1"]))
    assert (seen.verdict, seen.outcome) == ("ended", FAILED)


def test_needed_outcomes_stay_until_the_step_has_ended(make_queue: Any) -> None:
    queue = make_queue(retention_ms=0, outcomes=1)
    queue.join("w")
    group_of(queue, "m1", "m2")
    end(queue, 2)
    for _ in range(2):
        assert queue.do(expire(queue.keys, queue.settings, most=9)) == 0
        assert queue.do(forget(queue.keys, ["m1", "m2"])) == 0
    assert set(queue.state()["done"]) == {"m1", "m2"}

    end(queue, 1)
    queue.set_outcome_times({"m1": 1, "m2": 1})
    queue.do(expire(queue.keys, queue.settings, most=9))
    assert not {"done", "outcome_times", "followers"} & set(queue.state())


def test_the_oldest_dead_letters_go_but_not_what_a_step_needs_of_them(
    make_queue: Any,
) -> None:
    queue = make_queue(dead_letters=0)
    queue.join("w")
    group_of(queue, "m1", "m2")
    end(queue, 1, "dead", FAILED)
    queue.do(expire(queue.keys, queue.settings, most=9))
    state = queue.check()

    assert "dead" not in state
    assert state["done"] == {"m1": FAILED.decode()}


def test_a_group_comes_in_slices_each_once(queue: Any) -> None:
    first = [NewStep("s", b"{}", waits=True)]
    first += [NewStep("m1", b"{}", follower="s", is_member=True)]
    second = NewStep("m2", b"{}", follower="s", is_member=True)
    submit(queue, *first, group=NewGroup("s", 2, 0, is_last=False))
    end(queue, 1)
    assert queue.waiting() == []
    assert submit(queue, second, group=NewGroup("s", 2, 1)) == "ok"
    assert "group_times" not in queue.state()
    end(queue, 1)
    # A slice that arrives late changes nothing.
    submit(queue, *first, group=NewGroup("s", 2, 0, is_last=False))
    assert queue.take("w")[0].id == "s"


def test_a_group_that_is_not_all_there_is_given_up_after_a_while(queue: Any) -> None:
    first = [NewStep("s", b"{}", follower="t", waits=True)]
    first += [NewStep("t", b"{}", waits=True)]
    first += [NewStep("m1", b"{}", follower="s", is_member=True)]
    second = NewStep("m2", b"{}", follower="s", is_member=True)
    submit(queue, *first, group=NewGroup("s", 2, 0, is_last=False))
    assert queue.do(expire(queue.keys, queue.settings, most=9)) == 0
    queue.client.zadd(queue.keys.group_times, {"s": 1})
    assert queue.do(expire(queue.keys, queue.settings, most=9)) == 1

    for name in "st":
        reason = json.loads(queue.state()["done"][name])["reason"]
        assert "only a part of its 2 members was submitted" in reason
    assert submit(queue, second, group=NewGroup("s", 2, 1)) == "over"
    end(queue, 1)
    assert not {"groups", "group_times", "steps"} & set(queue.state())


def test_a_group_is_forgotten_some_time_after_its_end(queue: Any) -> None:
    member = NewStep("m", b"{}", follower="g", is_member=True)
    submit(queue, member, group=NewGroup("g", 1))
    end(queue, 1)
    assert queue.state()["groups"]["g"].startswith("0:1:0:")
    queue.client.zadd(queue.keys.group_times, {"g": 1}, xx=True)
    queue.do(expire(queue.keys, queue.settings, most=9))

    assert not {"groups", "group_times", "followers"} & set(queue.state())
