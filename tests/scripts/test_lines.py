"""Limits and fair keys: what waits in a line, whose turn it is, what lets it go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from workstealing.queue.inspection_calls import counts, trace
from workstealing.queue.limit_calls import describe_limits, held_back, set_limit
from workstealing.queue.listing_calls import line_fronts
from workstealing.queue.producer_calls import cancel, forget, replay
from workstealing.queue.upkeep_calls import (
    expire,
    promote,
    reassign,
    reconcile,
    survey,
    unpark,
)
from workstealing.queue.worker_calls import park, release
from workstealing.testing import wait_until

ONE = "1\t\t\tone=a"
OTHER = "1\t\t\tone=b"


def ids(tasks: Any) -> list[str]:
    return [task.id for task in tasks]


def submit(queue: Any, line: str, *names: str, numbers: str = "1", **more: Any) -> None:
    limits = {key.split("=")[0]: numbers for key in line.split("\t")[3:]}
    queue.submit(
        *names,
        lines=[line] * len(names),
        limits=limits,
        priority=int(line[0]),
        **more,
    )


def fair(key: str, weight: str = "") -> str:
    return f"1\t{key}\t{weight}"


def run_all(queue: Any, most: int = 1) -> list[str]:
    """Run tasks one after the other; return them in the order that they ran."""
    ran: list[str] = []
    while tasks := queue.take("w", most):
        queue.report("w", "done", *tasks)
        ran += ids(tasks)
    return ran


def test_what_has_no_room_waits_and_others_run_past_it(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    submit(queue, OTHER, "b1")
    queue.submit("plain")

    assert sorted(ids(queue.take("w"))) == ["a1", "b1", "plain"]
    assert queue.take("w") == ()


def test_the_next_one_enters_in_the_exchange_that_ends_the_first(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2", "a3")
    (first,) = queue.take("w")
    assert queue.take("w") == ()

    queue.report("w", "done", first)

    assert ids(queue.take("w")) == ["a2"]


@pytest.mark.parametrize("verdict", ["done", "failed", "dead", "cancelled"])
def test_a_permit_comes_back_however_a_task_ends(queue: Any, verdict: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    (first,) = queue.take("w")
    queue.take("w")

    queue.report("w", verdict, first)

    assert ids(queue.take("w")) == ["a2"]


@pytest.mark.parametrize("verdict", ["retry", "back"])
def test_a_task_that_comes_back_stands_in_front_of_its_line(
    queue: Any, verdict: Any
) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    (first,) = queue.take("w")

    queue.report("w", verdict, first)

    assert run_all(queue) == ["a1", "a2"]


def test_a_task_that_is_retried_later_holds_no_permit_meanwhile(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    (first,) = queue.take("w")
    queue.report("w", "retry", first, delay_ms=60_000)

    assert ids(queue.take("w")) == ["a2"]
    queue.client.zadd(queue.keys.later, {"a1": 1})
    assert queue.take("w") == ()
    assert next(iter(queue.state()["lines"])).endswith("a1")


def test_permits_of_a_dead_worker_come_back_with_its_tasks(queue: Any) -> None:
    queue.join("w", "dead")
    submit(queue, ONE, "a1", "a2")
    queue.take("dead")
    assert queue.take("w") == ()
    queue.end_lease("dead")

    queue.do(reassign(queue.keys, queue.settings, "dead", most=10))

    assert run_all(queue) == ["a1", "a2"]


def test_a_released_task_goes_back_to_its_line_for_others(queue: Any) -> None:
    queue.join("w", "other")
    submit(queue, ONE, "a1", "a2", numbers="2")
    taken = queue.take("w")
    assert queue.do(release(queue.keys, "w", taken[1:])) == 1
    queue.again(release(queue.keys, "w", taken[1:]))

    assert ids(queue.take("other")) == ["a2"]
    assert queue.deque("w") == []


def test_a_parked_task_holds_no_permit_and_returns_to_its_line(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    (first,) = queue.take("w")

    queue.do(park(queue.keys, "w", first, "x@1"))

    (second,) = queue.take("w")
    assert second.id == "a2"
    queue.join("able", abilities=["x@1"])
    queue.do(unpark(queue.keys, "x@1", most=10))
    assert queue.take("able") == ()
    queue.report("w", "done", second)
    assert ids(queue.take("able")) == ["a1"]


def test_a_task_in_a_line_is_cancelled_at_once(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2", "a3")

    call = cancel(queue.keys, queue.settings, "a2", "", b"cancelled")

    assert queue.do(call) == "cancelled"
    assert "cancelled" not in queue.state()
    assert run_all(queue) == ["a1", "a3"]


def test_a_line_that_was_emptied_lets_the_next_one_in(queue: Any) -> None:
    queue.join("w")
    for key in "xyz":
        submit(queue, f"1\t{key}\t\tall", f"{key}1")
    (first,) = queue.take("w")
    assert queue.take("w") == ()
    left = [name for name in ("x1", "y1", "z1") if name != first.id]
    queue.report("w", "done", first)
    queue.do(cancel(queue.keys, queue.settings, left[0], "", b"cancelled"))

    assert ids(queue.take("w")) == left[1:]


def test_an_id_that_an_inbox_still_names_is_not_taken_past_its_limit(
    queue: Any,
) -> None:
    queue.join("w")
    queue.submit("a2")
    queue.do(cancel(queue.keys, queue.settings, "a2", "", b"cancelled"))
    assert queue.do(forget(queue.keys, ["a2"])) == 1
    submit(queue, ONE, "a1", "a2")

    assert ids(queue.take("w")) == ["a1"]


def test_a_replayed_dead_letter_returns_to_its_line(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    (first,) = queue.take("w")
    queue.report("w", "dead", first)
    queue.take("w")

    queue.do(replay(queue.keys, "a1", drop=False))

    assert queue.take("w") == ()
    assert queue.waiting() == []


def test_a_delayed_task_enters_its_line_when_it_is_due(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "later", delay_ms=60_000)
    submit(queue, ONE, "now")
    queue.take("w")
    queue.client.zadd(queue.keys.later, {"later": 1})

    queue.do(promote(queue.keys, most=10))

    assert queue.take("w") == ()
    assert queue.do(trace(queue.keys, "later")).line == ONE


def test_all_limits_of_a_task_hold(queue: Any) -> None:
    queue.join("w")
    for number, key in enumerate("aabbcc"):
        queue.submit(
            f"t{number}",
            lines=[f"1\t\t\teach={key}\tall"],
            limits={"each": "1", "all": "2"},
        )

    first = queue.take("w")
    assert len(first) == 2
    assert len({int(task.id[1]) // 2 for task in first}) == 2
    queue.report("w", "done", *first)
    assert len(run_all(queue, 10)) == 4


def test_a_rate_lets_a_bucket_begin_and_then_waits(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2", "a3", numbers="2/3600000")

    first = queue.take("w")
    queue.report("w", "done", *first)

    assert ids(first) == ["a1", "a2"]
    assert queue.take("w") == ()
    wait_ms = queue.do(survey(queue.keys)).due_in_ms
    assert 1_790_000 < wait_ms <= 1_800_000


def test_a_rate_that_has_room_again_lets_one_in(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2", numbers="1/3600000")
    queue.report("w", "done", *queue.take("w"))
    assert queue.take("w") == ()
    queue.client.delete(queue.keys.rates)
    queue.client.zadd(queue.keys.refills, {"one=a": 1})

    assert ids(queue.take("w")) == ["a2"]


def test_all_lines_that_wait_for_a_rate_get_in_each_in_its_time(queue: Any) -> None:
    queue.join("w")
    for name in ("a", "b", "c"):
        submit(queue, f"1\t{name}\t\tone", name, numbers="1/3600000")
    ran = ids(queue.take("w"))

    for _ in range(2):
        assert queue.take("w") == ()
        assert queue.client.zscore(queue.keys.refills, "one")
        queue.client.delete(queue.keys.rates)
        queue.client.zadd(queue.keys.refills, {"one": 1})
        ran += ids(queue.take("w"))

    assert sorted(ran) == ["a", "b", "c"]


def test_a_rate_that_was_slow_is_forgotten_when_it_is_set(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2", numbers="1/3600000")
    queue.report("w", "done", *queue.take("w"))
    assert queue.take("w") == ()

    queue.do(set_limit(queue.keys, "one", "1000/1000"))

    wait_until(lambda: ids(queue.take("w")) == ["a2"], 5, "its share of a second")


def test_a_full_bucket_is_forgotten(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", numbers="1/3600000")
    queue.report("w", "done", *queue.take("w"))
    queue.client.zadd(queue.keys.rates, {"one=a": 1})

    queue.do(expire(queue.keys, queue.settings, most=10))

    assert not queue.client.exists(queue.keys.rates)


def test_new_numbers_count_at_once_and_until_they_are_reset(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2", "a3")
    queue.take("w")
    assert queue.take("w") == ()

    assert queue.do(set_limit(queue.keys, "one", "2")).is_known
    submit(queue, ONE, "a4")

    (state,) = queue.do(describe_limits(queue.keys))
    assert (state.concurrency, state.is_overridden) == (2, True)
    assert ids(queue.take("w")) == ["a2"]
    queue.do(set_limit(queue.keys, "one", ""))
    assert queue.do(describe_limits(queue.keys))[0].concurrency == 1
    assert not queue.do(set_limit(queue.keys, "two", "2")).is_known


def test_the_code_changes_a_limit_that_nobody_has_set(queue: Any) -> None:
    submit(queue, ONE, "a1", numbers="1")
    submit(queue, ONE, "a2", numbers="3")

    assert queue.state()["limits"] == {"one": "3"}


@pytest.mark.parametrize(
    ("key", "field", "value"),
    [
        ("permits", "one=a", "junk"),
        ("permits", "one=a", "-5"),
        ("limits", "one", "junk"),
        ("limits", "one", "0/0"),
        ("control", "turn:1", "junk"),
        ("control", "turn:1", "inf"),
    ],
)
def test_what_others_wrote_into_a_hash_of_limits_stops_nobody(
    queue: Any, key: str, field: str, value: str
) -> None:
    queue.join("w")
    submit(queue, ONE, "a1")
    queue.client.hset(getattr(queue.keys, key), field, value)

    submit(queue, OTHER, "b1")

    assert sorted(run_all(queue)) == ["a1", "b1"]
    submit(queue, ONE, "a2", "a3")
    assert ids(queue.take("w", 2)) == ["a2"], "the limit holds again"
    assert queue.state()["limits"] == {"one": "1"}


@pytest.mark.parametrize("junk", ["", "junk", "1", "1\tx", "9\t\t", "0\t\t\tone=a"])
@pytest.mark.parametrize("turn", ["-inf", 0, 1, "inf"])
def test_what_others_wrote_into_turns_stops_nobody(
    queue: Any, junk: str, turn: Any
) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    queue.client.zadd(queue.keys.turns[1], {junk: turn})
    queue.client.zadd(queue.keys.blocked, {f"one=a\0{junk}": 0, junk: 0})
    if turn == "inf":
        queue.do(reconcile(queue.keys, page=100))

    assert run_all(queue) == ["a1", "a2"]
    assert "turns:1" not in queue.state()
    queue.client.zrem(queue.keys.blocked, junk, f"one=a\0{junk}")


@pytest.mark.parametrize("turn", ["-inf", "inf", -5, 1e300])
def test_a_turn_that_others_have_changed_is_repaired(queue: Any, turn: Any) -> None:
    queue.join("w")
    submit(queue, ONE, *(f"a{n}" for n in range(9)), numbers="9")
    submit(queue, OTHER, *(f"b{n}" for n in range(9)), numbers="9")
    queue.client.zadd(queue.keys.turns[1], {ONE: turn})
    if float(turn) > 0:
        queue.do(reconcile(queue.keys, page=100))

    order = run_all(queue)

    assert 2 <= shares(order[:9])["a"] <= 7


@pytest.mark.parametrize("value", ["1", "7", "junk"])
def test_a_count_of_permits_that_nobody_holds_is_set_right(
    queue: Any, value: str
) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    queue.client.hset(queue.keys.permits, "one=a", value)
    queue.take("w", 0)

    queue.do(reconcile(queue.keys, page=100))

    assert run_all(queue) == ["a1", "a2"]


@pytest.mark.parametrize(
    ("before", "after"),
    [("1", "2"), ("1/3600000", "1/1"), ("1/3600000", "2"), ("1", "2/3600000")],
)
def test_numbers_that_a_deploy_raises_let_the_next_in_at_once(
    queue: Any, before: str, after: str
) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2", numbers=before)
    submit(queue, OTHER, "b1", "b2", numbers=before)
    assert len(queue.take("w")) == 2
    assert queue.take("w") == ()
    # The first delayed task of all would wake somebody, too.
    submit(queue, OTHER, "b3", numbers=before, delay_ms=60_000)
    queue.client.delete(queue.keys.bell)

    submit(queue, "1\t\t\tone=c", "c1", numbers=after, delay_ms=60_000)

    assert queue.client.llen(queue.keys.bell) == 1
    taken: list[str] = []
    wait_until(lambda: taken.extend(ids(queue.take("w"))) or len(taken) > 1, 9, "both")
    assert sorted(taken) == ["a2", "b2"]


def test_numbers_that_a_deploy_raises_let_in_however_many_wait(queue: Any) -> None:
    queue.join("w")
    for n in range(250):
        submit(queue, f"1\t\t\tone={n}", f"a{n}", f"b{n}")
    while queue.take("w"):
        pass

    submit(queue, "1\t\t\tone=c", "c1", numbers="2", delay_ms=60_000)

    more = [task.id for _ in range(9) for task in queue.take("w")]
    assert sorted(more) == sorted(f"b{n}" for n in range(250))


def test_numbers_of_a_deploy_wake_nobody_where_others_are_in_force(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    queue.do(set_limit(queue.keys, "one", "1"))
    queue.take("w")

    submit(queue, ONE, "a3", numbers="2")

    assert "refills" not in queue.state()
    assert queue.take("w") == ()


def test_a_permit_without_a_task_is_healed(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2")
    queue.client.hset(queue.keys.permit_holders, "gone", "one=a")
    queue.client.hset(queue.keys.permits, "one=a", 1)
    assert queue.take("w") == ()

    queue.do(reconcile(queue.keys, page=100))

    assert ids(queue.take("w")) == ["a1"]


def test_it_is_told_by_what_a_task_is_held_back(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2", "a3")
    queue.take("w")
    queue.take("w")

    reply = queue.do(held_back(queue.keys, "a3"))

    assert reply.ahead == 1
    assert reply.reason == "held back by limit one=a: 1 of 1 running"
    (state,) = queue.do(describe_limits(queue.keys, key="a"))
    assert [(use.key, use.running, use.held_back) for use in state.keys] == [
        ("a", 1, 2)
    ]


@pytest.mark.parametrize("line", [ONE, "1\tann\t\tone=a"])
def test_a_full_limit_holds_back_what_no_worker_has_looked_at(
    queue: Any, line: str
) -> None:
    queue.join("w")
    submit(queue, line, "a1", "a2", "a3")
    # The line keeps its turn: the worker has no room to look at it again.
    assert ids(queue.take("w", 1)) == ["a1"]
    assert not queue.client.exists(queue.keys.blocked)

    reply = queue.do(held_back(queue.keys, "a2"))

    assert reply.reason == "held back by limit one=a: 1 of 1 running"
    assert queue.do(counts(queue.keys)).held_back == 2
    for key in ("", "a"):
        (state,) = queue.do(describe_limits(queue.keys, key=key))
        (use,) = state.keys
        assert (use.key, use.running, use.held_back) == ("a", 1, 2)


def test_what_is_behind_the_head_of_its_fair_key_is_held_back_too(queue: Any) -> None:
    queue.join("w")
    submit(queue, "1\tann\t\tone=a", "a1")
    assert ids(queue.take("w", 1)) == ["a1"]
    submit(queue, "1\tann\t\tone=b", "b1")
    submit(queue, "1\tann\t\tone=a", "a2", "a3")

    assert queue.do(held_back(queue.keys, "a3")).limit_key == "one=a"
    assert queue.do(held_back(queue.keys, "b1")).limit_key == ""
    assert queue.do(counts(queue.keys)).held_back == 2


def test_a_full_rate_holds_back_what_no_worker_has_looked_at(queue: Any) -> None:
    queue.join("w")
    submit(queue, "1\t\t\tslow", "s1", "s2", numbers="1/60000")
    assert ids(queue.take("w", 1)) == ["s1"]

    reply = queue.do(held_back(queue.keys, "s2"))

    assert reply.limit_key == "slow"
    assert 0 < reply.refill_ms <= 60_000
    assert queue.do(counts(queue.keys)).held_back == 1
    (state,) = queue.do(describe_limits(queue.keys))
    assert [use.held_back for use in state.keys] == [1]


def test_a_worker_learns_how_many_tasks_limits_hold_back(queue: Any) -> None:
    queue.join("w")
    submit(queue, ONE, "a1", "a2", "a3")
    submit(queue, OTHER, "b1", "b2")
    queue.take("w")
    assert queue.take("w") == ()
    assert exchanged(queue).runnable == 2

    submit(queue, "1\t\t\tone=c", "c1", "c2")

    seen = queue.do(counts(queue.keys))
    assert (seen.in_lines, seen.held_back) == (5, 3)
    assert (exchanged(queue).limited, exchanged(queue).runnable) == (3, 4)


def test_the_first_of_each_line_is_named(queue: Any) -> None:
    submit(queue, ONE, "a1", "a2")
    submit(queue, OTHER, "b1", "b2")

    assert queue.do(line_fronts(queue.keys, most=9)) == ("a1", "b1")
    assert queue.do(line_fronts(queue.keys, most=1)) == ("a1",)


def exchanged(queue: Any) -> Any:
    """Exchange as a worker that wants nothing."""
    return queue.exchange("w", want=0)


def shares(order: Sequence[str]) -> Counter[str]:
    return Counter(name[0] for name in order)


def test_a_key_with_many_tasks_does_not_keep_others_waiting(queue: Any) -> None:
    queue.join("w")
    submit(queue, fair("a"), *(f"a{n}" for n in range(200)))
    submit(queue, fair("b"), *(f"b{n}" for n in range(5)))

    order = run_all(queue)

    assert shares(order[:12])["b"] == 5
    assert [name for name in order if name[0] == "a"] == [f"a{n}" for n in range(200)]


def test_turns_are_given_by_weight(queue: Any) -> None:
    queue.join("w")
    submit(queue, fair("a", "3"), *(f"a{n}" for n in range(90)))
    submit(queue, fair("b"), *(f"b{n}" for n in range(90)))

    one_by_one = [task.id for _ in range(40) for task in queue.take("w", 1)]

    assert 28 <= shares(one_by_one)["a"] <= 32
    in_batches = [task.id for _ in range(4) for task in queue.take("w", 20)]
    assert 50 <= shares(in_batches)["a"] <= 70


def test_a_key_has_one_share_however_many_lines_it_has(queue: Any) -> None:
    queue.join("w")
    for number in range(50):
        submit(queue, f"1\ta\t\tone={number}", f"a{number}")
    submit(queue, fair("b"), *(f"b{n}" for n in range(20)))

    order = run_all(queue)

    assert 9 <= shares(order[:20])["b"] <= 11
    assert len(order) == 70


def test_keys_that_come_and_go_do_not_starve_one_that_stays(queue: Any) -> None:
    queue.join("w")
    submit(queue, fair("z"), *(f"z{n}" for n in range(10)))
    order = []
    for number in range(40):
        submit(queue, fair(f"a{number}"), f"a{number}")
        (task,) = queue.take("w", 1)
        order.append(task.id)

    # The others wait as well, and become more and more.
    assert shares(order)["z"] >= 5


def test_lines_and_inboxes_take_turns(queue: Any) -> None:
    queue.join("w")
    queue.submit(*(f"p{n}" for n in range(100)))
    submit(queue, fair("l"), *(f"l{n}" for n in range(100)))

    order = [task.id for _ in range(80) for task in queue.take("w", 1)]

    assert 25 <= shares(order)["l"] <= 55


@pytest.mark.parametrize("others", range(4))
def test_lines_and_inboxes_take_turns_in_any_rhythm(queue: Any, others: int) -> None:
    queue.join("w")
    queue.submit(*(f"p{n}" for n in range(100)))
    submit(queue, fair("l"), *(f"l{n}" for n in range(100)))

    order = []
    for _ in range(80):
        # Tokens that other workers drew meanwhile, who took none of these.
        queue.client.hincrby(queue.keys.control, "token", others)
        order += ids(queue.take("w", 1))

    assert 25 <= shares(order)["l"] <= 55


def test_lower_priorities_have_a_small_share(queue: Any) -> None:
    queue.join("w")
    queue.submit(*(f"u{n}" for n in range(300)), priority=0)
    queue.submit(*(f"n{n}" for n in range(300)))
    queue.submit(*(f"l{n}" for n in range(300)), priority=2)

    order = [task.id for _ in range(160) for task in queue.take("w", 1)]

    assert 6 <= shares(order)["l"] <= 14
    assert 6 <= shares(order)["n"] <= 14


def test_a_suspect_of_a_line_runs_alone(queue: Any) -> None:
    queue.join("w", "dead")
    submit(queue, ONE, "a1", numbers="9")
    queue.take("dead")
    queue.end_lease("dead")
    queue.do(reassign(queue.keys, queue.settings, "dead", most=10))
    submit(queue, ONE, "a2", numbers="9")

    first = queue.take("w")
    assert ids(first) == ["a1"]
    assert queue.take("w") == ()
    queue.report("w", "done", *first)
    assert ids(queue.take("w")) == ["a2"]


def test_thousands_of_lines_are_served_in_turn(queue: Any) -> None:
    queue.join("w")
    for start in range(0, 3_000, 1_000):
        names = [f"t{n}" for n in range(start, start + 1_000)]
        lines = [f"1\t\t\tone={name}" for name in names]
        queue.submit(*names, lines=lines, limits={"one": "1"})

    assert len(run_all(queue, 100)) == 3_000
    assert not queue.client.exists(queue.keys.placed, *queue.keys.turns)
