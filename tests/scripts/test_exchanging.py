"""What a worker gets in an exchange, and what it learns."""

from __future__ import annotations

from typing import Any

from workstealing.queue.inspection_calls import begun_at
from workstealing.queue.producer_calls import cancel


def ids(tasks: Any) -> list[str]:
    return [task.id for task in tasks]


def test_a_taken_task_is_locked_to_its_worker_and_running(queue: Any) -> None:
    queue.join("pool.one.0")
    queue.submit("a")

    (task,) = queue.take("pool.one.0")

    assert (task.id, task.attempt) == ("a", 1)
    assert task.envelope == queue.envelope("a")
    state = queue.state()
    assert state["lock"] == {"a": f"pool.one.0#{task.token}"}
    assert list(state["running:pool.one.0"]) == ["a"]
    assert "inbox:1" not in state
    begun = queue.do(begun_at(queue.keys, "pool.one.0", "a"))
    assert begun is not None
    assert begun > 1_600_000_000_000


def test_no_more_is_taken_than_wanted(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b", "c")

    assert ids(queue.take("w", 2)) == ["a", "b"]
    assert queue.waiting() == ["c"]
    assert ids(queue.take("w", 0)) == []


def test_a_due_task_is_taken_by_an_exchange(queue: Any) -> None:
    queue.join("w")
    queue.submit("urgent", priority=0, delay_ms=60_000)
    queue.submit("normal")
    assert ids(queue.take("w", 0)) == []
    queue.client.zadd(queue.keys.later, {"urgent": 1})

    assert ids(queue.take("w")) == ["urgent", "normal"]


def test_urgent_tasks_come_first_and_the_rest_last(queue: Any) -> None:
    queue.join("w")
    queue.submit("low", priority=2)
    queue.submit("normal", priority=1)
    queue.submit("urgent", priority=0)

    assert ids(queue.take("w")) == ["urgent", "normal", "low"]


def test_a_worker_that_is_alone_keeps_no_deque(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b", "c")

    queue.take("w", 1, keep=10)

    assert queue.deque("w") == []


def test_a_worker_keeps_a_fair_share(queue: Any) -> None:
    queue.join("v", "w", "x")
    queue.submit(*(f"{number:02}" for number in range(31)))

    queue.take("v", 1, keep=100)

    assert queue.deque("v") == [f"{number:02}" for number in range(1, 11)]
    queue.take("w", 1, keep=4)
    assert queue.deque("w") == ["12", "13", "14", "15"]
    state = queue.state()
    assert state["loads"] == {"v": 10, "w": 4}
    assert state["lock"]["05"].startswith("v#")


def test_the_own_deque_is_taken_from_its_front(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdefgh")
    queue.take("v", 1, keep=3)

    assert ids(queue.take("v", 2)) == ["b", "c"]
    assert queue.deque("v") == ["d"]
    assert ids(queue.take("v", 2)) == ["d", "e"]


def test_a_full_deque_is_not_refilled(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdefgh")
    queue.take("v", 1, keep=2)

    queue.take("v", 1, keep=2)

    assert queue.deque("v") == ["c", "d"]


def test_a_large_share_is_kept_whole(queue: Any) -> None:
    queue.join("v", "w")
    for start in range(0, 3000, 1000):
        queue.submit(*(f"{number:04}" for number in range(start, start + 1000)))

    queue.take("v", 1, keep=5000)

    assert queue.deque("v") == [f"{number:04}" for number in range(1, 1001)]


def test_a_worker_that_never_joined_gets_nothing(queue: Any) -> None:
    queue.submit("a")

    assert queue.do(queue.exchanging("w", want=1)) is None
    assert queue.waiting() == ["a"]


def test_a_suspect_is_taken_alone(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b", "bad", "c")
    queue.client.hset(queue.keys.history, "bad", "0:1:0:")

    assert taken_in_turns(queue, "w") == [["a", "b"], ["bad"], ["c"]]


def test_a_suspect_waits_until_its_worker_holds_nothing_else(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "bad")
    queue.client.hset(queue.keys.history, "bad", "0:1:0:")
    held = queue.take("w", 1)

    assert queue.take("w", 1) == ()
    queue.report("w", "done", *held)
    assert ids(queue.take("w", 1)) == ["bad"]


def test_nothing_is_taken_beside_a_suspect(queue: Any) -> None:
    queue.join("w")
    queue.submit("bad", "a")
    queue.client.hset(queue.keys.history, "bad", "0:1:0:")
    held = queue.take("w", 1)

    assert queue.take("w", 1) == ()
    queue.report("w", "done", *held)
    assert ids(queue.take("w", 1)) == ["a"]


def test_what_runs_long_neither_waits_for_a_suspect_nor_keeps_it_waiting(
    queue: Any,
) -> None:
    queue.join("w")
    queue.submit("long", "bad", "a")
    queue.client.hset(queue.keys.history, "bad", "0:1:0:")
    queue.take("w", 1)
    queue.client.hset(queue.keys.running("w"), "long", "1")

    assert ids(queue.take("w", 1)) == ["bad"]
    queue.client.hset(queue.keys.running("w"), "bad", "!1")
    assert ids(queue.take("w", 1)) == ["a"]


def test_what_is_urgent_stays_where_everybody_looks_first(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdef", priority=0)
    queue.submit("normal")

    queue.take("v", 1, keep=10)

    assert queue.deque("v") == ["normal"]
    assert ids(queue.take("w", 2)) == ["b", "c"]


def test_a_suspect_behind_cancelled_tasks_is_found(queue: Any) -> None:
    queue.join("w")
    queue.submit("gone", "bad", "c")
    queue.client.hset(queue.keys.history, "bad", "0:1:0:")
    queue.do(cancel(queue.keys, queue.settings, "gone", "", b"cancelled"))

    assert ids(queue.take("w")) == ["bad"]
    assert queue.waiting() == ["c"]


def test_an_urgent_suspect_does_not_stop_the_rest_for_ever(queue: Any) -> None:
    queue.join("w")
    queue.submit("bad", "worse", priority=0)
    queue.submit("a", "b")
    queue.client.hset(queue.keys.history, "bad", "0:1:0:")
    queue.client.hset(queue.keys.history, "worse", "1:2:0:")

    assert taken_in_turns(queue, "w") == [["bad"], ["worse"], ["a", "b"]]


def test_who_gets_nothing_is_told_whom_to_rob(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdef")
    queue.take("v", 3, keep=10)
    queue.take("w", 1)

    assert queue.exchange("w", want=1).victims == (("v", 2),)
    assert queue.exchange("w", want=0).victims == ()


def test_what_is_finished_is_told_to_those_who_work(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b")
    assert queue.exchange("w").unfinished == 2

    exchanged = queue.report("w", "dead", *queue.take("w"))

    assert exchanged.unfinished == 0


def test_overdue_upkeep_is_given_to_one(queue: Any) -> None:
    queue.join("v", "w")

    assert queue.exchange("v").is_overdue
    assert not queue.exchange("w").is_overdue
    queue.client.hset(queue.keys.upkeep, "claimed", 1)
    assert queue.exchange("w").is_overdue


def test_an_exchange_renews_the_lease(queue: Any) -> None:
    queue.join("w")
    queue.end_lease("w")

    queue.exchange("w")

    seconds, _ = queue.client.time()
    lease = queue.client.zscore(queue.keys.workers, "w")
    assert lease >= seconds * 1000 + queue.settings.lease_ms - 1000


def taken_in_turns(queue: Any, worker: str) -> list[list[str]]:
    """Take and report until nothing is left."""
    turns: list[list[str]] = []
    while tasks := queue.take(worker):
        turns.append(ids(tasks))
        queue.report(worker, "done", *tasks)
    return turns


def test_who_gets_nothing_is_told_when_something_is_due(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", delay_ms=60_000)

    assert 0 < queue.exchange("w", want=1).next_in_ms <= 60_000
    assert queue.exchange("w", want=0).next_in_ms == -1


def test_who_is_left_with_room_is_told_when_something_is_due(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b")
    queue.submit("c", delay_ms=60_000)

    assert queue.exchange("w", want=1).next_in_ms == -1
    assert 0 < queue.exchange("w", want=2).next_in_ms <= 60_000


def test_who_has_no_room_is_told_of_ticks_for_it_may_fire_them(queue: Any) -> None:
    queue.join("w")
    seconds, _ = queue.client.time()
    queue.client.zadd(queue.keys.ticks, {"soon": (seconds + 60) * 1000, "late": 2**50})

    assert 0 < queue.exchange("w", want=0).next_in_ms <= 60_000


def test_a_tick_that_nobody_fires_makes_no_worker_hurry(queue: Any) -> None:
    queue.join("w")
    queue.client.zadd(queue.keys.ticks, {"not ours": 1})

    seen = queue.exchange("w", want=1)

    assert (seen.due_schedules, seen.next_in_ms) == (1, -1)
