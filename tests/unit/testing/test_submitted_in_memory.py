"""A test sees what was submitted to a queue in memory, in whatever way it came."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from workstealing import Limit, Task, Unique, chain, connect, group
from workstealing.testing import MemoryQueue

Send = Task[[str], str]


def _many(send: Send) -> None:
    send.submit_many([("ann",), ("ann",)])


def _schedule(send: Send, queue: MemoryQueue) -> None:
    queue.schedule(send, "ann", every=60, name="often")
    queue.advance(60)
    queue.drain()


WAYS: dict[str, tuple[Callable[[Send, MemoryQueue], object], int]] = {
    "alone": (lambda send, _: send.submit("ann"), 1),
    "delayed": (lambda send, _: send.submit_in(60, "ann"), 1),
    "urgent": (lambda send, _: send.options(priority=0).submit("ann"), 1),
    "with an id": (lambda send, _: send.options(id="a").submit("ann"), 1),
    "in a line": (lambda send, _: send.options(fair_key="a").submit("ann"), 1),
    "many": (lambda send, _: _many(send), 2),
    "in a chain": (lambda send, _: chain(send.s("ann"), send.s()).submit(), 2),
    "in a group": (lambda send, _: group(send.s("ann"), send.s("ann")).submit(), 2),
    "by a schedule": (_schedule, 1),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_submitted_in_any_way_is_seen(
    memory_queue: MemoryQueue, way: str
) -> None:
    @memory_queue.task(name="send")
    def send(to: str) -> str:
        return to

    submit, number = WAYS[way]
    submit(send, memory_queue)

    memory_queue.assert_submitted(send, "ann")
    assert [one.name for one in memory_queue.submitted] == ["send"] * number


@pytest.mark.parametrize(
    "options",
    [{"unique": Unique()}, {"limit": Limit(concurrency=1)}],
    ids=["unique", "limited"],
)
def test_a_task_with_rules_of_its_own_is_seen(
    memory_queue: MemoryQueue, options: dict[str, object]
) -> None:
    @memory_queue.task(name="send", **options)  # type: ignore[call-overload,untyped-decorator]
    def send(to: str) -> None: ...

    send.submit("ann")

    memory_queue.assert_submitted("send", to="ann")


def test_what_no_worker_can_read_is_seen_and_hides_nothing(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task(name="send")
    def send(to: str) -> None: ...

    with connect(memory_queue.url) as client:
        client.hset("ws:{memory/default}:task", "by-hand", "{broken")
        client.rpush("ws:{memory/default}:inbox:1", "by-hand")
    send.submit("ann")

    memory_queue.assert_submitted(send, "ann")
    assert [one.name for one in memory_queue.submitted] == ["", "send"]
    with pytest.raises(AssertionError, match="an envelope that cannot be read"):
        memory_queue.assert_submitted(send, "bob")
    assert {one.outcome for one in memory_queue.drain()} == {"dead", "done"}


def test_an_id_that_is_known_is_not_submitted_again(memory_queue: MemoryQueue) -> None:
    @memory_queue.task
    def send(to: str) -> None: ...

    send.options(id="a").submit("ann")
    send.options(id="a").submit("bob")

    (only,) = memory_queue.submitted
    assert only.arguments == {"to": "ann"}
