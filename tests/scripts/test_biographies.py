"""What scripts note of tasks that something befell, and keep beside their outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scripts.conftest import ScriptedQueue
from workstealing.queue.inspection_calls import Trace, trace
from workstealing.queue.pause_calls import pause, resume
from workstealing.queue.producer_calls import cancel, forget, replay, submit
from workstealing.queue.upkeep_calls import expire, reassign, unpark
from workstealing.queue.worker_calls import leave, park, steal
from workstealing.tasks.attempt import Report

AT = 1_800_000_000_000
ENVELOPE = b'{"v":1,"name":"x","version":1,"at":%d,"payload":{}}'


def seen(queue: Any, task_id: str) -> Trace:
    found: Trace = queue.do(trace(queue.keys, task_id))
    return found


def letters(queue: Any, task_id: str) -> str:
    return "".join(event[0] for event in seen(queue, task_id).events)


def submitted(queue: Any, *ids: str) -> None:
    envelope = ENVELOPE % AT
    tasks = [(task_id, envelope) for task_id in ids]
    queue.do(submit(queue.keys, queue.settings, tasks, priority=1))


@pytest.fixture
def stolen(queue: Any) -> Any:
    """A queue whose tasks c and d were stolen from `v` by `w`."""
    queue.join("v", "w")
    submitted(queue, *"abcdefgh")
    queue.take("v", 1, keep=4)
    queue.take("w", 4)
    assert queue.do(steal(queue.keys, "v", "w")) == 2
    return queue


def test_a_theft_is_noted_with_both_workers_in_server_time(stolen: Any) -> None:
    (event,) = seen(stolen, "d").events

    assert event[0] == "s"
    assert event.split(" ")[1:] == ["w", "v"]
    seconds, _ = stolen.client.time()
    assert abs(int(event[1:].split(" ")[0]) - seconds * 1000) < 60_000


def test_a_theft_of_many_costs_as_many_commands_as_one_of_few(alone: Any) -> None:
    def commands(number: int) -> int:
        alone.client.flushall()
        alone.join("v", "w")
        submitted(alone, *(f"{n}" for n in range(3 * number)))
        alone.take("v", 1, keep=number)
        alone.client.config_resetstat()
        assert alone.do(steal(alone.keys, "v", "w")) == number // 2
        stats = alone.client.info("commandstats")
        return sum(one["calls"] for name, one in stats.items() if "config" not in name)

    # The first one loads the script, too.
    commands(4)
    assert commands(4) == commands(200)


def test_who_takes_a_task_that_was_stolen_notes_that_and_when_it_was_submitted(
    stolen: Any,
) -> None:
    stolen.take("w", 1)

    assert letters(stolen, "d") == "nst"
    assert seen(stolen, "d").events[0] == f"n{AT}"
    assert letters(stolen, "e") == "s"


def test_what_befell_a_task_is_kept_with_its_outcome(stolen: Any) -> None:
    (task,) = stolen.take("w", 1)
    reports = [Report(task.id, task.token, "done", b'{"took":5}')]
    call = stolen.exchanging("w", reports=reports)
    stolen.do(call)

    assert letters(stolen, task.id) == "nste"
    assert seen(stolen, task.id).steals == 1
    assert task.id not in stolen.state()["history"]
    stolen.again(call)


def test_who_takes_a_task_again_learns_since_when_it_waits_again(queue: Any) -> None:
    queue.join("w")
    submitted(queue, "a")

    def noted() -> int:
        return int(seen(queue, "a").events[-1][1:].split(" ")[0])

    def since() -> int:
        (task,) = queue.take("w")
        queue.report("w", "retry", task, delay_ms=1)
        return int(task.since_ms)

    def due_again() -> None:
        queue.client.zadd(queue.keys.later, {"a": 1}, xx=True)

    assert since() == 0
    retried_at = noted()
    due_again()
    (task,) = queue.take("w")
    assert task.since_ms == retried_at
    queue.report("w", "failed", task)
    queue.do(replay(queue.keys, "a", drop=False))
    replayed_at = noted()
    assert since() == replayed_at


def test_nothing_is_kept_of_an_ordinary_task(queue: Any) -> None:
    queue.join("w")
    submitted(queue, "a")
    queue.report("w", "done", *queue.take("w"))

    assert seen(queue, "a").events == ()
    assert not {"history", "biographies"} & queue.state().keys()


@pytest.mark.parametrize("how", ["expired", "forgotten", "too many"])
def test_it_goes_with_the_outcome(stolen: Any, how: str) -> None:
    (task,) = stolen.take("w", 1)
    stolen.report("w", "done", task)
    assert stolen.state()["biographies"].keys() == {task.id}

    if how == "forgotten":
        stolen.do(forget(stolen.keys, [task.id]))
    else:
        if how == "expired":
            stolen.set_outcome_times({task.id: 1})
        settings = stolen.settings if how == "expired" else _keeping(stolen, 0)
        stolen.do(expire(stolen.keys, settings, most=100))

    assert "biographies" not in stolen.state()


def _keeping(queue: Any, outcomes: int) -> Any:
    return type(queue.settings)(outcomes=outcomes)


def test_without_retention_nothing_is_kept_of_it(make_queue: Any) -> None:
    queue = make_queue(retention_ms=0)
    queue.join("w")
    submitted(queue, "a")
    queue.report("w", "retry", *queue.take("w"))
    queue.report("w", "done", *queue.take("w"))

    assert not {"history", "biographies"} & queue.state().keys()


def test_a_death_says_since_when_it_ran_and_when_the_lease_ended(queue: Any) -> None:
    queue.join("v", "w")
    submitted(queue, *"abcd")
    queue.take("v", 1, keep=1)
    queue.end_lease("v")
    call = reassign(queue.keys, queue.settings, "v", most=100)
    queue.do(call)

    assert letters(queue, "a") == "tlb"
    assert letters(queue, "b") == "lb", "it was in the deque"
    assert [event.split(" ")[1:] for event in seen(queue, "a").events] == [
        ["v"],
        ["v"],
        [],
    ]
    queue.again(call)
    queue.take("w", 1)
    assert letters(queue, "a") == "ntlbt"


def test_a_worker_that_is_replaced_has_no_lease_to_wait_for(queue: Any) -> None:
    queue.join("v")
    submitted(queue, "a")
    queue.take("v")
    queue.join("v", incarnation="2")

    assert letters(queue, "a") == "td"


def test_who_leaves_is_noted_for_what_ran_and_what_waited(queue: Any) -> None:
    queue.join("v", "w")
    submitted(queue, *"abcd")
    queue.take("v", 1, keep=1)
    queue.do(leave(queue.keys, "v", "1", final=True))

    assert letters(queue, "a") == "th"
    assert letters(queue, "b") == "h"
    assert seen(queue, "a").attempts == seen(queue, "a").deaths == 0
    assert queue.take("w", 1)[0].attempt == 1


@pytest.mark.parametrize(
    ("verdict", "delay_ms", "noted"),
    [("retry", 0, "tf"), ("retry", 60_000, "tfq"), ("back", 60_000, "tzq")],
)
def test_what_comes_back_says_why_and_when_it_is_due(
    queue: Any, verdict: Any, delay_ms: int, noted: str
) -> None:
    queue.join("w")
    submitted(queue, "a")
    queue.report("w", verdict, *queue.take("w"), delay_ms=delay_ms)

    assert letters(queue, "a") == noted
    times = [int(event[1:].split(" ")[0]) for event in seen(queue, "a").events]
    assert times == sorted(times)
    assert noted[-1] != "q" or times[-1] - times[-2] == delay_ms


def test_a_task_that_was_parked_says_for_how_long(queue: Any) -> None:
    queue.join("v")
    submitted(queue, "a")
    (task,) = queue.take("v")
    queue.do(park(queue.keys, "v", task, "x@1"))
    assert seen(queue, "a").events == ()
    queue.join("w", abilities=["x@1"])
    queue.do(unpark(queue.keys, "x@1", most=10))

    assert letters(queue, "a") == "pb"


def test_a_task_that_was_put_aside_says_when_it_was_resumed(queue: Any) -> None:
    queue.join("w")
    submitted(queue, "a", "b")
    queue.do(pause(queue.keys, "x"))
    queue.take("w")
    assert seen(queue, "a").events == ()
    call = resume(queue.keys, "x", goes_on=False)
    queue.do(call)

    assert letters(queue, "a") == letters(queue, "b") == "r"
    queue.again(call)


def test_a_task_that_was_asked_to_stop_says_when(queue: Any) -> None:
    queue.join("w")
    submitted(queue, "a")
    (task,) = queue.take("w")
    call = cancel(queue.keys, queue.settings, "a", worker="w", needs="", outcome=b"{}")
    assert queue.do(call) == "asked"
    queue.again(call)

    assert letters(queue, "a") == "tc"
    queue.report("w", "cancelled", task)
    assert letters(queue, "a") == "tce"


def test_a_task_that_is_cancelled_while_it_waits_keeps_its_life(queue: Any) -> None:
    queue.join("w")
    submitted(queue, "a")
    queue.report("w", "retry", *queue.take("w"), delay_ms=60_000)
    queue.do(
        cancel(queue.keys, queue.settings, "a", worker="", needs="", outcome=b"{}")
    )

    assert letters(queue, "a") == "tfqe"


def attempted(queue: Any, times: int) -> Trace:
    queue.join("w")
    submitted(queue, "a")
    for _ in range(times):
        queue.report("w", "retry", *queue.take("w"))
    queue.report("w", "done", *queue.take("w"))
    found = seen(queue, "a")
    assert found.attempts == times
    return found


def test_of_many_attempts_the_last_events_are_kept(queue: Any) -> None:
    attempted(queue, 20)

    assert letters(queue, "a") == "n~tftftftfte"


def test_a_thousand_attempts_take_no_more_memory_than_twenty(alone: Any) -> None:
    found = attempted(ScriptedQueue(alone.client, "kept"), 1000)

    assert len(found.events) == 12
    assert sum(map(len, found.events)) < 12 * 20


def test_a_dead_letter_that_is_replayed_has_a_clean_slate(queue: Any) -> None:
    queue.join("w")
    submitted(queue, "a")
    queue.report("w", "retry", *queue.take("w"))
    queue.report("w", "failed", *queue.take("w"))
    assert letters(queue, "a") == "ntft"
    queue.do(replay(queue.keys, "a", drop=False))

    assert letters(queue, "a") == "v"
    assert seen(queue, "a").failures == ()
    assert seen(queue, "a").attempts == 0
