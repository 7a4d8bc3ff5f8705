"""Where a worker goes when it looks at other shards."""

from __future__ import annotations

import logging
import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing._logs import flush_logs
from workstealing.errors import RedisUnavailable
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.queue.shard_calls import ShardStatus
from workstealing.testing import ManualClock
from workstealing.workers.shard_rounds import ShardRounds, choose_home, choose_shard


def seen(waiting: int = 0, members: int = 0, *parked: str) -> ShardStatus:
    return ShardStatus(waiting, members, is_overdue=False, parked=parked)


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
    shards: dict[int, ShardStatus], here: int, home: int, is_idle: bool, draw: float
) -> None:
    going = choose_shard(shards, here, home, is_idle=is_idle, draw=draw)

    assert going is None or (going in shards and going != here)


def rounds_of_two(
    clock: ManualClock, *, here: int = 0, schedules: Any = None
) -> ShardRounds:
    """Make what a worker in one of two shards knows of the other."""
    shards = (QueueKeys("q", "run", 0), QueueKeys("q", "run", 1))

    def known() -> Any:
        yield from ()
        return shards

    identity: Any = SimpleNamespace(
        name="w.0",
        keys=shards[here],
        settings=QueueSettings(),
        abilities=["add@1", "add@2"],
        shards=SimpleNamespace(known=known, all=shards),
    )
    chance: Any = SimpleNamespace(random=lambda: 0.0)
    rounds = ShardRounds(identity, schedules, chance, clock, None)
    if here:
        # It is at home where it is.
        assert play(rounds.settle(), seen(0, 1), seen(0, 0)) == here
    return rounds


def look(rounds: ShardRounds, *replies: ShardStatus | RedisUnavailable) -> int | None:
    return play(rounds.look(is_idle=True), *replies)


def play(flow: Any, *replies: ShardStatus | RedisUnavailable) -> int | None:
    left = iter(replies)
    try:
        next(flow)
        while True:
            reply = next(left)
            if isinstance(reply, RedisUnavailable):
                flow.throw(reply)
            else:
                flow.send(reply)
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


class Ticks:
    """Schedules whose due ticks are fired, as often as they are asked for that."""

    def __init__(self) -> None:
        self.fired = 0

    def fire_due(self) -> Any:
        self.fired += 1
        yield from ()
        return 1


def ticking(next_ms: int, *, due: int = 0, waiting: int = 0) -> ShardStatus:
    """Return how a shard that nobody is in looks, with a schedule."""
    return ShardStatus(waiting, 0, False, due_ticks=due, next_tick_ms=next_ms)


def test_who_sees_a_tick_that_is_due_fires_it_and_goes_to_its_task() -> None:
    ticks = Ticks()
    rounds = rounds_of_two(ManualClock(), here=1, schedules=ticks)

    going = look(rounds, ticking(400, due=1), ticking(400, waiting=1), seen(0, 1))

    assert (going, ticks.fired) == (0, 1)


def test_a_rest_ends_when_the_next_tick_of_a_shard_without_workers_is_due() -> None:
    clock = ManualClock()
    rounds = rounds_of_two(clock, here=1)

    look(rounds, ticking(400), seen(0, 1))

    assert rounds.rest_seconds == pytest.approx(0.4)
    clock.advance(0.3)
    assert not rounds.is_due_if_idle
    assert not rounds.is_due
    clock.advance(0.11)
    assert rounds.is_due_if_idle
    assert rounds.is_due, "a busy one fires it, too"


def test_ticks_that_come_close_together_cause_no_look_after_the_other() -> None:
    clock = ManualClock()
    rounds = rounds_of_two(clock, here=1)

    look(rounds, ticking(1), seen(0, 1))

    assert rounds.rest_seconds == pytest.approx(0.02)


def test_a_tick_of_a_shard_that_is_away_causes_no_hurry() -> None:
    clock = ManualClock()
    rounds = rounds_of_two(clock, here=1)

    look(rounds, ticking(400), seen(0, 1))
    clock.advance(0.5)
    look(rounds, RedisUnavailable("its node is away"), seen(0, 1))

    assert rounds.rest_seconds == pytest.approx(1.0)


def test_a_tick_of_a_shard_that_has_workers_is_theirs() -> None:
    rounds = rounds_of_two(ManualClock(), here=1)
    theirs = ShardStatus(0, 1, False, next_tick_ms=400)

    look(rounds, theirs, seen(0, 1))

    assert rounds.rest_seconds == math.inf


def test_a_shard_that_its_last_worker_has_left_is_looked_at_again() -> None:
    clock = ManualClock()
    rounds = rounds_of_two(clock)
    own = ShardStatus(0, 1, False, next_tick_ms=400)

    assert look(rounds, own, seen(5, 1)) == 1

    assert rounds.seconds_to_look(is_idle=False) == pytest.approx(0.4)


def looks_until_it_is_tried_again(
    rounds: ShardRounds, clock: ManualClock, took: float
) -> list[int]:
    """Fail to reach the other shard, again and again; return the seconds in between."""
    pauses = []
    for _ in range(6):
        flow = rounds.look(is_idle=True)
        next(flow)
        flow.send(seen(0, 1))
        clock.advance(took)
        with pytest.raises(StopIteration):
            flow.throw(RedisUnavailable("its node is away"))
        failed_at = clock.monotonic()
        while True:
            clock.advance(1)
            flow = rounds.look(is_idle=True)
            next(flow)
            try:
                flow.send(seen(0, 1))
            except StopIteration:
                continue
            flow.close()
            break
        pauses.append(round(clock.monotonic() - failed_at))
    return pauses


@pytest.mark.parametrize(
    ("took", "pauses"),
    [(0.001, [2, 2, 2, 2, 2, 2]), (5.0, [10, 20, 40, 80, 100, 100])],
)
def test_a_node_that_refuses_is_tried_often_and_one_that_hangs_less_and_less(
    took: float, pauses: list[int]
) -> None:
    clock = ManualClock()
    rounds = rounds_of_two(clock)

    assert looks_until_it_is_tried_again(rounds, clock, took) == pauses


def test_a_shard_that_comes_and_goes_is_logged_once_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert flush_logs(), "of other tests"
    caplog.set_level(logging.INFO)
    caplog.clear()
    clock = ManualClock()
    rounds = rounds_of_two(clock)

    for reply in (RedisUnavailable("refused"), RedisUnavailable("refused"), seen(0, 1)):
        look(rounds, seen(0, 1), reply)
        clock.advance(3)

    assert flush_logs()
    own = "workstealing.workers.shard_rounds"
    said = [one.getMessage() for one in caplog.records if one.name == own]
    assert said == [
        "worker w.0 cannot reach shard 1, whose tasks wait: refused",
        "worker w.0 reaches shard 1 again",
    ]
