"""What is over is forgotten: outcomes, dead letters, delays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.scripts.conftest import ended_ids
from workstealing.queue.inspection_calls import counts, trace
from workstealing.queue.listing_calls import ended, outcome_kept
from workstealing.queue.producer_calls import forget, replay
from workstealing.queue.upkeep_calls import expire, promote


def end(queue: Any, verdict: str, *names: str) -> None:
    queue.submit(*names)
    queue.report("w", verdict, *queue.take("w"))


def test_outcomes_are_kept_until_their_time_is_over(queue: Any) -> None:
    queue.join("w")
    end(queue, "done", "a", "b", "c")
    call = expire(queue.keys, queue.settings, most=10)
    assert queue.again(call) == 0
    queue.set_outcome_times({"a": 1, "c": 2})

    assert queue.do(call) == 2
    assert queue.state()["done"] == {"b": "outcome"}
    assert queue.again(call) == 0
    assert queue.submit("a", "b").known == {1}


def test_no_more_is_forgotten_at_once_than_asked(queue: Any) -> None:
    queue.join("w")
    end(queue, "done", "a", "b", "c")
    queue.set_outcome_times({"a": 1, "b": 2, "c": 3})

    call = expire(queue.keys, queue.settings, most=2)

    assert [queue.do(call) for _ in range(3)] == [2, 1, 0]


def test_outcomes_above_their_number_go(make_queue: Callable[..., Any]) -> None:
    generous = make_queue()
    generous.join("w")
    end(generous, "done", *"abcde")
    stingy = make_queue(outcomes=2)
    call = expire(generous.keys, stingy.settings, most=10)

    assert generous.do(call) == 3
    assert sorted(generous.state()["done"]) == ["d", "e"]
    assert generous.again(call) == 0


def test_an_outcome_that_is_purged_and_comes_again_is_kept_for_its_own_time(
    queue: Any,
) -> None:
    queue.join("w")
    end(queue, "done", "a", "b")
    end(queue, "done", "c")
    assert queue.do(forget(queue.keys, ["b"])) == 1
    end(queue, "done", "b")
    assert ended_ids(queue.check()) == ["a", "b", "c", "b"]
    others = queue.client.lrange(queue.keys.outcome_times, 2, -1)
    queue.client.delete(queue.keys.outcome_times)
    queue.client.rpush(queue.keys.outcome_times, "a 1", "b 1", *others)
    call = expire(queue.keys, queue.settings, most=10)

    assert queue.do(call) == 1
    assert sorted(queue.check()["done"]) == ["b", "c"]
    assert "purged" not in queue.state()


def test_purging_from_the_oldest_leaves_nothing_behind(queue: Any) -> None:
    queue.join("w")
    names = [f"{number:04}" for number in range(300)]
    end(queue, "done", *names[:100])
    end(queue, "done", *names[100:200])
    end(queue, "done", *names[200:])

    assert queue.do(forget(queue.keys, names[:250])) == 250
    assert ended_ids(queue.check()) == names[250:]
    assert queue.do(forget(queue.keys, names[250:])) == 50
    assert not {"done", "outcome_times", "purged"} & set(queue.check())


def test_dead_letters_do_not_count_as_outcomes(make_queue: Callable[..., Any]) -> None:
    queue = make_queue(outcomes=2)
    queue.join("w")
    end(queue, "dead", "x", "y", "z")
    end(queue, "done", "a", "b")

    assert queue.do(expire(queue.keys, queue.settings, most=10)) == 0
    assert queue.do(counts(queue.keys)).outcomes == 2


def test_tasks_that_ended_are_listed_from_both_ends_page_by_page(queue: Any) -> None:
    queue.join("w")
    end(queue, "done", *"abcde")
    key = queue.keys.outcome_times

    for latest, order in ((False, "abcde"), (True, "edcba")):
        after, met = b"", ""
        while page := queue.do(ended(key, most=2, latest=latest, after=after)):
            met += "".join(one.id for one in page)
            after = page[-1].written
        assert met == order
    assert queue.do(outcome_kept(queue.keys, "c")) > queue.client.time()[0] * 1000
    assert queue.do(outcome_kept(queue.keys, "never")) is None
    # What has left at the front had nobody before it.
    assert queue.do(ended(key, most=9, after=b"gone 1"))[0].id == "a"
    assert queue.do(ended(key, most=9, latest=True, after=b"gone 1")) == ()


def test_a_dead_letter_is_kept_with_its_reason(queue: Any) -> None:
    queue.join("w")
    end(queue, "dead", "a")
    queue.set_outcome_times({"a": 1})

    assert queue.do(expire(queue.keys, queue.settings, most=10)) == 0

    seen = queue.do(trace(queue.keys, "a"))
    assert seen.outcome == b"outcome"
    assert seen.dead_at_ms is not None
    assert seen.envelope == queue.envelope("a")


def test_old_dead_letters_go_with_all_that_is_theirs(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b")
    queue.report("w", "retry", *queue.take("w"))
    queue.report("w", "dead", *queue.take("w"))
    assert queue.do(trace(queue.keys, "a")).attempts == 1
    queue.client.zadd(queue.keys.dead, {"a": 1})
    call = expire(queue.keys, queue.settings, most=10)

    assert queue.do(call) == 1
    state = queue.state()
    for key in ("task", "done", "dead", "history"):
        assert list(state[key]) == ["b"]
    assert queue.again(call) == 0


def test_dead_letters_above_their_number_go(make_queue: Callable[..., Any]) -> None:
    queue = make_queue(dead_letters=2)
    queue.join("w")
    end(queue, "dead", *"abcde")
    now = queue.client.time()[0] * 1000
    for number, name in enumerate("abcde"):
        queue.client.zadd(queue.keys.dead, {name: now + number})

    call = expire(queue.keys, queue.settings, most=2)

    assert [queue.do(call) for _ in range(3)] == [2, 1, 0]
    assert sorted(queue.state()["task"]) == ["d", "e"]
    assert queue.client.hget(queue.keys.stats, "forgotten") in (b"3", "3")


def test_a_dead_letter_is_replayed_with_a_clean_slate(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", priority=2)
    queue.report("w", "retry", *queue.take("w"))
    queue.report("w", "dead", *queue.take("w"))
    call = replay(queue.keys, "a", drop=False)

    assert queue.do(call)
    assert not queue.again(call)
    assert queue.state()["inbox:2"] == ["a"]
    assert "done" not in queue.state()
    (task,) = queue.take("w")
    assert task.attempt == 1


def test_a_dropped_dead_letter_is_forgotten(queue: Any) -> None:
    queue.join("w")
    end(queue, "dead", "a")
    call = replay(queue.keys, "a", drop=True)

    assert queue.do(call)
    assert not queue.again(call)
    assert not {"task", "done", "dead", "history"} & set(queue.state())
    assert queue.submit("a").known == frozenset()


def test_only_dead_letters_are_replayed(queue: Any) -> None:
    queue.join("w")
    end(queue, "done", "over")
    queue.submit("a")

    for name in ("a", "over", "never"):
        assert not queue.again(replay(queue.keys, name, drop=True))


def test_delayed_tasks_wait_until_they_are_due(queue: Any) -> None:
    for priority, name in enumerate("abc"):
        queue.submit(name, priority=priority, delay_ms=60_000)
    call = promote(queue.keys, most=2)
    assert queue.again(call) == 0
    queue.client.zadd(queue.keys.later, {"a": 3, "b": 2, "c": 1})
    queue.client.delete(queue.keys.bell)

    assert queue.do(call) == 2
    assert queue.waiting() == ["b", "c"]
    assert queue.client.llen(queue.keys.bell) == 2
    assert queue.do(call) == 1
    assert queue.again(call) == 0
    assert queue.waiting() == ["a", "b", "c"]


def test_a_thousand_delayed_tasks_come_due_at_once(queue: Any) -> None:
    names = [f"{number:04}" for number in range(1000)]
    queue.submit(*names, due_ms=1)

    assert queue.do(promote(queue.keys, most=1000)) == 1000
    assert queue.waiting() == names
