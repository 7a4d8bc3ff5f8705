"""What a process knows of the number of shards; here the test is Redis."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing.client.shards import Shards
from workstealing.errors import RedisUnavailable
from workstealing.queue.settings import QueueSettings
from workstealing.testing import ManualClock


def known(shards: Shards, answer: Any) -> int | None:
    """Return how many shards there are by that answer, None if nothing was asked."""
    flow = shards.known()
    try:
        next(flow)
    except StopIteration:
        return None
    try:
        if isinstance(answer, BaseException):
            flow.throw(answer)
        flow.send(answer)
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
