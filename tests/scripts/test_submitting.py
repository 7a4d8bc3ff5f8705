"""Putting tasks into a queue: once, in order, up to its length, until input ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from workstealing.queue.inspection_calls import counts
from workstealing.queue.producer_calls import (
    cancel,
    count_refusals,
    end_input,
    submit,
)
from workstealing.queue.unique_calls import UniqueRequest, submit_unique


def test_tasks_wait_in_the_order_they_came(queue: Any) -> None:
    reply = queue.submit("a", "b", "c")

    assert (reply.verdict, reply.known) == ("ok", frozenset())
    state = queue.state()
    assert state["inbox:1"] == ["a", "b", "c"]
    assert state["task"]["b"] == queue.envelope("b").decode()
    assert queue.do(counts(queue.keys)).stats == {"submitted": 3}


def test_a_submission_that_is_repeated_changes_nothing(queue: Any) -> None:
    tasks = [(name, queue.envelope(name)) for name in "abc"]
    call = submit(queue.keys, queue.settings, tasks, priority=1)
    queue.do(call)

    reply = queue.again(call)

    assert (reply.verdict, reply.known) == ("ok", frozenset({0, 1, 2}))
    assert queue.client.llen(queue.keys.bell) == 3


def test_a_delayed_submission_that_is_repeated_keeps_its_time(queue: Any) -> None:
    tasks = [("a", b"{}"), ("b", b"{}")]
    call = submit(queue.keys, queue.settings, tasks, priority=1, due_ms=10**13)
    queue.do(call)

    reply = queue.again(call)

    assert reply.known == {0, 1}
    assert queue.state()["later"] == {"a": 10**13, "b": 10**13}
    assert queue.waiting() == []


def test_a_delay_counts_from_the_time_of_the_server(queue: Any) -> None:
    seconds, micros = queue.client.time()

    queue.submit("a", delay_ms=60_000)

    due = queue.state()["later"]["a"]
    assert 0 <= due - (seconds * 1000 + micros // 1000) - 60_000 <= 10_000


def test_an_id_that_is_twice_in_one_call_is_taken_once(queue: Any) -> None:
    tasks = [("a", b"first"), ("b", b"{}"), ("a", b"second")]

    reply = queue.do(submit(queue.keys, queue.settings, tasks, priority=1))

    assert reply.known == {2}
    state = queue.state()
    assert state["inbox:1"] == ["a", "b"]
    assert state["task"]["a"] == "first"
    assert queue.do(counts(queue.keys)).stats == {"submitted": 2}


def test_a_delayed_id_that_is_twice_in_one_call_is_taken_once(queue: Any) -> None:
    reply = queue.submit("a", "a", delay_ms=60_000)

    assert reply.known == {1}
    assert queue.do(counts(queue.keys)).stats == {"submitted": 1}


def test_an_id_that_is_done_is_known(queue: Any) -> None:
    queue.join("w")
    queue.submit("a")
    queue.report("w", "done", *queue.take("w"))

    assert queue.submit("a", "b").known == {0}
    assert queue.waiting() == ["b"]


def test_an_id_that_is_dead_is_known(queue: Any) -> None:
    queue.join("w")
    queue.submit("a")
    queue.report("w", "dead", *queue.take("w"))

    assert queue.submit("a").known == {0}
    assert queue.waiting() == []


@pytest.mark.parametrize("priority", [0, 1, 2])
def test_each_priority_has_its_inbox(queue: Any, priority: int) -> None:
    queue.submit("a", priority=priority)

    assert queue.state()[f"inbox:{priority}"] == ["a"]


def test_a_thousand_tasks_go_in_one_call(queue: Any) -> None:
    ids = [f"task-{number}" for number in range(1000)]

    assert queue.submit(*ids).verdict == "ok"
    assert queue.waiting() == ids
    assert queue.submit(*ids).known == frozenset(range(1000))
    assert queue.submit(*ids[1:], "one more").known == frozenset(range(999))
    assert queue.waiting() == [*ids, "one more"]


def test_ids_and_envelopes_may_hold_anything(queue: Any) -> None:
    binary = bytes(range(256))
    tasks = [("naïve ☃ id", "{'☃': '\u2028'}".encode()), ("b", binary), ("c", b"")]
    queue.do(submit(queue.keys, queue.settings, tasks, priority=1))
    queue.join("w")

    taken = queue.take("w")

    assert [(task.id, task.envelope) for task in taken] == tasks


def test_a_full_queue_takes_nothing_of_a_call(make_queue: Callable[..., Any]) -> None:
    queue = make_queue(max_length=3)
    queue.submit("a", "b")
    before = queue.state()

    assert queue.submit("c", "d").verdict == "full"
    assert queue.state() == before
    assert queue.submit("c").verdict == "ok"
    assert queue.submit("d").verdict == "full"


def test_of_calls_sent_together_none_is_taken_after_another_was_refused(
    make_queue: Callable[..., Any],
) -> None:
    queue = make_queue(max_length=3)
    refusals = queue.do(count_refusals(queue.keys))

    assert queue.submit("a", "b", refusals=refusals).verdict == "ok"
    assert queue.submit("c", "d", refusals=refusals).verdict == "full"
    assert queue.submit("e", refusals=refusals).verdict == "full"
    assert queue.submit("f").verdict == "ok"
    assert queue.waiting() == ["a", "b", "f"]


def test_drawn_ids_are_not_looked_for(alone: Any) -> None:
    alone.submit("before")
    alone.client.config_resetstat()

    alone.submit("a", is_new=True)

    commands = alone.client.info("commandstats")
    calls = [stats["calls"] for name, stats in commands.items() if "config" not in name]
    assert sum(calls) <= 5
    assert alone.waiting() == ["before", "a"]


@pytest.mark.parametrize("more", [{}, {"delay_ms": 60_000}, {"priority": 0}])
def test_new_tasks_go_where_others_go(
    make_queue: Callable[..., Any], more: dict[str, int]
) -> None:
    queue, other = make_queue(), make_queue()

    queue.submit("a", "b", is_new=True, **more)
    other.submit("a", "b", **more)

    found, wanted = queue.state(), other.state()
    assert {key: list(ids) for key, ids in found.items()} == {
        key: list(ids) for key, ids in wanted.items()
    }


def test_a_full_queue_knows_what_it_has(make_queue: Callable[..., Any]) -> None:
    queue = make_queue(max_length=2)
    queue.submit("a", "b")

    reply = queue.submit("b", "a")

    assert (reply.verdict, reply.known) == ("ok", {0, 1})


def test_a_closed_queue_takes_nothing_new(queue: Any) -> None:
    queue.submit("a")
    queue.do(end_input(queue.keys, ended=True))
    queue.again(end_input(queue.keys, ended=True))

    assert queue.submit("b").verdict == "input_ended"
    assert queue.submit("a").verdict == "ok"
    assert queue.waiting() == ["a"]

    queue.do(end_input(queue.keys, ended=False))
    assert queue.submit("b").verdict == "ok"


def test_the_bell_is_a_hint_and_short(queue: Any) -> None:
    queue.submit(*map(str, range(100)))

    assert queue.client.llen(queue.keys.bell) == 16


@pytest.mark.parametrize("priority", [0, 1, 2])
def test_a_cancelled_id_can_be_submitted_anew_and_waits_once(
    make_queue: Callable[..., Any], priority: int
) -> None:
    queue = make_queue(retention_ms=0)
    queue.submit("a", "b")
    queue.do(cancel(queue.keys, queue.settings, "a", "", b"cancelled"))

    assert queue.submit("a", priority=priority).known == frozenset()

    queue.join("w")
    first = queue.take("w")
    assert sorted(task.id for task in first) == ["a", "b"]
    queue.report("w", "dead", *first)
    assert queue.take("w") == ()


def test_a_cancelled_id_that_is_submitted_with_a_delay_waits_for_it(
    make_queue: Callable[..., Any],
) -> None:
    queue = make_queue(retention_ms=0)
    queue.submit("a")
    queue.do(cancel(queue.keys, queue.settings, "a", "", b"cancelled"))
    queue.submit("a", delay_ms=60_000)
    queue.join("w")

    assert queue.take("w") == ()


def test_a_call_that_uses_an_id_again_never_forgets_what_it_submitted_itself(
    queue: Any,
) -> None:
    queue.join("w")
    queue.submit("a")
    queue.report("w", "dead", *queue.take("w"))
    request = UniqueRequest("a", b"anew", is_drawn=False, priority=1, again=True)
    first = queue.again(submit_unique(queue.keys, queue.settings, request))
    assert first.verdict == "ended"
    seen = replace(request, seen=first.detail)
    call = submit_unique(queue.keys, queue.settings, seen)

    assert queue.do(call).verdict == "new"
    assert queue.again(call).verdict == "new"
    queue.report("w", "done", *queue.take("w"))
    assert queue.again(call).verdict == "ended"
    assert queue.state()["done"] == {"a": "outcome"}
