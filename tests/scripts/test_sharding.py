"""How many shards there are is written down once; what one shows to those outside."""

from __future__ import annotations

from typing import Any

from workstealing.queue.pause_calls import pause
from workstealing.queue.shard_calls import declare_shards, read_shards, shard_status
from workstealing.queue.worker_calls import park


def test_the_number_of_shards_only_grows_and_what_it_was_is_kept(queue: Any) -> None:
    assert queue.do(read_shards(queue.keys)) == (1,)

    assert queue.do(declare_shards(queue.keys, 4)) == (4,)
    queue.again(declare_shards(queue.keys, 4))
    assert queue.do(declare_shards(queue.keys, 2)) == (4,)
    assert queue.do(declare_shards(queue.keys, 8)) == (4, 8)
    assert queue.do(read_shards(queue.keys)) == (4, 8)


def test_a_queue_that_has_tasks_had_one_shard_before(queue: Any) -> None:
    queue.submit("a")

    assert queue.do(declare_shards(queue.keys, 1)) == (1,)
    assert queue.do(declare_shards(queue.keys, 4)) == (1, 4)


def test_what_is_no_number_is_passed_over(queue: Any) -> None:
    queue.client.hset(queue.keys.control, "shards", "x 4 -1 1000000")

    assert queue.do(read_shards(queue.keys)) == (4, 256)


def test_the_status_of_a_shard_shows_what_a_worker_would_find(queue: Any) -> None:
    call = shard_status(queue.keys, queue.settings)
    assert (queue.do(call).waiting, queue.do(call).members) == (0, 0)

    queue.submit("a", "b", priority=0)
    queue.submit("c", priority=2)
    queue.submit("due", delay_ms=60_000)
    assert queue.do(call).waiting == 3
    queue.client.zadd(queue.keys.later, {"due": 1})
    assert queue.do(call).waiting == 4

    queue.join("v", "w")
    assert queue.do(call).members == 2
    queue.again(call)


def test_a_paused_shard_has_nothing_to_do(queue: Any) -> None:
    queue.submit("a")
    queue.do(pause(queue.keys, None))

    assert queue.do(shard_status(queue.keys, queue.settings)).waiting == 0


def test_the_status_of_a_shard_names_what_tasks_are_parked_for(queue: Any) -> None:
    call = shard_status(queue.keys, queue.settings)
    queue.join("v")
    queue.submit("a", "b", "c")
    first, second, third = queue.take("v")
    queue.do(park(queue.keys, "v", first, "x@1"))
    queue.do(park(queue.keys, "v", second, "x@1"))
    assert queue.do(call).parked == ("x@1",)
    queue.do(park(queue.keys, "v", third, "y@1"))

    seen = queue.again(call)
    assert (seen.waiting, sorted(seen.parked)) == (0, ["x@1", "y@1"])
    queue.do(pause(queue.keys, None))
    assert queue.do(call).parked == ()


def test_the_status_of_a_shard_shows_which_ticks_are_due_and_when_the_next_one_is(
    queue: Any,
) -> None:
    call = shard_status(queue.keys, queue.settings)
    queue.now_ms = 1_000_000
    assert (queue.do(call).due_ticks, queue.do(call).next_tick_ms) == (0, -1)

    queue.client.zadd(queue.keys.ticks, {"later": 2_000_000, "next": 1_000_521})
    seen = queue.do(call)
    assert (seen.due_ticks, seen.next_tick_ms) == (0, 500)
    # One that is due already may be one that nobody can fire: it hides no other.
    queue.client.zadd(queue.keys.ticks, {"due": 1})
    seen = queue.again(call)
    assert (seen.due_ticks, seen.next_tick_ms) == (1, 493)


def test_the_status_of_a_shard_counts_no_worker_that_is_dead(queue: Any) -> None:
    queue.join("w")
    queue.client.zadd(queue.keys.workers, {"w": 1})

    assert queue.do(shard_status(queue.keys, queue.settings)).members == 0


def test_upkeep_of_a_shard_is_overdue_until_somebody_has_done_it(queue: Any) -> None:
    call = shard_status(queue.keys, queue.settings)
    assert queue.do(call).is_overdue

    seconds, micros = queue.client.time()
    now_ms = seconds * 1000 + micros // 1000
    queue.client.hset(queue.keys.upkeep, "claimed", now_ms)
    assert not queue.do(call).is_overdue
