"""How workers come, stay, are replaced and go."""

from __future__ import annotations

import json
from typing import Any

from workstealing.queue.inspection_calls import counts, trace
from workstealing.queue.producer_calls import cancel
from workstealing.queue.worker_calls import Departure, Rescued, join, leave
from workstealing.tasks.attempt import Report


def joining(queue: Any, worker: str, incarnation: str, *abilities: str) -> Any:
    description = {"abilities": list(abilities), "host": "h|#1 ☃"}
    return join(queue.keys, queue.settings, worker, incarnation, description)


def test_a_worker_that_joins_has_a_lease_and_abilities(queue: Any) -> None:
    call = joining(queue, "pool.a.0", "i1", "resize@1", "crop@2")
    before_ms = queue.do(counts(queue.keys)).now_ms

    queue.do(call)

    seen = queue.do(counts(queue.keys))
    joined_at_ms = seen.leases["pool.a.0"] - queue.settings.lease_ms
    assert before_ms <= joined_at_ms <= seen.now_ms
    assert seen.abilities == {"resize@1": 1, "crop@2": 1}
    queue.again(call)


def test_abilities_are_counted_over_all_workers(queue: Any) -> None:
    queue.do(joining(queue, "v", "i1", "x", "y"))
    queue.do(joining(queue, "w", "i2", "x"))
    assert queue.do(counts(queue.keys)).abilities == {"x": 2, "y": 1}

    queue.do(leave(queue.keys, "v", "i1", final=True))
    assert queue.do(counts(queue.keys)).abilities == {"x": 1}

    queue.do(joining(queue, "w", "i3"))
    assert queue.do(counts(queue.keys)).abilities == {}


def test_a_new_incarnation_inherits_the_deque_but_not_what_ran(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdefgh")
    old = queue.take("v", 2, keep=3)
    call = joining(queue, "v", "2")

    queue.do(call)

    assert queue.deque("v") == ["c", "d", "e"]
    assert queue.waiting()[:2] == ["a", "b"]
    assert queue.do(trace(queue.keys, "a")).deaths == 1
    assert queue.do(trace(queue.keys, "c")).deaths == 0
    queue.again(call)
    (task,) = queue.exchange("v", incarnation="2", want=1).tasks
    assert task.id == "c"
    late = queue.exchanging("v", incarnation="1", want=5)
    assert queue.again(late) is None
    assert queue.report("w", "done", *old).refused == ("a", "b")


def test_a_former_incarnation_cannot_report_or_leave(queue: Any) -> None:
    queue.join("v")
    queue.submit("a")
    (old,) = queue.take("v")
    queue.join("v", incarnation="2")
    (new,) = queue.exchange("v", incarnation="2", want=1).tasks
    before = queue.state()

    report = [Report("a", old.token, "done", b"late")]
    assert queue.do(queue.exchanging("v", incarnation="1", reports=report)) is None
    assert queue.do(leave(queue.keys, "v", "1", final=True)) == Departure(0, 0)

    assert queue.state() == before
    report = [Report("a", new.token, "done", b"fine")]
    done = queue.do(queue.exchanging("v", incarnation="2", reports=report))
    assert done.refused == ()


def test_an_incarnation_is_not_taken_for_one_whose_name_it_begins(queue: Any) -> None:
    queue.join("v", incarnation="12")

    assert queue.do(queue.exchanging("v", incarnation="1")) is None
    assert queue.do(queue.exchanging("v", incarnation="12")) is not None


def test_an_exchange_names_only_the_tasks_that_this_worker_must_stop(
    queue: Any,
) -> None:
    queue.join("v", "w")
    queue.submit("a", "b", "c")
    queue.take("v", 2)
    queue.take("w", 1)
    for name, worker in (("b", "v"), ("c", "w")):
        asked = cancel(queue.keys, queue.settings, name, worker, b"cancelled")
        assert queue.do(asked) == "asked"

    call = queue.exchanging("v")

    assert queue.do(call).cancelled == ("b",)
    assert queue.again(call).cancelled == ("b",)


def test_who_never_joined_has_no_lease_to_renew(queue: Any) -> None:
    assert queue.do(queue.exchanging("v")) is None
    assert queue.state() == {"workers": []}


def test_who_leaves_hands_back_all_in_order(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdefgh")
    queue.take("v", 2, keep=3)
    call = leave(queue.keys, "v", "1", final=True)

    assert queue.do(call) == Departure(5, 0)
    assert queue.waiting() == list("abcdefgh")
    assert queue.state()["workers"] == ["w"]
    assert queue.state()["history"] == dict.fromkeys("abcde", "0:0:0")
    assert queue.again(call) == Departure(0, 0)


def test_who_stays_hands_back_only_what_waits(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdefgh")
    taken = queue.take("v", 2, keep=3)
    call = leave(queue.keys, "v", "1", final=False)

    assert queue.do(call) == Departure(3, 0)
    assert queue.again(call) == Departure(0, 0)
    assert queue.waiting() == list("cdefgh")
    assert queue.report("v", "done", *taken).refused == ()


def test_much_is_handed_back_in_parts(queue: Any) -> None:
    queue.join("v", "w")
    for start in range(0, 3000, 1000):
        queue.submit(*(f"{number:04}" for number in range(start, start + 1000)))
    queue.take("v", 100, keep=1000)
    waited = queue.waiting()

    replies = []
    while not replies or replies[-1].left:
        replies.append(queue.do(leave(queue.keys, "v", "1", most=400, final=True)))
        queue.check()

    assert replies == [Departure(400, 700), Departure(400, 300), Departure(300, 0)]
    handed_back = queue.waiting()[: -len(waited)]
    assert handed_back == [f"{number:04}" for number in range(1100)]


def test_each_priority_is_handed_back_to_its_inbox(queue: Any) -> None:
    queue.join("v")
    for priority in (2, 1, 0):
        queue.submit(f"p{priority}", priority=priority)
    queue.take("v")

    queue.do(leave(queue.keys, "v", "1", final=True))

    assert queue.waiting() == ["p0", "p1", "p2"]


def test_a_description_may_hold_anything(queue: Any) -> None:
    queue.do(joining(queue, "v", "i", "a|b@1"))

    member = queue.state()["members"]["v"]

    assert json.loads(member.removeprefix("i|"))["host"] == "h|#1 ☃"
    queue.do(leave(queue.keys, "v", "i", final=True))
    assert "abilities" not in queue.state()


def test_a_task_that_kills_a_worker_of_one_name_again_and_again_is_given_up(
    queue: Any,
) -> None:
    queue.submit("poison")
    for death in range(queue.settings.deaths):
        queue.join("p.0", incarnation=str(death))
        taken = queue.exchange("p.0", want=1, incarnation=str(death)).tasks
        assert [task.id for task in taken] == ["poison"]

    queue.join("p.0", incarnation="last")

    assert not queue.exchange("p.0", want=1, incarnation="last").tasks
    assert b"died" in queue.client.hget(queue.keys.done, "poison")


def test_a_worker_that_comes_back_leaves_its_name_to_a_later_one_that_lives(
    queue: Any,
) -> None:
    def joining(incarnation: str, since: int, *, comes_back: bool = False) -> Any:
        about = {"abilities": ["x@1"], "since": since}
        return join(
            queue.keys, queue.settings, "w", incarnation, about, comes_back=comes_back
        )

    queue.do(joining("first", 1000))
    queue.do(joining("second", 2000))
    queue.submit("a")
    queue.exchange("w", incarnation="second", want=1)

    assert queue.do(joining("first", 1000, comes_back=True)) == Rescued(-1)
    assert "history" not in queue.state()
    assert queue.state()["abilities"] == {"x@1": "1"}
    # One that began earlier cannot be what took the name away.
    assert queue.do(joining("third", 3000, comes_back=True)) == Rescued(1, ("a",))
    queue.end_lease("w")
    assert queue.do(joining("first", 1000, comes_back=True)) == Rescued(0)
