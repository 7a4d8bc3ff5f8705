"""A worker that cannot run a task finds another; here the test plays Redis."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from workstealing.queue.call import Call
from workstealing.queue.consuming import park
from workstealing.queue.handing import find_able
from workstealing.queue.handing import hand_over as handing
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.attempt import Taken, Unable
from workstealing.workers.handing import hand_over
from workstealing.workers.member import Member

KEYS = QueueKeys("queue", "run")
MEMBER = Member(KEYS, QueueSettings(), "old.0", "1", {"abilities": []})
TASK = Taken("id", "7", 1, b"{}")


def play(*answers: Any) -> list[Call[Any]]:
    flow: Generator[Any, Any, None] = hand_over(MEMBER, Unable(TASK, "x@2"))
    steps = [next(flow)]
    steps += [flow.send(answer) for answer in answers[:-1]]
    with pytest.raises(StopIteration):
        flow.send(answers[-1])
    return steps


def same(steps: list[Call[Any]], *wanted: Call[Any]) -> bool:
    return [(s.script, s.keys, s.arguments) for s in steps] == [
        (w.script, w.keys, w.arguments) for w in wanted
    ]


LOOK = find_able(KEYS, "x@2", but="old.0")
GIVE = handing(KEYS, "old.0", TASK, "new.0")
PARK = park(KEYS, "old.0", TASK, "x@2")


def test_a_worker_that_is_able_gets_it() -> None:
    assert same(play("new.0", True), LOOK, GIVE)


def test_when_nobody_is_able_it_is_parked() -> None:
    assert same(play("", True), LOOK, PARK)


def test_when_the_able_one_is_gone_by_then_it_is_parked() -> None:
    assert same(play("new.0", False, True), LOOK, GIVE, PARK)
