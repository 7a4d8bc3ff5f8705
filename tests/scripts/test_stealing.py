"""Moving tasks between deques, and putting them down where thieves reach them."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing.queue.inspection_calls import trace
from workstealing.queue.worker_calls import release, steal


@pytest.fixture
def rich(queue: Any) -> Any:
    """Queue with two workers, of which `v.0` has one running and five waiting."""
    queue.join("v.0", "w.0")
    queue.submit(*"abcdefghijk")
    queue.take("v.0", 1, keep=5)
    queue.take("w.0", 5)
    return queue


def test_a_thief_gets_half_from_the_back_in_order(rich: Any) -> None:
    call = steal(rich.keys, "v.0", "w.0")

    assert rich.do(call) == 3
    assert rich.deque("v.0") == ["b", "c"]
    assert rich.deque("w.0") == ["d", "e", "f"]
    state = rich.state()
    assert state["loads"] == {"v.0": 2, "w.0": 3}
    assert state["stats"]["stolen"] == state["stats"]["stolen:w.0"] == "3"
    assert rich.do(trace(rich.keys, "e")).steals == 1


def test_a_theft_that_is_repeated_moves_nothing(rich: Any) -> None:
    call = steal(rich.keys, "v.0", "w.0", wake=True)
    rich.do(call)

    assert rich.again(call) == 0


def test_a_single_task_is_worth_stealing(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit("a", "b", "c")
    queue.take("v", 1, keep=1)

    assert queue.do(steal(queue.keys, "v", "w")) == 1
    assert queue.deque("w") == ["b"]
    assert queue.deque("v") == []
    assert queue.state()["loads"] == {"w": 1}


def test_no_more_is_stolen_than_allowed(rich: Any) -> None:
    assert rich.do(steal(rich.keys, "v.0", "w.0", most=1)) == 1
    assert rich.deque("w.0") == ["f"]


def test_a_stolen_task_is_the_thiefs(rich: Any) -> None:
    rich.do(steal(rich.keys, "v.0", "w.0"))

    (task,) = rich.take("w.0", 1)

    assert task.id == "d"
    assert rich.report("v.0", "done", task).refused == ("d",)
    assert rich.report("w.0", "done", task).refused == ()


def test_a_worker_with_a_deque_is_no_thief(rich: Any) -> None:
    rich.do(steal(rich.keys, "v.0", "w.0", most=1))
    before = rich.state()

    assert rich.do(steal(rich.keys, "v.0", "w.0")) == 0
    assert rich.do(steal(rich.keys, "v.0", "v.0")) == 0
    assert rich.state() == before


def test_a_stranger_steals_nothing(rich: Any) -> None:
    before = rich.state()

    assert rich.do(steal(rich.keys, "v.0", "stranger")) == 0
    assert rich.state() == before


def test_an_empty_victim_is_struck_from_the_loads(queue: Any) -> None:
    queue.join("v", "w")
    queue.client.zadd(queue.keys.loads, {"v": 7})

    assert queue.do(steal(queue.keys, "v", "w")) == 0
    assert "loads" not in queue.state()


def test_somebody_is_woken_if_the_thief_does_not_know(rich: Any) -> None:
    rich.client.delete(rich.keys.bell)
    rich.do(steal(rich.keys, "v.0", "w.0", most=1))
    assert rich.client.llen(rich.keys.bell) == 0
    rich.take("w.0", 1)

    rich.do(steal(rich.keys, "v.0", "w.0", most=1, wake=True))

    assert rich.client.llen(rich.keys.bell) == 1


def test_five_hundred_are_stolen_at_once(queue: Any) -> None:
    queue.join("v", "w")
    for start in range(0, 3000, 1000):
        queue.submit(*(f"{number:04}" for number in range(start, start + 1000)))
    queue.take("v", 1, keep=1000)

    assert queue.do(steal(queue.keys, "v", "w")) == 500
    assert queue.deque("v") + queue.deque("w") == [
        f"{number:04}" for number in range(1, 1001)
    ]


def test_released_tasks_come_first_in_the_own_deque(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdefgh")
    taken = queue.take("v", 4, keep=1)
    call = release(queue.keys, "v", taken[1:])

    assert queue.do(call) == 3
    assert queue.deque("v") == ["b", "c", "d", "e"]
    assert list(queue.state()["running:v"]) == ["a"]
    assert queue.state()["loads"] == {"v": 4}
    assert queue.again(call) == 0


def test_a_release_that_arrives_late_takes_nothing_away(queue: Any) -> None:
    queue.join("v")
    queue.submit("a")
    call = release(queue.keys, "v", queue.take("v"))
    queue.do(call)
    (anew,) = queue.take("v")

    assert queue.again(call) == 0
    assert queue.report("v", "done", anew).refused == ()


def test_only_what_is_held_is_released(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit("a", "b")
    (task,) = queue.take("v", 1)
    done = queue.take("v", 1)
    queue.report("v", "done", *done)

    assert queue.do(release(queue.keys, "w", [task])) == 0
    assert queue.do(release(queue.keys, "v", done)) == 0
    assert queue.do(release(queue.keys, "v", [])) == 0
    assert queue.do(release(queue.keys, "v", [task, task])) == 1
    assert queue.deque("v") == ["a"]
