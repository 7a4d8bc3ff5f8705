"""Who is woken, by what; and what a queue costs the server while little happens."""

from __future__ import annotations

from typing import Any

from tests.scripts.conftest import ScriptedQueue
from workstealing.queue.composition_calls import NewGroup, NewStep, submit_steps
from workstealing.queue.schedule_calls import put_schedule
from workstealing.queue.upkeep_calls import survey
from workstealing.queue.worker_calls import leave, release


def calls(queue: ScriptedQueue) -> int:
    """Return how many commands the server ran since the last time, but for ours."""
    commands = queue.client.info("commandstats")
    queue.client.config_resetstat()
    ours = ("cmdstat_config|resetstat", "cmdstat_config", "cmdstat_info")
    return sum(s["calls"] for name, s in commands.items() if name not in ours)


def wake_ups(queue: ScriptedQueue) -> int:
    return int(queue.client.llen(queue.keys.bell))


def at_rest(queue: ScriptedQueue, *workers: str) -> None:
    """Let workers find nothing, and a survey, too."""
    queue.join(*workers)
    for worker in workers:
        queue.take(worker)
    queue.do(survey(queue.keys, queue.settings))
    queue.client.hset(queue.keys.upkeep, "claimed", 1)
    queue.client.delete(queue.keys.bell)


def test_a_worker_at_rest_costs_the_server_few_commands(alone: Any) -> None:
    at_rest(alone, "w")
    calls(alone)

    idle = alone.exchange("w", want=1)

    # One more is the wait for a wake-up. A worker rests for five seconds.
    assert calls(alone) <= 10
    assert not idle.is_overdue
    alone.do(survey(alone.keys, alone.settings))
    assert calls(alone) <= 7


def test_a_task_that_is_submitted_alone_costs_the_server_few_commands(
    alone: Any,
) -> None:
    alone.submit("before")
    calls(alone)

    alone.submit("a")

    assert calls(alone) <= 7


def test_nobody_surveys_a_queue_in_which_nothing_is(queue: Any) -> None:
    at_rest(queue, "v", "w")

    assert not queue.exchange("w", want=1).is_overdue

    queue.client.hset(queue.keys.upkeep, mapping={"claimed": 1, "surveyed": 1})
    assert queue.exchange("w", want=1).is_overdue


def test_a_lease_that_has_ended_makes_upkeep_overdue(queue: Any) -> None:
    at_rest(queue, "v", "w")
    queue.end_lease("v")

    assert queue.exchange("w", want=1).is_overdue
    assert queue.do(survey(queue.keys, queue.settings)).dead == ("v",)


def test_who_finds_nothing_forgets_wake_ups_that_are_left_over(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b", "c")
    assert wake_ups(queue) == 3
    queue.take("w")

    queue.take("w")

    assert wake_ups(queue) == 0


def test_wake_ups_are_not_forgotten_while_a_deque_has_something(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*map(str, range(20)))
    queue.take("v", 10, keep=20)
    queue.take("w", 5)
    queue.client.rpush(queue.keys.bell, 1)

    assert not queue.take("w")

    assert wake_ups(queue) > 0


def test_the_first_delayed_task_wakes_one_who_then_knows_of_it(queue: Any) -> None:
    at_rest(queue, "w")

    queue.submit("a", delay_ms=60_000)
    queue.submit("b", delay_ms=60_000)

    assert wake_ups(queue) == 1
    assert queue.exchange("w", want=1).next_in_ms > 0


def test_a_task_that_is_due_before_all_others_wakes_one_who_knew_of_those(
    queue: Any,
) -> None:
    at_rest(queue, "w")
    queue.submit("late", delay_ms=60_000)
    queue.client.delete(queue.keys.bell)

    queue.submit("later", delay_ms=70_000)
    assert wake_ups(queue) == 0
    queue.submit("soon", "as soon", delay_ms=50_000)

    assert wake_ups(queue) == 1
    assert queue.exchange("w", want=1).next_in_ms <= 50_000


def test_who_is_busy_wakes_others_for_a_task_that_is_due(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit("a", delay_ms=60_000)
    queue.client.zadd(queue.keys.later, {"a": 1})
    queue.client.delete(queue.keys.bell)

    queue.exchange("w", want=0)

    assert wake_ups(queue) == 1
    assert [task.id for task in queue.take("v")] == ["a"]


def test_a_schedule_wakes_one_who_then_knows_of_it(queue: Any) -> None:
    at_rest(queue, "w")

    queue.do(put_schedule(queue.keys, "nightly", b"definition", tick=2**50))

    assert wake_ups(queue) == 1
    assert queue.exchange("w", want=1).next_in_ms > 0


def test_tasks_behind_a_long_one_wake_thieves(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit("a", "b", "c")
    _, *waiting = queue.take("w", 3)
    queue.client.delete(queue.keys.bell)

    queue.do(release(queue.keys, "w", waiting))

    assert wake_ups(queue) == 2


def test_who_takes_its_share_of_many_wakes_another(queue: Any) -> None:
    queue.join("v", "w")
    queue.submit(*map(str, range(100)))
    queue.client.delete(queue.keys.bell)

    queue.take("w", 5, keep=40)

    assert wake_ups(queue) == 1


def test_after_a_gap_those_at_rest_are_woken_to_renew_their_leases(queue: Any) -> None:
    at_rest(queue, "w")
    queue.client.hset(queue.keys.upkeep, mapping={"looked": 1, "doubted": 0})

    queue.do(survey(queue.keys, queue.settings))

    assert wake_ups(queue) > 0


def test_a_delayed_step_wakes_one_who_then_knows_of_it(queue: Any) -> None:
    at_rest(queue, "w")
    steps = [
        NewStep("a", b"{}", delay_ms=60_000, follower="b"),
        NewStep("b", b"{}", waits=True),
    ]

    queue.do(
        submit_steps(queue.keys, queue.settings, steps, NewGroup(), whole=2, limits={})
    )

    assert wake_ups(queue) == 1
    assert queue.exchange("w", want=1).next_in_ms > 0


def test_who_takes_one_of_many_that_came_due_wakes_others(queue: Any) -> None:
    at_rest(queue, "v", "w")
    queue.submit("a", "b", "c", delay_ms=60_000)
    queue.client.zadd(queue.keys.later, dict.fromkeys("abc", 1))
    queue.client.delete(queue.keys.bell)

    assert len(queue.take("w", 1)) == 1

    assert wake_ups(queue) == 2


def test_who_leaves_wakes_another_to_know_what_is_due(queue: Any) -> None:
    at_rest(queue, "v", "w")
    queue.submit("a", delay_ms=60_000)
    queue.client.delete(queue.keys.bell)

    queue.do(leave(queue.keys, "w", "1", final=True))

    assert wake_ups(queue) == 1
