"""The exchange of a process that runs short tasks in a spare moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from workstealing.queue.brief_calls import BriefExchanged, brief_exchange, keep_lease
from workstealing.queue.inspection_calls import counts
from workstealing.queue.listing_calls import count_living
from workstealing.queue.producer_calls import cancel, submit
from workstealing.queue.shard_calls import shard_status
from workstealing.queue.steps import Call
from workstealing.queue.upkeep_calls import reassign
from workstealing.tasks.attempt import Delivery, Report, Verdict

HOST = "brief-a.0"


def put(queue: Any, *ids: str, name: str = "x", size: int = 0) -> None:
    payload = json.dumps({"text": "." * size} if size else {})
    envelope = f'{{"v":1,"name":"{name}","version":1,"payload":{payload}}}'.encode()
    tasks = [(task_id, envelope) for task_id in ids]
    queue.do(submit(queue.keys, queue.settings, tasks, priority=1))


def exchanging(
    queue: Any, want: int = 100, able: Sequence[str] = ("x@1",), **more: Any
) -> Call[BriefExchanged]:
    return brief_exchange(queue.keys, queue.settings, HOST, able, want=want, **more)


def taken(queue: Any, want: int = 100, **more: Any) -> list[str]:
    return [task.id for task in queue.do(exchanging(queue, want, **more)).tasks]


def reported(verdict: Verdict, *tasks: Delivery) -> list[Report]:
    return [Report(task.id, task.token, verdict, b"outcome") for task in tasks]


def test_several_tasks_are_taken_at_once_in_order(queue: Any) -> None:
    put(queue, *"abcde")

    assert taken(queue, 3) == ["a", "b", "c"]
    assert queue.waiting() == ["d", "e"]
    assert queue.state()["stats"]["brief"] == "3"


def test_tasks_that_do_not_fit_are_passed_over_and_keep_their_order(
    queue: Any,
) -> None:
    put(queue, "a")
    put(queue, "b", "c", name="long")
    put(queue, "d", "e")
    put(queue, "f", name="long")

    answer = queue.do(exchanging(queue, 9))

    assert [task.id for task in answer.tasks] == ["a", "d", "e"]
    assert answer.abilities == ("x@1", "x@1", "x@1")
    assert queue.waiting() == ["b", "c", "f"]


def test_no_more_than_twenty_that_do_not_fit_are_passed_over(queue: Any) -> None:
    put(queue, *(f"long-{number}" for number in range(20)), name="long")
    put(queue, "a")

    assert taken(queue) == []
    assert queue.waiting()[-1] == "a"


def test_a_huge_task_hides_no_brief_one_behind_it(queue: Any) -> None:
    put(queue, "huge", name="long", size=300_000)
    put(queue, *(f"large-{number}" for number in range(15)), name="long", size=30_000)
    put(queue, "a")

    assert taken(queue) == ["a"]
    assert queue.waiting()[0] == "huge"


def test_a_huge_task_that_fits_is_taken(queue: Any) -> None:
    put(queue, "huge", size=300_000)
    assert taken(queue) == ["huge"]


def test_what_was_not_run_goes_back_in_order(queue: Any) -> None:
    put(queue, *"abcde")
    tasks = queue.do(exchanging(queue, 4)).tasks
    reports = reported("done", tasks[0]) + reported("back", *reversed(tasks[1:]))

    call = exchanging(queue, 0, able=(), reports=reports)
    assert queue.do(call).tasks == ()

    assert queue.waiting() == list("bcde")
    assert "lock" not in queue.state()
    assert HOST not in queue.state().get("workers", ())
    assert queue.again(call).refused == ("d", "c", "b"), "they were given back before"


def test_what_a_host_never_heard_of_goes_back(queue: Any) -> None:
    put(queue, *"abc")
    queue.do(exchanging(queue, 2))

    again = queue.do(exchanging(queue, 3)).tasks

    assert [(task.id, task.attempt) for task in again] == [
        ("a", 1),
        ("b", 1),
        ("c", 1),
    ]


def test_what_somebody_died_with_is_taken_alone(queue: Any) -> None:
    put(queue, *"abc")
    queue.client.hset(queue.keys.history, "b", "0:1:0:")

    first = queue.do(exchanging(queue)).tasks
    second = queue.do(exchanging(queue, reports=reported("done", *first))).tasks
    third = queue.do(exchanging(queue, reports=reported("done", *second))).tasks

    assert [[task.id for task in tasks] for tasks in (first, second, third)] == [
        ["a"],
        ["b"],
        ["c"],
    ]


def test_what_is_unique_until_it_is_begun_comes_first_or_not_at_all(
    queue: Any,
) -> None:
    put(queue, *"abcd")
    queue.client.hset(queue.keys.unique_of, "c", "s1:0:key")
    queue.client.hset(queue.keys.uniques, "key", "c")

    first = queue.do(exchanging(queue)).tasks
    second = queue.do(exchanging(queue, reports=reported("done", *first))).tasks

    assert [task.id for task in first] == ["a", "b"]
    assert [task.id for task in second] == ["c", "d"]


def test_those_that_were_too_long_are_forgotten_when_they_are_many(queue: Any) -> None:
    old = {f"old-{number}": "1" for number in range(1000)}
    queue.client.hset(queue.keys.too_long, mapping=old)

    queue.do(exchanging(queue, 0, able=(), overran="a"))

    assert list(queue.state()["too_long"]) == ["a"]


def test_what_somebody_died_with_is_left_to_workers(queue: Any) -> None:
    put(queue, *"abc")
    queue.client.hset(queue.keys.history, "b", "0:1:0:")
    queue.join("w.0", abilities=["x@1"])

    assert taken(queue) == ["a", "c"]
    assert queue.waiting() == ["b"]


def test_a_task_that_runs_on_is_kept_and_the_others_go_back(queue: Any) -> None:
    put(queue, *"abc")
    first, second, third = queue.do(exchanging(queue)).tasks
    reports = reported("done", first) + reported("back", third)
    call = exchanging(
        queue, 0, able=(), reports=reports, overran=second.id, runs_on=True
    )

    queue.do(call)

    state = queue.state()
    assert queue.waiting() == ["c"]
    assert state["lock"] == {"b": f"{HOST}#{second.token}"}
    assert list(state[f"running:{HOST}"]) == ["b"]
    assert HOST in state["workers"], "until its lease has ended"
    assert "b" in state["too_long"]


def test_what_somebody_asked_to_cancel_is_named(queue: Any) -> None:
    put(queue, *"abc")
    tasks = queue.do(exchanging(queue)).tasks
    queue.do(cancel(queue.keys, queue.settings, "b", HOST, b"cancelled"))
    reports = reported("back", *reversed(tasks))

    answer = queue.do(exchanging(queue, reports=reports))

    assert [task.id for task in answer.tasks] == ["a", "b", "c"]
    assert answer.cancelled == ("b",)


def test_a_paused_queue_gives_nothing_to_a_spare_moment(queue: Any) -> None:
    put(queue, "a")
    queue.client.hset(queue.keys.paused, "*", "1")

    assert taken(queue) == []


def test_a_host_that_has_a_task_for_long_keeps_its_lease(queue: Any) -> None:
    put(queue, "a", "b")
    queue.do(exchanging(queue, 2))
    queue.end_lease(HOST)
    queue.do(cancel(queue.keys, queue.settings, "b", HOST, b"{}"))

    held = queue.do(keep_lease(queue.keys, queue.settings, HOST))

    assert (sorted(held.tasks), held.cancelled) == (["a", "b"], ("b",))
    assert queue.do(reassign(queue.keys, queue.settings, HOST, most=9)).returned == -1


def test_a_host_without_tasks_gets_no_lease(queue: Any) -> None:
    put(queue, "a")
    call = keep_lease(queue.keys, queue.settings, HOST)
    assert queue.do(call).tasks == ()

    queue.do(exchanging(queue, 1))
    queue.end_lease(HOST)
    queue.do(reassign(queue.keys, queue.settings, HOST, most=9))
    assert queue.do(call).tasks == ()
    assert queue.state()["workers"] == []


def test_a_host_is_no_worker_that_anybody_counts_on(queue: Any) -> None:
    put(queue, *(f"t{number}" for number in range(9)))
    queue.do(exchanging(queue, 1))
    now_ms = queue.do(counts(queue.keys)).now_ms

    assert queue.do(count_living(queue.keys, now_ms)) == 0
    assert queue.do(shard_status(queue.keys, queue.settings)).members == 0
    queue.join("w.0", abilities=["x@1"])
    assert queue.do(count_living(queue.keys, now_ms)) == 1
    assert queue.do(shard_status(queue.keys, queue.settings)).members == 1
    queue.take("w.0", 1, keep=100)
    assert queue.deque("w.0") == [], "a worker that is alone needs no deque"
    queue.join("w.1", abilities=["x@1"])
    queue.take("w.0", 1, keep=100)
    assert len(queue.deque("w.0")) == 3, "half of what is left"
