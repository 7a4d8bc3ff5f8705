"""The counts of shards are those of one queue."""

from __future__ import annotations

from dataclasses import replace

from workstealing.queue.inspection_calls import Counts
from workstealing.queue.merged_counts import (
    ended_since,
    merged_counts,
    merged_pauses,
)
from workstealing.queue.pause_calls import Pauses

EMPTY = Counts(
    now_ms=10,
    inbox=(0, 0, 0),
    tasks=0,
    assigned=0,
    outcomes=0,
    delayed=0,
    dead=0,
    parked=0,
    input_ended=False,
    stats={},
    upkeep={},
    leases={},
    loads={},
    abilities={},
)


def test_numbers_are_added_and_times_are_the_latest() -> None:
    one = replace(
        EMPTY,
        inbox=(1, 2, 3),
        tasks=9,
        delayed=1,
        stats={"done": 4},
        upkeep={"expire": 5},
        leases={"w.0": 7, "v.0": 8},
        loads={"w.0": 3},
    )
    other = replace(
        EMPTY,
        now_ms=12,
        inbox=(1, 0, 0),
        tasks=1,
        input_ended=True,
        stats={"done": 1, "dead": 2},
        upkeep={"expire": 9},
        leases={"w.0": 20},
    )

    seen = merged_counts([one, other])

    assert (seen.now_ms, seen.inbox, seen.tasks) == (12, (2, 2, 3), 10)
    assert (seen.unfinished, seen.runnable, seen.input_ended) == (10, 9, True)
    assert seen.stats == {"done": 5, "dead": 2}
    assert (seen.upkeep, seen.leases) == ({"expire": 9}, {"w.0": 20, "v.0": 8})


def test_the_counts_of_one_shard_are_as_they_are() -> None:
    assert merged_counts([EMPTY]) is EMPTY


def test_what_is_paused_anywhere_is_paused_since_it_first_was() -> None:
    parts = [Pauses(None, {"b": 5}), Pauses(9, {"a": 3, "b": 4}), Pauses(7)]

    assert merged_pauses(parts) == Pauses(7, {"a": 3, "b": 4})
    assert not merged_pauses([Pauses(), Pauses()])


def test_shards_were_empty_at_one_moment_if_nothing_ended_between_two_looks() -> None:
    after = replace(EMPTY, stats={"done": 1})

    assert ended_since(None, EMPTY)
    assert ended_since(EMPTY, after)
    assert not ended_since(after, replace(after, now_ms=99))
