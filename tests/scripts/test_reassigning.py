"""Giving back what the dead held, and looking around for what to do."""

from __future__ import annotations

import time
from typing import Any

import pytest

from workstealing import TaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task import definition_of
from workstealing.queue.inspection_calls import counts, trace
from workstealing.queue.producer_calls import cancel, replay, submit
from workstealing.queue.upkeep_calls import (
    idle,
    reassign,
    reconcile,
    record_duties,
    survey,
)
from workstealing.queue.worker_calls import GivenUp, Rescued, join, steal
from workstealing.tasks.outcome import outcome_of_deaths
from workstealing.tasks.submission import SubmitOptions, envelope_without_payload


def reassigning(queue: Any, worker: str, most: int = 100) -> Any:
    return reassign(queue.keys, queue.settings, worker, most=most)


def test_a_living_worker_keeps_everything(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdef")
    queue.take("v", 1, keep=2)

    assert queue.again(reassigning(queue, "v")) == Rescued(-1)


def test_the_tasks_of_the_dead_wait_again_in_order(queue: Any) -> None:
    queue.join("v.0", "w.0", abilities=["x@1"])
    queue.submit(*"abcdefgh")
    queue.take("v.0", 2, keep=3)
    queue.end_lease("v.0")
    call = reassigning(queue, "v.0")

    rescued = queue.do(call)
    assert (rescued.returned, sorted(rescued.taken)) == (5, ["a", "b"])
    assert queue.waiting() == list("abcdefgh")
    state = queue.state()
    assert state["workers"] == ["w.0"]
    assert state["abilities"] == {"x@1": "1"}
    waited = dict.fromkeys("cde", "0:0:0")
    assert state["history"] == {"a": "0:1:0", "b": "0:1:0", **waited}
    assert state["stats"]["reassigned"] == "5"
    assert queue.again(call) == Rescued(0)


def test_what_a_dead_worker_no_longer_holds_stays_where_it_is(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcd")
    queue.take("w", 1, keep=1)
    assert queue.deque("w") == ["b"]
    # As if something had gone wrong: the dead worker has them too, but not the locks.
    queue.client.hset(queue.keys.running("v"), "a", 1)
    queue.client.rpush(queue.keys.deque("v"), "b")
    queue.end_lease("v")

    assert queue.do(reassigning(queue, "v")) == Rescued(0)
    assert queue.deque("w") == ["b"]
    assert queue.waiting() == ["c", "d"]


def test_much_is_given_back_in_parts(queue: Any) -> None:
    queue.join("v", "w")
    for start in range(0, 3000, 1000):
        queue.submit(*(f"{number:04}" for number in range(start, start + 1000)))
    queue.take("v", 10, keep=1000)
    queue.end_lease("v")

    replies = []
    while "v" in queue.state()["workers"]:
        replies.append(queue.do(reassigning(queue, "v", 300)).returned)
        queue.check()

    assert replies == [300, 300, 300, 110]
    assert queue.waiting()[:1010] == [f"{number:04}" for number in range(1010)]


def test_a_worker_that_comes_back_in_time_keeps_what_is_left(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdefgh")
    taken = queue.take("v", 2, keep=3)
    queue.end_lease("v")
    queue.do(reassigning(queue, "v", 1))

    assert queue.report("v", "done", *taken).refused == ()
    assert queue.deque("v") == ["c", "d"]
    assert queue.do(reassigning(queue, "v")) == Rescued(-1)


def test_a_worker_that_comes_back_late_has_nothing(queue: Any) -> None:
    queue.join("v")
    queue.submit("a")
    (old,) = queue.take("v")
    queue.end_lease("v")
    queue.do(reassigning(queue, "v"))

    assert queue.do(queue.exchanging("v", want=1)) is None

    queue.join("v")
    (new,) = queue.take("v")
    assert queue.report("v", "done", old, outcome=b"late").refused == ("a",)
    assert queue.report("v", "done", new).refused == ()
    assert queue.state()["done"] == {"a": "outcome"}


def test_a_task_is_given_up_after_three_deaths(queue: Any) -> None:
    queue.submit("bad", "good")
    for death in range(3):
        queue.join("v")
        assert [task.id for task in queue.take("v", 1)] == ["bad"]
        queue.end_lease("v")
        assert queue.do(trace(queue.keys, "bad")).deaths == death
        queue.do(reassigning(queue, "v"))

    state = queue.state()
    assert state["done"] == {"bad": outcome_of_deaths(3).decode()}
    # A lease ends as well when a worker is only silent.
    assert "died 3 times, or was silent for longer than" in state["done"]["bad"]
    assert list(state["dead"]) == ["bad"]
    assert state["stats"]["dead"] == "1"
    assert queue.do(trace(queue.keys, "bad")).deaths == 3
    assert queue.waiting() == ["good"]
    assert queue.do(counts(queue.keys)).unfinished == 1
    assert queue.again(reassigning(queue, "v")) == Rescued(0)
    queue.do(replay(queue.keys, "bad", drop=False))
    assert queue.do(trace(queue.keys, "bad")).deaths == 0


def test_a_task_whose_worker_dies_stays_cancelled(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit("a")
    queue.take("v")
    queue.do(cancel(queue.keys, queue.settings, "a", "v", b"cancelled"))
    queue.end_lease("v")
    queue.do(reassigning(queue, "v"))

    exchanged = queue.exchange("w", want=1)

    assert [task.id for task in exchanged.tasks] == ["a"]
    assert exchanged.cancelled == ("a",)


def test_somebody_unknown_is_dead(queue: Any) -> None:
    assert queue.again(reassigning(queue, "nobody")) == Rescued(0)


def test_a_survey_tells_what_could_be_done(queue: Any) -> None:
    queue.join("poor", "rich", "richer", "late", abilities=["x@1"])
    queue.submit(*map(str, range(60)))
    queue.take("rich", 1, keep=3)
    queue.take("richer", 1, keep=5)
    queue.take("late", 1, keep=1)
    queue.end_lease("late")
    queue.submit("soon", delay_ms=60_000)

    seen = queue.do(survey(queue.keys))

    assert seen.dead == ("late",)
    assert seen.rich == ("richer", "rich")
    assert set(seen.living) == {"poor", "rich", "richer", "late"}
    assert seen.wanted == ()
    assert seen.due_in_ms is not None
    assert 50_000 < seen.due_in_ms <= 60_000
    assert seen.done_at["claimed"] == seen.now_ms
    assert queue.client.llen(queue.keys.bell) == 16


def test_a_survey_of_nothing_finds_nothing(queue: Any) -> None:
    seen = queue.do(survey(queue.keys))

    found = (seen.dead, seen.rich, seen.living, seen.wanted)
    assert found == ((), (), (), ())
    assert seen.due_in_ms is None
    assert queue.again(survey(queue.keys)).now_ms >= seen.now_ms


def test_only_who_has_nothing_at_all_is_idle(queue: Any) -> None:
    queue.join("a.0", "b", "c")
    queue.submit(*map(str, range(9)))
    queue.take("b", 1)
    queue.take("c", 1, keep=2)
    queue.report("c", "done", *queue.take("c", 0))

    assert queue.do(idle(queue.keys, ("a.0", "b", "c"))) == ("a.0",)
    queue.do(steal(queue.keys, "c", "a.0"))
    assert queue.again(idle(queue.keys, ("a.0", "b", "c"))) == ()
    assert queue.do(idle(queue.keys, ())) == ()


def test_tasks_of_workers_that_nobody_knows_wait_again(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdef")
    queue.take("v", 1, keep=2)
    queue.take("w", 1)
    for key in (queue.keys.deque("v"), queue.keys.running("v")):
        queue.client.delete(key)
    queue.client.zrem(queue.keys.workers, "v")
    queue.client.zrem(queue.keys.loads, "v")
    queue.client.hdel(queue.keys.members, "v")

    call = reconcile(queue.keys, page=100)

    assert queue.do(call) == 3
    assert sorted(queue.waiting()) == list("abcef")
    assert queue.again(call) == 0


def test_reconciling_goes_on_page_by_page(queue: Any) -> None:
    queue.join("v", "w")
    for start in range(0, 3000, 1000):
        queue.submit(*map(str, range(start, start + 1000)))
    queue.take("v", 1500)
    queue.client.delete(queue.keys.running("v"))
    queue.client.zrem(queue.keys.workers, "v")
    queue.client.hdel(queue.keys.members, "v")

    pages = []
    while queue.client.hlen(queue.keys.lock):
        pages.append(queue.do(reconcile(queue.keys, page=100)))

    assert sum(pages) == 1500
    assert sorted(map(int, queue.waiting())) == list(range(3000))


def test_duties_are_remembered_with_who_did_them(queue: Any) -> None:
    before = queue.do(survey(queue.keys)).now_ms

    queue.do(record_duties(queue.keys, "host-1", ["expire", "promote"]))

    seen = queue.do(counts(queue.keys))
    assert seen.upkeep["expire"] >= before
    assert seen.upkeep["promote"] >= before
    assert seen.stats["upkeep:host-1"] == 1


def clock_jumps(queue: Any, seconds: float) -> None:
    """Put all that is timed into the past, which is the same."""
    keys, client = queue.keys, queue.client
    for worker, end in client.zrange(keys.workers, 0, -1, withscores=True):
        client.zadd(keys.workers, {worker: end - seconds * 1000})
    for field, at in client.hgetall(keys.upkeep).items():
        client.hset(keys.upkeep, field, int(at) - round(seconds * 1000))


def test_after_a_jump_of_the_clock_the_living_have_time_to_renew(queue: Any) -> None:
    queue.join("u", "v", "w")
    assert queue.do(survey(queue.keys)).dead == ()

    clock_jumps(queue, 3600)
    assert queue.do(survey(queue.keys)).dead == ()
    queue.join("u", "v")
    clock_jumps(queue, 1)
    assert queue.do(survey(queue.keys)).dead == ()

    clock_jumps(queue, 3)
    assert queue.do(survey(queue.keys)).dead == ("w",)


def test_where_looks_are_far_apart_the_second_finds_the_dead(queue: Any) -> None:
    queue.join("v", "w")
    queue.do(survey(queue.keys))
    clock_jumps(queue, 30)
    assert queue.do(survey(queue.keys)).dead == ()
    queue.join("v")

    clock_jumps(queue, 30)
    assert queue.do(survey(queue.keys)).dead == ("w",)


def test_a_clock_that_went_back_stops_no_look(queue: Any) -> None:
    queue.join("v", "w")
    queue.do(survey(queue.keys))
    clock_jumps(queue, 3600)
    queue.do(survey(queue.keys))
    clock_jumps(queue, -3600)
    queue.end_lease("w")

    assert queue.do(survey(queue.keys)).dead == ("w",)


@pytest.mark.parametrize("secret", [None, "a secret of some length"])
def test_who_rescues_learns_what_was_given_up(queue: Any, secret: str | None) -> None:
    tasks = TaskQueue("names", secret=secret)
    task = tasks.task(name="images.resize")(lambda: None)
    is_signed = secret is not None
    envelope = envelope_without_payload(
        definition_of(task), SubmitOptions(), time_ns=time.time_ns, is_signed=is_signed
    )
    written = envelope.encode()
    signer = internals_of(tasks).admission.signer
    if signer is not None:
        written = signer.sign("bad", written)
    queue.do(submit(queue.keys, queue.settings, [("bad", written)], priority=1))
    for incarnation in "123":
        queue.join("v", incarnation=incarnation)
        exchanged = queue.exchange("v", want=1, incarnation=incarnation)
        assert [task.id for task in exchanged.tasks] == ["bad"]

    call = join(queue.keys, queue.settings, "v", "4", {"abilities": []})

    reason = "its worker died 3 times, or was silent for longer than its lease"
    lost = GivenUp("bad", "images.resize", reason)
    assert queue.do(call) == Rescued(1, (), (lost,))
    assert queue.do(call) == Rescued(0)
