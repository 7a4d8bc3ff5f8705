"""No script takes time in proportion to the tasks that wait, or to their payloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from tests.scripts.conftest import ScriptedQueue
from workstealing.queue.producer_calls import cancel, replay, submit
from workstealing.queue.upkeep_calls import promote, unpark
from workstealing.queue.worker_calls import leave, park, steal
from workstealing.tasks.attempt import Report
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.submission import new_ids


def cancel_all(queue: Any, *ids: str) -> None:
    for task_id in ids:
        call = cancel(queue.keys, queue.settings, task_id, "", b"cancelled")
        assert queue.do(call) == "cancelled"


def test_ids_that_come_again_after_a_cancel_are_not_searched_for(
    alone: Any,
) -> None:
    names = [f"{number}" for number in range(100)]
    alone.submit("first", *names, "last")
    cancel_all(alone, *names)
    alone.client.config_resetstat()

    assert alone.submit(*names).known == frozenset()

    calls = {
        name.removeprefix("cmdstat_"): stats["calls"]
        for name, stats in alone.client.info("commandstats").items()
    }
    assert not calls.keys() & {"lrem", "lpos", "lrange", "linsert"}
    assert sum(calls.values()) < 150
    alone.join("w")
    assert len(alone.take("w", 500)) == 102


def test_an_id_that_comes_again_as_urgent_is_taken_first(
    make_queue: Callable[..., Any],
) -> None:
    queue = make_queue(retention_ms=0)
    queue.submit("a", "b", "c")
    cancel_all(queue, "b")
    queue.submit("b", priority=0)
    queue.join("w")

    assert [task.id for task in queue.take("w", 1)] == ["b"]
    assert [task.id for task in queue.take("w")] == ["a", "c"]
    assert "cancelled" not in queue.state()


def test_an_id_that_was_cancelled_twice_waits_for_its_delay(
    make_queue: Callable[..., Any],
) -> None:
    queue = make_queue(retention_ms=0)
    queue.submit("a")
    cancel_all(queue, "a")
    queue.submit("a")
    cancel_all(queue, "a")
    queue.submit("a", delay_ms=60_000)
    queue.join("w")

    assert queue.take("w") == ()
    state = queue.state()
    assert "cancelled" not in state
    assert set(state["later"]) == {"a"}


def test_what_is_left_of_a_cancelled_id_is_not_assigned_to_a_deque(
    make_queue: Callable[..., Any],
) -> None:
    queue = make_queue(retention_ms=0)
    queue.join("v", "w")
    queue.submit("a", "b", "c", "d")
    cancel_all(queue, "b")
    queue.submit("b", delay_ms=60_000)

    queue.take("v", 1, keep=3)

    assert queue.deque("v") == ["c"]
    assert "cancelled" not in queue.state()


@pytest.mark.parametrize("priority", [0, 1, 2])
def test_a_delayed_task_that_is_due_is_not_read(queue: Any, priority: int) -> None:
    tasks = [("a", b"nobody can read this")]
    queue.do(
        submit(queue.keys, queue.settings, tasks, priority=priority, delay_ms=60_000)
    )
    queue.client.zadd(queue.keys.later, {"a": 1})

    assert queue.do(promote(queue.keys, most=10)) == 1

    assert queue.state()[f"inbox:{priority}"] == ["a"]


@pytest.mark.parametrize("priority", [0, 1, 2])
def test_a_task_that_comes_back_is_not_read(queue: Any, priority: int) -> None:
    queue.join("w", abilities=["x@1"])
    tasks = [("a", b"nobody can read this")]
    queue.do(submit(queue.keys, queue.settings, tasks, priority=priority))
    inbox = f"inbox:{priority}"

    queue.report("w", "back", *queue.take("w"))
    assert queue.state()[inbox] == ["a"]
    queue.report("w", "retry", *queue.take("w"), delay_ms=60_000)
    queue.client.zadd(queue.keys.later, {"a": 1})
    queue.do(promote(queue.keys, most=10))
    assert queue.state()[inbox] == ["a"]
    queue.report("w", "dead", *queue.take("w"))
    queue.do(replay(queue.keys, "a", drop=False))
    assert queue.state()[inbox] == ["a"]
    queue.do(park(queue.keys, "w", *queue.take("w"), "x@1"))
    queue.do(unpark(queue.keys, "x@1", most=10))
    assert queue.state()[inbox] == ["a"]
    queue.take("w")
    queue.do(leave(queue.keys, "w", "1", final=True))
    assert queue.state()[inbox] == ["a"]


@pytest.mark.parametrize("how", ["done", "cancelled", "dropped"])
def test_the_priority_of_a_task_goes_with_it(queue: Any, how: str) -> None:
    queue.join("w")
    queue.submit("a", priority=0)
    taken = queue.take("w")
    if how == "done":
        queue.report("w", "done", *taken)
    elif how == "cancelled":
        queue.report("w", "back", *taken)
        cancel_all(queue, "a")
    else:
        queue.report("w", "dead", *taken)
        queue.do(replay(queue.keys, "a", drop=True))

    assert "priorities" not in queue.state()


def test_a_worker_can_hold_more_tasks_than_lua_can_unpack(queue: Any) -> None:
    queue.join("w")
    names = [f"{number}" for number in range(9001)]
    for start in range(0, len(names), 1000):
        queue.submit(*names[start : start + 1000])
    tasks = []
    while taken := queue.take("w", 1000):
        tasks += taken
    queue.report("w", "retry", tasks.pop())

    (again,) = queue.take("w", 10)

    assert again.attempt == 2
    assert queue.exchange("w", want=1).tasks == ()


def test_one_task_costs_the_server_few_commands(alone: Any) -> None:
    alone.join("w")
    alone.submit("before")
    alone.report("w", "done", *alone.take("w"))
    alone.client.config_resetstat()

    alone.submit("a", channel="somewhere", is_new=True)
    tasks = alone.do(alone.exchanging("w", want=1, renews=False)).tasks
    report = Report("a", tasks[0].token, "done", b"outcome")
    alone.do(alone.exchanging("w", want=1, renews=False, reports=[report]))

    commands = alone.client.info("commandstats")
    calls = [stats["calls"] for name, stats in commands.items() if "config" not in name]
    assert sum(calls) <= 29


def test_a_task_takes_at_most_200_bytes_waiting_and_finished(alone: Any) -> None:
    queue, number = ScriptedQueue(alone.client, "kept"), 10_000
    envelope = Envelope(
        v=1,
        name="images.noop",
        version=1,
        at=1_800_000_000_000,
        payload=Raw(b'{"number":12345}'),
    ).encode()
    outcome = TaskOutcome(
        result=Raw(b"12345"),
        task="noop@1",
        worker="vm-10356-8dd7.0",
        ended=1_800_000_000_000,
    ).encode()

    def bytes_per_task() -> float:
        kept = queue.client.scan_iter(match=f"{queue.keys.prefix}*")
        return sum(queue.client.memory_usage(key, samples=0) for key in kept) / number

    queue.join("w")
    for _ in range(0, number, 1000):
        tasks = [(name, envelope) for name in new_ids(1000)]
        queue.do(submit(queue.keys, queue.settings, tasks, priority=1))
    assert bytes_per_task() <= 200
    while taken := queue.take("w", 1000):
        queue.report("w", "done", *taken, outcome=outcome)
    assert queue.client.hlen(queue.keys.done) == number
    assert bytes_per_task() <= 200


def test_whether_long_tasks_and_outcomes_are_there_is_learned_without_reading_them(
    alone: Any,
) -> None:
    alone.join("w")
    long = [(f"{number}", b"x" * 100_000) for number in range(40)]
    alone.do(submit(alone.keys, alone.settings, long, priority=1))
    alone.submit("ended", "other")
    alone.report("w", "done", *alone.take("w", 42))
    alone.do(submit(alone.keys, alone.settings, long, priority=1))
    alone.client.config_resetstat()

    answer = alone.do(submit(alone.keys, alone.settings, long, priority=1))

    assert len(answer.known) == 40
    commands = alone.client.info("commandstats")
    assert not commands.keys() & {"cmdstat_hmget", "cmdstat_hget"}


def test_a_thief_that_must_look_at_long_tasks_looks_at_a_few(queue: Any) -> None:
    queue.join("v", abilities=["x@1"])
    queue.join("w", abilities=["x@1", "y@1"])
    envelope = b'{"v":1,"name":"x","version":1,"payload":"' + b"x" * (1 << 20) + b'"}'
    for number in range(20):
        tasks = [(f"{number:02}", envelope)]
        queue.do(submit(queue.keys, queue.settings, tasks, priority=1))
    queue.take("v", 1, keep=20)
    before = queue.deque("v")

    moved = queue.do(steal(queue.keys, "v", "w"))

    assert 0 < moved <= 4
    assert sorted(queue.deque("v") + queue.deque("w")) == before
