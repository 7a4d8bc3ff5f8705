"""What a worker reports in an exchange, and what is made of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from workstealing.queue.producer_calls import submit
from workstealing.tasks.attempt import Report


def ids(tasks: Any) -> list[str]:
    return [task.id for task in tasks]


def test_thousands_are_taken_and_reported_in_one_exchange(queue: Any) -> None:
    queue.join("w")
    names = [f"{number}" for number in range(3000)]
    for start in range(0, 3000, 1000):
        queue.submit(*names[start : start + 1000])

    taken = queue.take("w", 5000)
    exchanged = queue.report("w", "done", *taken)

    assert ids(taken) == names
    assert exchanged.refused == ()
    assert exchanged.unfinished == 0
    assert len(queue.state()["done"]) == 3000


def test_more_tasks_than_lua_can_unpack_are_reported_at_once(queue: Any) -> None:
    queue.join("w")
    for start in range(0, 9000, 1000):
        queue.submit(*map(str, range(start, start + 1000)))

    exchanged = queue.report("w", "done", *queue.take("w", 9000))

    assert (exchanged.refused, exchanged.unfinished) == ((), 0)
    assert queue.state()["stats"]["done"] == "9000"


def test_a_done_task_leaves_its_outcome_and_nothing_else(queue: Any) -> None:
    queue.join("w")
    queue.submit("a")

    exchanged = queue.report("w", "done", *queue.take("w"))

    assert exchanged.refused == ()
    assert exchanged.unfinished == 0
    state = queue.state()
    assert state["done"] == {"a": "outcome"}
    assert [one.split()[0] for one in state["outcome_times"]] == ["a"]
    assert state["stats"] == {"done": "1"}
    left = {"done", "outcome_times", "stats", "members", "workers", "control"}
    assert set(state) == left


def test_a_report_that_is_repeated_is_no_news(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b", "c", "d")
    a, b, c, d = queue.take("w")
    reports = [
        Report("a", a.token, "done", b"fine"),
        Report("b", b.token, "dead", b"broken"),
        Report("c", c.token, "retry", b"", 60_000),
        Report("d", d.token, "back"),
    ]
    call = queue.exchanging("w", reports=reports)
    queue.do(call)

    again = queue.again(call)

    # That these two came back cannot be told from another's having them.
    assert again.refused == ("c", "d")
    assert queue.state()["history"] == {"c": "1:0:0", "d": "0:0:0"}


def test_a_report_that_is_twice_in_one_call_counts_once(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b")
    a, b = queue.take("w")

    exchanged = queue.exchange(
        "w",
        reports=[
            Report("a", a.token, "done", b"first"),
            Report("a", a.token, "dead", b"second"),
            Report("b", b.token, "back"),
            Report("b", b.token, "back"),
        ],
    )

    assert exchanged.refused == ("a", "b")
    state = queue.state()
    assert state["done"] == {"a": "first"}
    assert "dead" not in state
    assert state["inbox:1"] == ["b"]
    assert (state["stats"]["done"], state["stats"]["back"]) == ("1", "1")


def test_a_wrong_token_is_refused(queue: Any) -> None:
    queue.join("w", "v")
    queue.submit("a")
    (task,) = queue.take("w")
    before = queue.state()

    for worker, token in (("w", "0"), ("v", task.token), ("w", ""), ("w", "x")):
        report = Report("a", token, "done", b"forged")
        assert queue.exchange(worker, reports=[report]).refused == ("a",)

    assert queue.state() == before


def test_an_unheard_of_id_is_refused(queue: Any) -> None:
    queue.join("w")

    reply = queue.exchange("w", reports=[Report("never", "1", "done", b"x")])

    assert reply.refused == ("never",)
    assert "done" not in queue.state()


def test_a_retried_task_waits_and_counts_its_attempts(queue: Any) -> None:
    queue.join("w")
    queue.submit("a")

    queue.report("w", "retry", *queue.take("w"))
    (task,) = queue.take("w")
    assert task.attempt == 2
    queue.report("w", "retry", task, delay_ms=60_000)

    assert queue.take("w") == ()
    assert list(queue.state()["later"]) == ["a"]
    assert queue.exchange("w").unfinished == 1


def test_a_task_given_back_counts_no_attempt_and_comes_first(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b", "c")
    first = queue.take("w", 1)

    queue.report("w", "back", *first)

    assert queue.waiting() == ["a", "b", "c"]
    assert queue.take("w", 1)[0].attempt == 1


def test_a_task_goes_back_to_the_inbox_of_its_priority(queue: Any) -> None:
    queue.join("w")
    for priority in range(3):
        queue.submit(f"p{priority}", priority=priority)

    queue.report("w", "back", *queue.take("w"))

    state = queue.state()
    assert [state[f"inbox:{n}"] for n in range(3)] == [["p0"], ["p1"], ["p2"]]


@pytest.mark.parametrize(
    "envelope",
    [
        b"",
        b"{",
        b"\x00\xff",
        b"[]",
        b"7",
        b'"text"',
        b"null",
        b'{"priority": null}',
        b'{"priority": {}}',
        b'{"priority": 7}',
        b"[" * 5000,
    ],
)
def test_what_nobody_can_read_is_given_out_and_back_all_the_same(
    queue: Any, envelope: bytes
) -> None:
    queue.join("w")
    queue.do(submit(queue.keys, queue.settings, [("a", envelope)], priority=0))

    (task,) = queue.take("w")
    assert task.envelope == envelope
    queue.report("w", "back", task)

    assert queue.state()["inbox:0"] == ["a"]
    queue.report("w", "dead", *queue.take("w"))
    assert list(queue.state()["dead"]) == ["a"]


def test_an_exchange_of_empty_hands_that_is_repeated_takes_nothing_twice(
    queue: Any,
) -> None:
    """A client that tries again by itself hides that the first reply was lost."""
    queue.join("w")
    queue.submit("a", "b", "c")
    call = queue.exchanging("w", want=2, held=[])
    first = queue.do(call)

    second = queue.do(call)

    assert ids(second.tasks) == ids(first.tasks) == ["a", "b"]
    assert list(queue.state()["running:w"]) == ["a", "b"]
    assert queue.report("w", "done", *second.tasks).refused == ()


def test_what_a_worker_never_learnt_of_comes_back_in_order(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*"abcdefghij")
    queue.take("v", 1, keep=2)
    queue.take("v", 4, keep=2)
    assert queue.deque("v") == ["f", "g"]

    call = queue.exchanging("v", held=["a", "c"])
    queue.do(call)

    assert queue.deque("v") == ["b", "d", "e", "f", "g"]
    queue.again(call)


def test_a_report_of_what_was_put_back_comes_too_late(queue: Any) -> None:
    queue.join("w")
    queue.submit("a")
    (lost,) = queue.take("w")
    queue.exchange("w", held=[])

    assert queue.report("w", "done", lost).refused == ("a",)
    (task,) = queue.take("w")
    assert task.token != lost.token
    assert queue.report("w", "done", lost, outcome=b"late").refused == ("a",)
    assert queue.report("w", "done", task).refused == ()


def test_reports_count_although_what_is_held_is_in_doubt(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b", "c")
    a, b, _ = queue.take("w")
    report = Report("a", a.token, "done", b"fine")
    call = queue.exchanging("w", reports=[report], held=["b"])

    assert queue.do(call).refused == ()
    assert queue.again(call).refused == ()
    assert queue.deque("w") == ["c"]
    assert b.id in queue.state()["running:w"]


def test_retention_zero_keeps_no_outcome(make_queue: Callable[..., Any]) -> None:
    queue = make_queue(retention_ms=0)
    queue.join("w")
    queue.submit("a")

    queue.report("w", "done", *queue.take("w"))

    state = queue.state()
    assert "done" not in state
    assert "outcome_times" not in state
    assert queue.submit("a").known == frozenset()


def test_a_forged_task_is_a_dead_letter_and_counted_apart(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b")
    taken = queue.take("w", 2)

    queue.report("w", "forged", *taken[:1], outcome=b"why")
    queue.report("w", "dead", *taken[1:], outcome=b"why")

    state = queue.state()
    assert set(state["dead"]) == {"a", "b"}
    assert state["done"] == {"a": "why", "b": "why"}
    assert (state["stats"]["dead"], state["stats"]["forged"]) == ("2", "1")


def test_a_dead_letter_keeps_its_reason_although_outcomes_are_not_kept(
    make_queue: Callable[..., Any],
) -> None:
    queue = make_queue(retention_ms=0)
    queue.join("w")
    queue.submit("a")

    queue.report("w", "dead", *queue.take("w"), outcome=b"why")

    assert queue.state()["done"] == {"a": "why"}


def test_outcomes_above_their_number_are_forgotten_the_oldest_first(
    make_queue: Callable[..., Any],
) -> None:
    queue = make_queue(outcomes=2)
    queue.join("w")
    for name in "abcde":
        queue.submit(name)
        queue.report("w", "done", *queue.take("w"))

    assert sorted(queue.state()["done"]) == ["d", "e"]


def test_outcomes_may_be_binary(queue: Any) -> None:
    queue.join("w")
    queue.submit("a")

    queue.report("w", "done", *queue.take("w"), outcome=bytes(range(256)))

    assert queue.client.hget(queue.keys.done, "a") == bytes(range(256))


def test_priorities_are_read_from_the_envelope_of_any_producer(queue: Any) -> None:
    queue.join("w")
    envelope = json.dumps({"payload": {"priority": 1}, "priority": 2}).encode()
    queue.do(submit(queue.keys, queue.settings, [("a", envelope)], priority=2))

    queue.report("w", "back", *queue.take("w"))

    assert queue.state()["inbox:2"] == ["a"]
