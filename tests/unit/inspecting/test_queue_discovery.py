"""The search for queues ends, however many keys a server has."""

from __future__ import annotations

import pytest

from workstealing.errors import RedisUnavailable
from workstealing.inspecting.inspector import find_queues
from workstealing.inspecting.views import QueuesFound
from workstealing.queue.steps import Nodes, RedisCommand


def _answered(
    pages_of_each_node: int, away: tuple[str, ...] = ()
) -> tuple[QueuesFound, int]:
    """Play two nodes, each with so many pages of keys."""
    flow = find_queues()
    step, asked = next(flow), 0
    assert step == Nodes()
    step = flow.send(("one", "two"))
    try:
        while True:
            assert isinstance(step, RedisCommand)
            asked += 1
            if step.node in away:
                step = flow.throw(RedisUnavailable(f"{step.node} did not answer"))
                continue
            following = (int(step.parts[1]) + 1) % pages_of_each_node
            key = f"ws:{{{step.node}/{following}}}:task".encode()
            step = flow.send(step.parse([b"%d" % following, [key]]))
    except StopIteration as end:
        return end.value, asked


def test_every_node_is_scanned_to_its_end() -> None:
    found, asked = _answered(2)

    assert found.names == (("one", "0"), ("one", "1"), ("two", "0"), ("two", "1"))
    assert (found.is_all, asked) == (True, 4)


def test_a_server_with_very_many_keys_is_not_scanned_to_its_end() -> None:
    found, asked = _answered(1000)

    assert (found.is_all, asked) == (False, 40)


@pytest.mark.parametrize(("away", "other"), [("one", "two"), ("two", "one")])
def test_a_node_that_is_away_hides_no_queue_of_another(away: str, other: str) -> None:
    found, asked = _answered(2, (away,))

    assert found == QueuesFound(((other, "0"), (other, "1")), False, (away,))
    assert asked == 3, "it is asked once"


def test_it_is_an_error_if_no_node_answers() -> None:
    with pytest.raises(RedisUnavailable, match="two did not answer"):
        _answered(2, ("one", "two"))
