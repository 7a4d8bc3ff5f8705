"""What is read of a queue while a node of its Cluster is away; the test is Redis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from redis import exceptions

from workstealing.errors import RedisError, RedisUnavailable
from workstealing.inspecting.reachable_shards import read_reachable
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import Flow, Owners, RedisCommand, ask

# The node of each of six shards.
NODES = tuple("abcabc")
SHARDS = tuple(QueueKeys("letters", "default", shard) for shard in range(6))


def failed(cause: Exception) -> RedisUnavailable:
    error = RedisUnavailable("the server did not answer")
    error.__cause__ = cause
    return error


REFUSED = failed(exceptions.ConnectionError("refused"))
HANGS = failed(exceptions.TimeoutError("too late"))


def read(keys: QueueKeys) -> Flow[str]:
    return (yield from ask(RedisCommand(("GET", keys.control), str)))


class Answered:
    """What came of it, and which shards were asked."""

    def __init__(self, failures: Mapping[int, RedisError]) -> None:
        self.asked: list[int] = []
        flow = read_reachable(SHARDS, read)
        step: Any = next(flow)
        assert isinstance(step, Owners)
        step = flow.send(NODES)
        by_key = {keys.control: keys.shard for keys in SHARDS}
        try:
            while True:
                shard = by_key[step.parts[1]]
                self.asked.append(shard)
                if shard in failures:
                    step = flow.throw(failures[shard])
                else:
                    step = flow.send(f"of {shard}")
        except StopIteration as end:
            self.found, self.away = end.value


def test_shards_whose_node_is_away_are_left_out_and_named() -> None:
    answered = Answered({1: REFUSED, 4: REFUSED})

    assert answered.found == {n: f"of {n}" for n in (0, 2, 3, 5)}
    assert answered.away == (1, 4)


def test_a_node_that_hangs_is_waited_for_once() -> None:
    answered = Answered({1: HANGS, 4: HANGS})

    assert answered.asked == [0, 1, 2, 3, 5]
    assert answered.away == (1, 4)


def test_a_slot_that_is_refused_hides_no_other_of_its_node() -> None:
    answered = Answered({1: failed(exceptions.TryAgainError("it is being moved"))})

    assert answered.asked == list(range(6))
    assert answered.away == (1,)


def test_it_is_an_error_if_no_shard_can_be_reached() -> None:
    with pytest.raises(RedisUnavailable):
        Answered(dict.fromkeys(range(6), HANGS))


def test_what_cannot_be_read_is_no_node_that_is_away() -> None:
    with pytest.raises(RedisError, match="WRONGTYPE"):
        Answered({1: RedisError("WRONGTYPE")})


def test_of_a_queue_with_one_shard_nothing_else_is_asked() -> None:
    flow = read_reachable(SHARDS[:1], read)

    assert isinstance(next(flow), RedisCommand)
    with pytest.raises(StopIteration) as end:
        flow.send("all")
    assert end.value.value == ({0: "all"}, ())
