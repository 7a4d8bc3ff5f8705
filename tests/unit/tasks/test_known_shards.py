"""What a process knows of the number of shards; here the test is Redis."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from workstealing.client.shards import Shards
from workstealing.errors import RedisUnavailable
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import SINGLE, Owners
from workstealing.testing import ManualClock


def known(shards: Shards, answer: Any, nodes: str = "") -> int | None:
    """Return how many shards there are by that answer, None if nothing was asked.

    *nodes* are those of the shards, a letter each.
    """
    flow = shards.known()
    try:
        next(flow)
    except StopIteration:
        return None
    try:
        if isinstance(answer, BaseException):
            flow.throw(answer)
        owners = flow.send(answer)
        assert isinstance(owners, Owners)
        flow.send(list(nodes) or SINGLE * len(owners.keys))
    except StopIteration as end:
        return len(end.value)
    raise AssertionError("one question is enough")


def test_the_number_is_asked_for_now_and_then() -> None:
    clock = ManualClock()
    shards = Shards("queue", "run", 1, QueueSettings(), clock)

    assert known(shards, (4,)) == 4
    assert known(shards, (8,)) is None
    clock.advance(5.0)
    assert known(shards, (4, 8)) == 8


def test_a_question_that_failed_is_asked_again_at_once() -> None:
    shards = Shards("queue", "run", 1, QueueSettings(), ManualClock())

    with pytest.raises(RedisUnavailable):
        known(shards, RedisUnavailable("not now"))

    # Else it would take the queue for one without shards.
    assert known(shards, (8,)) == 8


def test_with_several_it_goes_on_for_a_while_if_the_first_one_is_away() -> None:
    clock = ManualClock()
    shards = Shards("queue", "run", 8, QueueSettings(), clock)

    assert known(shards, RedisUnavailable("its node is away")) == 8
    clock.advance(20.0)
    assert known(shards, (8,)) is None
    clock.advance(20.0)
    assert known(shards, (8, 16)) == 16


def test_each_node_gets_as_many_tasks_and_each_shard_its_part_of_them() -> None:
    shards = Shards("queue", "run", 8, QueueSettings(), ManualClock())
    known(shards, (8,), nodes="abcabcab")

    places = Counter(shards.next_homes(1)[0] for _ in range(180))

    assert [places[shard] for shard in range(8)] == [20, 20, 30, 20, 20, 30, 20, 20]


def test_many_tasks_that_are_submitted_together_are_spread_alike() -> None:
    shards = Shards("queue", "run", 8, QueueSettings(), ManualClock())
    known(shards, (8,), nodes="abcabcab")

    places = shards.next_homes(9_000)

    per_node = Counter("abcabcab"[shard] for shard in places)
    assert per_node == {"a": 3_000, "b": 3_000, "c": 3_000}
    assert set(places) == set(range(8))


def test_each_shard_gets_as_many_if_each_takes_its_part_of_max_length() -> None:
    shards = Shards("queue", "run", 8, QueueSettings(max_length=800), ManualClock())
    flow = shards.known()
    next(flow)
    with pytest.raises(StopIteration):
        flow.send((8,))

    assert Counter(shards.next_homes(800)) == dict.fromkeys(range(8), 100)


def test_who_looks_at_a_shard_for_each_submission_leaves_no_node_without_tasks() -> (
    None
):
    shards = Shards("queue", "run", 8, QueueSettings(), ManualClock())
    known(shards, (8,), nodes="abababab")

    places, looked_at = Counter[int](), set()
    for _ in range(160):
        looked_at.add(shards.next_turn())
        places.update(shards.next_homes(1))

    assert places == dict.fromkeys(range(8), 20)
    assert looked_at == set(range(8))


def test_without_a_cluster_each_shard_gets_as_many() -> None:
    shards = Shards("queue", "run", 8, QueueSettings(), ManualClock())
    known(shards, (8,))

    assert Counter(shards.next_homes(8_000)) == dict.fromkeys(range(8), 1000)


def test_nothing_is_asked_of_names_while_the_number_has_never_changed() -> None:
    shards = Shards("queue", "run", 8, QueueSettings(), ManualClock())
    assert known(shards, (8,)) == 8
    ids = [f"order-{n}" for n in range(20)]

    for flow in (
        shards.homes_of_ids(ids),
        shards.homes_of_keyed(ids, "customer-7"),
        shards.homes_of_limited(ids),
        shards.homes_of_unique_keys(ids, ids),
    ):
        with pytest.raises(StopIteration):
            next(flow)
