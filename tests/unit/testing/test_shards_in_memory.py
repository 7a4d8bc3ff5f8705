"""A queue in memory has shards as one on a server has."""

from __future__ import annotations

from workstealing import TaskQueue, chain
from workstealing.queue.placement import shard_in_id
from workstealing.testing import in_memory


def test_drain_runs_the_tasks_of_all_shards() -> None:
    queue = TaskQueue("memory", shards=4)

    @queue.task(name="add")
    def add(a: int, b: int) -> int:
        return a + b

    @queue.task(name="more")
    def more(left: int) -> None:
        if left:
            more.submit(left - 1)

    with in_memory(queue) as memory:
        handles = [add.submit(n, n) for n in range(12)]
        more.submit(8)
        composed = chain(add.s(1, 2), add.s(b=3)).submit()
        ran = memory.drain()

        assert len(ran) == 12 + 9 + 2
        assert [one.result(0) for one in handles] == [2 * n for n in range(12)]
        assert composed.result(0) == 6
        assert {shard_in_id(one.id) for one in handles} == {0, 1, 2, 3}
        assert len(memory.submitted) == len(ran)


def test_the_time_moves_to_what_is_due_in_any_shard() -> None:
    queue = TaskQueue("memory", shards=4)
    failed: list[int] = []

    @queue.task(name="flaky", retries=2)
    def flaky(number: int) -> int:
        if number not in failed:
            failed.append(number)
            raise ValueError("once")
        return number

    with in_memory(queue) as memory:
        for n in range(4):
            flaky.options(delay=60 * n).submit(n)
        ran = memory.drain(until="all")

        assert sorted(one.outcome for one in ran) == ["done"] * 4 + ["retry"] * 4


def test_a_worker_that_crashes_in_a_shard_loses_nothing() -> None:
    queue = TaskQueue("memory", shards=4)

    @queue.task(name="add")
    def add(a: int, b: int) -> int:
        return a + b

    with in_memory(queue) as memory:
        handles = [add.submit(n, n) for n in range(8)]
        memory.crash(add)
        memory.drain(until="all")

        assert [one.result(0) for one in handles] == [2 * n for n in range(8)]
