"""Where a worker goes when it looks at other shards."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.queue.shard_calls import Glimpse
from workstealing.testing import ManualClock
from workstealing.workers.shard_rounds import ShardRounds, choose_home, choose_shard


def seen(waiting: int = 0, members: int = 0, *parked: str) -> Glimpse:
    return Glimpse(waiting, members, is_overdue=False, parked=parked)


def test_a_home_is_where_the_fewest_workers_are() -> None:
    shards = {0: seen(members=2), 1: seen(members=1), 2: seen(members=2)}

    assert choose_home(shards, 0, 3) == 1


@given(st.integers(1, 20))
def test_workers_that_see_the_same_have_homes_of_their_own(number: int) -> None:
    shards = {shard: seen(members=3) for shard in range(number)}

    homes = {choose_home(shards, first, number) for first in range(number)}

    assert len(homes) == number


def test_where_no_shard_can_be_reached_it_begins_with_its_own() -> None:
    assert choose_home({}, 3, 8) == 3


def test_an_idle_worker_goes_where_most_tasks_wait_for_each_worker() -> None:
    shards = {0: seen(0, 1), 1: seen(100, 10), 2: seen(30, 1), 3: seen(0, 1)}

    assert choose_shard(shards, 0, 0, is_idle=True, draw=0.9) == 2


def test_a_shard_without_workers_comes_first() -> None:
    shards = {0: seen(0, 1), 1: seen(100, 1), 2: seen(1, 0)}

    assert choose_shard(shards, 0, 0, is_idle=True, draw=0.9) == 2


def test_of_several_busy_workers_about_one_serves_a_shard_without_workers() -> None:
    shards = {0: seen(100, 4), 1: seen(5, 0)}

    going = [
        choose_shard(shards, 0, 0, is_idle=False, draw=draw / 100)
        for draw in range(100)
    ]

    assert going.count(1) == 25
    assert going.count(None) == 75


def test_a_busy_worker_stays_if_every_shard_has_somebody() -> None:
    shards = {0: seen(1, 1), 1: seen(1000, 1)}

    assert choose_shard(shards, 0, 0, is_idle=False, draw=0.0) is None


def test_with_nothing_anywhere_a_worker_goes_home_and_stays_there() -> None:
    shards = {0: seen(0, 1), 1: seen(0, 1)}

    assert choose_shard(shards, 1, 0, is_idle=True, draw=0.5) == 0
    assert choose_shard(shards, 0, 0, is_idle=True, draw=0.5) is None


def test_a_shard_that_nobody_is_in_becomes_the_home_of_one_of_several() -> None:
    shards = {0: seen(0, 2), 1: seen(0, 0), 2: seen(0, 1)}

    assert choose_shard(shards, 0, 0, is_idle=True, draw=0.4) == 1
    assert choose_shard(shards, 0, 0, is_idle=True, draw=0.6) is None
    assert choose_shard({0: seen(0, 1), 1: seen()}, 0, 0, is_idle=True, draw=0) is None


@given(
    st.dictionaries(
        st.integers(0, 9),
        st.builds(seen, st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
    ),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
    st.floats(0, 1, exclude_max=True),
)
def test_it_never_goes_where_it_is_or_where_it_has_not_looked(
    shards: dict[int, Glimpse], here: int, home: int, is_idle: bool, draw: float
) -> None:
    going = choose_shard(shards, here, home, is_idle=is_idle, draw=draw)

    assert going is None or (going in shards and going != here)


def rounds_of_two(clock: ManualClock) -> ShardRounds:
    """Make what a worker in the first of two shards knows of the other."""
    shards = (QueueKeys("q", "run", 0), QueueKeys("q", "run", 1))

    def known() -> Any:
        yield from ()
        return shards

    identity: Any = SimpleNamespace(
        name="w.0",
        keys=shards[0],
        settings=QueueSettings(),
        abilities=["add@1", "add@2"],
        shards=SimpleNamespace(known=known, all=shards),
    )
    no_schedules: Any = None
    chance: Any = SimpleNamespace(random=lambda: 0.0)
    return ShardRounds(identity, no_schedules, chance, clock, None)


def look(rounds: ShardRounds, *replies: Glimpse) -> int | None:
    flow, left = rounds.look(is_idle=True), iter(replies)
    try:
        next(flow)
        while True:
            flow.send(next(left))
    except StopIteration as end:
        going: int | None = end.value
        return going


def test_who_runs_out_looks_at_once_if_others_had_tasks_and_else_a_second_later() -> (
    None
):
    clock = ManualClock()
    rounds = rounds_of_two(clock)

    assert look(rounds, seen(0, 1), seen(5, 1)) == 1
    clock.advance(0.03)
    assert rounds.is_due_if_idle
    assert not rounds.is_due, "one that has something to do is in no hurry"

    assert look(rounds, seen(0, 1), seen(0, 1)) is None
    clock.advance(0.03)
    assert not rounds.is_due_if_idle
    clock.advance(1.0)
    assert rounds.is_due_if_idle


def test_it_goes_where_tasks_are_parked_that_it_knows_though_others_are_there() -> None:
    shards = {0: seen(100, 1), 1: seen(1, 9, "add@2")}

    assert choose_shard(shards, 0, 0, is_idle=False, draw=0.0) == 1


def test_what_is_parked_elsewhere_counts_for_who_knows_it() -> None:
    rounds = rounds_of_two(ManualClock())

    assert look(rounds, seen(0, 1), seen(0, 1, "other@1")) is None
    assert rounds.parked_in(1) == ()
    assert look(rounds, seen(0, 1), seen(0, 1, "add@2", "other@1")) == 1
    assert rounds.parked_in(1) == ("add@2",)


def test_where_tasks_were_parked_that_it_knows_it_looks_for_a_minute() -> None:
    clock = ManualClock()
    rounds = rounds_of_two(clock)

    look(rounds, seen(0, 1), seen(0, 1))
    assert rounds.rest_seconds == math.inf
    look(rounds, seen(0, 1), seen(0, 1, "add@2"))
    look(rounds, seen(0, 1), seen(0, 1))
    assert rounds.rest_seconds <= 1.0
    clock.advance(61.0)
    look(rounds, seen(0, 1), seen(0, 1))
    assert rounds.rest_seconds == math.inf
