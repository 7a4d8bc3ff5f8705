"""The search for queues ends, however many keys a server has."""

from __future__ import annotations

from workstealing.inspecting.inspector import find_queues
from workstealing.inspecting.views import QueuesFound
from workstealing.queue.steps import Nodes, RedisCommand


def _answered(pages_of_each_node: int) -> tuple[QueuesFound, int]:
    """Play two nodes, each with so many pages of keys."""
    flow = find_queues()
    step, asked = next(flow), 0
    assert step == Nodes()
    step = flow.send(("one", "two"))
    try:
        while True:
            assert isinstance(step, RedisCommand)
            asked += 1
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
