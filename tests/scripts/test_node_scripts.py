"""What only a node asks: jobs into a named deque, a steal of one, by many at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workstealing.drivers.sync_driver import Driver
from workstealing.node.shared_state import SharedState, place, snatch

NEW = b'{"priority": 1}'


def test_jobs_are_placed_at_the_back_and_only_once(queue: Any) -> None:
    queue.join("a", "b")
    queue.do(place(queue.keys, "a", ["x"], NEW))
    call = place(queue.keys, "a", ["y", "x", "z"], NEW)

    assert queue.do(call) == ("y", "z")
    assert queue.again(call) == ()
    assert queue.deque("a") == ["x", "y", "z"]


def test_a_job_that_is_known_stays_where_it_is(queue: Any) -> None:
    queue.join("a", "b")
    queue.submit("waiting")
    queue.do(place(queue.keys, "a", ["x"], NEW))

    assert queue.do(place(queue.keys, "b", ["x", "waiting"], NEW)) == ()
    assert (queue.deque("a"), queue.waiting()) == (["x"], ["waiting"])


def test_what_waits_in_the_inbox_is_placed_without_an_envelope(queue: Any) -> None:
    queue.join("a", "b")
    queue.submit("x", "y")
    call = place(queue.keys, "a", ["y", "stranger"])

    assert queue.do(call) == ("y",)
    assert queue.again(call) == ()
    assert (queue.deque("a"), queue.waiting()) == (["y"], ["x"])
    assert queue.take("a")[0].id == "y"


def test_nothing_is_placed_with_a_worker_that_is_not_there(queue: Any) -> None:
    assert queue.do(place(queue.keys, "a", ["x"], NEW)) is None
    assert queue.state().get("task") is None


def test_a_thief_gets_the_last_job_whatever_it_has(queue: Any) -> None:
    queue.join("a", "b")
    queue.do(place(queue.keys, "a", ["x", "y"], NEW))
    queue.do(place(queue.keys, "b", ["own"], NEW))
    call = snatch(queue.keys, "a", "b", "y")

    assert queue.do(call) == 1
    assert queue.again(call) == -2
    assert (queue.deque("a"), queue.deque("b")) == (["x"], ["own"])
    assert list(queue.state()["running:b"]) == ["y"]


def test_a_job_that_is_not_the_last_one_is_not_stolen(queue: Any) -> None:
    queue.join("a", "b")
    queue.do(place(queue.keys, "a", ["x", "y"], NEW))

    assert queue.do(snatch(queue.keys, "a", "b", "x")) == -2
    assert queue.do(snatch(queue.keys, "a", "nobody", "y")) == -1
    assert queue.do(snatch(queue.keys, "nobody", "b", "y")) == -1
    assert queue.deque("a") == ["x", "y"]


class Interrupted(Driver):
    """Lets another act just before a script of some name."""

    def __init__(self, queue: Any, script: str, act: Callable[[], object]) -> None:
        super().__init__(queue.client)
        self._script, self._acts = script, [act]

    def call(self, call: Any) -> Any:
        script = getattr(call, "script", None)
        if script and script.name == self._script and self._acts:
            self._acts.pop()()
        return super().call(call)


def test_of_two_nodes_that_complete_a_job_one_has_done_it(
    queue: Any, key_prefix: str
) -> None:
    other = SharedState(Driver(queue.client), key_prefix)
    other.add("a")
    other.push("a", ["x"])
    other.take("a")
    done = []
    late = Interrupted(queue, "exchange", lambda: done.append(other.done("a", "x")))

    assert not SharedState(late, key_prefix).done("a", "x")
    assert done == [True]


def test_a_thief_that_comes_second_gets_the_next_job(
    queue: Any, key_prefix: str
) -> None:
    other = SharedState(Driver(queue.client), key_prefix)
    other.add("a")
    other.add("b")
    other.push("a", ["x", "y"])
    late = Interrupted(queue, "snatch", lambda: other.steal("a", "b"))

    stolen = SharedState(late, key_prefix).steal("a", "b")

    assert stolen is not None
    assert stolen.job == "x"


def test_jobs_of_one_who_leaves_reach_a_worker_though_another_leaves_too(
    queue: Any, key_prefix: str
) -> None:
    other = SharedState(Driver(queue.client), key_prefix)
    for worker in ("a", "b", "c"):
        other.add(worker)
    other.push("a", ["x", "y", "z"])
    late = Interrupted(queue, "place", lambda: other.remove("b"))

    assert SharedState(late, key_prefix).remove("a") == 3
    assert other.loads(["c"])["c"].waiting == 3
