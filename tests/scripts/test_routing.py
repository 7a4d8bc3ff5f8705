"""A task that its worker cannot run goes to one that can."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workstealing.queue.producer_calls import submit
from workstealing.queue.worker_calls import find_capable, route, steal
from workstealing.tasks.attempt import Delivery


def found(queue: Any, ability: str = "x@2", but: str = "old", most: int = 100) -> str:
    name: str = queue.do(find_capable(queue.keys, ability, but=but, most=most))
    return name


def give(queue: Any, *tasks: tuple[str, str, int]) -> None:
    """Submit tasks, each an id, a name and a version."""
    envelopes = [
        (task_id, b'{"v":1,"name":"%s","version":%d,"payload":{}}' % (name.encode(), v))
        for task_id, name, v in tasks
    ]
    queue.do(submit(queue.keys, queue.settings, envelopes, priority=1))


def test_a_worker_with_the_ability_is_found(queue: Any) -> None:
    queue.join("old", abilities=["x@1"])
    queue.join("new", abilities=["x@1", "x@2"])

    assert found(queue) == "new"
    assert queue.again(find_capable(queue.keys, "x@2", but="old")) == "new"


@pytest.mark.parametrize("ability", ["x@22", "xx@2", "y@2"])
def test_an_ability_that_looks_alike_is_none(queue: Any, ability: str) -> None:
    queue.join("old", abilities=["x@1"])
    queue.join("new", abilities=["x@2"])

    assert found(queue, ability) == ""


def test_names_of_all_kinds_are_found(queue: Any) -> None:
    name = 'größe"\\@7'
    queue.join("new", abilities=[name])

    assert found(queue, name) == "new"


def test_who_asks_is_not_meant(queue: Any) -> None:
    queue.join("old", abilities=["x@2"])

    assert found(queue) == ""


def test_the_dead_are_not_found(queue: Any) -> None:
    queue.join("new", "newer", abilities=["x@2"])
    queue.end_lease("new")

    assert found(queue) == "newer"


def test_of_several_the_one_with_least_to_do_is_found(queue: Any) -> None:
    queue.join("a", "b", "c", abilities=["x@2"])
    queue.submit(*"123456789")
    queue.take("a", 1, keep=3)
    queue.take("c", 1, keep=1)

    assert found(queue) == "b"


def test_of_many_workers_only_some_are_looked_at(queue: Any) -> None:
    queue.join(*(f"w.{number}" for number in range(20)), abilities=["x@2"])

    assert found(queue, most=3).startswith("w.")


def test_one_of_many_is_found_if_all_are_looked_at(queue: Any) -> None:
    queue.join(*(f"w.{number}" for number in range(60)), abilities=["x@1"])
    queue.join("new", abilities=["x@2"])

    assert found(queue) == "new"


def test_a_task_is_routed_to_the_front_and_not_counted(queue: Any) -> None:
    queue.join("old", "new")
    queue.submit(*"abcdef")
    (task,) = queue.take("old", 1)
    queue.take("new", 1, keep=2)
    call = route(queue.keys, "old", task, "new")

    assert queue.do(call)
    assert queue.deque("new") == ["a", "c", "d"]
    state = queue.check()
    assert "running:old" not in state
    assert state["loads"] == {"new": 3}
    assert state["stats"]["routed"] == "1"
    assert not queue.again(call)

    (taken,) = queue.take("new", 1)
    assert (taken.id, taken.attempt, taken.envelope) == ("a", 1, task.envelope)
    assert queue.report("new", "done", taken).refused == ()
    assert queue.report("old", "done", task).refused == ()


def test_all_are_woken_when_the_other_may_be_at_rest(queue: Any) -> None:
    queue.join("old", "new", "third")
    queue.submit("a", "b")
    first, second = queue.take("old", 2)
    queue.client.delete(queue.keys.bell)

    queue.do(route(queue.keys, "old", first, "new"))
    assert queue.client.llen(queue.keys.bell) == 3
    queue.do(route(queue.keys, "old", second, "new"))
    assert queue.client.llen(queue.keys.bell) == 3


def test_a_report_of_who_handed_it_over_comes_too_late(queue: Any) -> None:
    queue.join("old", "new")
    queue.submit("a")
    (task,) = queue.take("old")
    queue.do(route(queue.keys, "old", task, "new"))

    assert queue.report("old", "done", task).refused == ("a",)
    assert queue.deque("new") == ["a"]


def test_nothing_is_routed_to_the_dead(queue: Any) -> None:
    queue.join("old", "new")
    queue.submit("a")
    (task,) = queue.take("old")
    queue.end_lease("new")

    assert not queue.again(route(queue.keys, "old", task, "new"))
    assert not queue.again(route(queue.keys, "old", task, "nobody"))


def test_only_its_holder_hands_a_task_over(queue: Any) -> None:
    queue.join("old", "new", "other")
    queue.submit("a")
    (task,) = queue.take("old")
    stale = Delivery(task.id, "0", task.attempt, task.envelope)

    assert not queue.again(route(queue.keys, "other", task, "new"))
    assert not queue.again(route(queue.keys, "old", stale, "new"))


def test_a_thief_leaves_what_it_cannot_run(queue: Any) -> None:
    queue.join("new", abilities=["x@1", "x@2"])
    queue.join("old", abilities=["x@1"])
    give(queue, *((f"{n}", "x", 2 if n % 2 else 1) for n in range(20)))
    queue.take("new", 1, keep=8)
    assert queue.deque("new") == list("12345678")
    call = steal(queue.keys, "new", "old")

    assert queue.do(call) == 2

    assert queue.deque("old") == ["6", "8"]
    assert queue.deque("new") == ["1", "2", "3", "4", "5", "7"]
    assert queue.again(call) == 0


def test_a_thief_that_can_run_nothing_of_it_gets_nothing(queue: Any) -> None:
    queue.join("new", abilities=["x@2"])
    queue.join("old", abilities=["x@1"])
    give(queue, *((f"{n}", "x", 2) for n in range(8)))
    queue.take("new", 1, keep=3)

    assert queue.again(steal(queue.keys, "new", "old")) == 0
    assert queue.deque("new") == ["1", "2", "3"]


def test_envelopes_of_other_producers_are_understood_by_thieves(queue: Any) -> None:
    queue.join("new", abilities=["x@1", "größe@2"])
    queue.join("old", abilities=["größe@2"])
    envelopes = [
        (f"{n}", json.dumps({"version": 2, "v": 1, "name": name}, indent=1).encode())
        for n, name in enumerate(["größe", "größe", "größe", "x", "größe", "größe"])
    ]
    queue.do(submit(queue.keys, queue.settings, envelopes, priority=1))
    queue.take("new", 1, keep=4)
    queue.take("new", 0, keep=0)

    moved = queue.do(steal(queue.keys, "new", "old"))

    assert moved == len(queue.deque("old"))
    assert "3" not in queue.deque("old")


def test_what_nobody_can_read_is_stolen_all_the_same(queue: Any) -> None:
    queue.join("new", abilities=["x@1"])
    queue.join("old", abilities=["x@2"])
    tasks = [(f"{n}", text) for n, text in enumerate([b"{}", b"{", b"[]", b"1", b"{}"])]
    queue.do(submit(queue.keys, queue.settings, tasks, priority=1))
    queue.take("new", 1, keep=2)

    assert queue.do(steal(queue.keys, "new", "old")) == 1
