"""A queue with shards uses all nodes of a Cluster alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import Any

import pytest
from redis import Redis

from workstealing import TaskQueue, Worker, gather_results
from workstealing.client.queue_internals import internals_of
from workstealing.inspecting import Inspector
from workstealing.testing import ClusterOfThree

SCRIPTS = ("cmdstat_evalsha", "cmdstat_eval")


@pytest.fixture
def make_queue(
    redis_cluster: ClusterOfThree, key_prefix: str
) -> Iterator[Callable[..., TaskQueue]]:
    made: list[TaskQueue] = []

    def make(name: str = key_prefix, **options: Any) -> TaskQueue:
        made.append(TaskQueue(name, redis_cluster.url, **options))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


class Nodes:
    """What the nodes of a Cluster have done since it began to look."""

    def __init__(self, cluster: ClusterOfThree) -> None:
        self._clients = [Redis.from_url(node.url) for node in cluster.nodes]
        self.ports = [node.port for node in cluster.nodes]
        self._before = self._calls()

    def commands(self) -> list[int]:
        """Return how many commands each has run, those of scripts among them."""
        return [
            now - before
            for now, before in zip(self._calls(), self._before, strict=True)
        ]

    def _calls(self) -> list[int]:
        return [
            sum(
                one["calls"]
                for name, one in client.info("commandstats").items()
                if name in ("cmdstat_rpush", "cmdstat_hset", "cmdstat_hdel")
                or name in SCRIPTS
            )
            for client in self._clients
        ]


@pytest.mark.parametrize("shards", [8, 9, 16])
def test_nodes_have_as_many_commands_each_however_many_shards_they_have(
    make_queue: Callable[..., TaskQueue],
    redis_cluster: ClusterOfThree,
    shards: int,
) -> None:
    queue = make_queue(shards=shards)

    @queue.task(name="add")
    def add(a: int, b: int) -> int:
        return a + b

    queue.counts()
    nodes = Nodes(redis_cluster)
    handles = [add.submit(n, n) for n in range(360)]
    handles += add.submit_many([(n, n) for n in range(1_800)])
    # One by one, so that what tasks cost is most of what is counted.
    workers = [Worker(queue, pool="crew", index=index, batch=1) for index in range(4)]
    threads = [
        Thread(target=worker.run, kwargs={"until_empty": True}) for worker in workers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    commands = nodes.commands()

    assert queue.counts().stats["done"] == 2_160
    assert are_even(commands), commands
    assert gather_results(handles[:10], timeout=10) == [2 * n for n in range(10)]


def are_even(numbers: Sequence[float]) -> bool:
    """Tell whether none is more than a fifth above or below their mean."""
    mean = sum(numbers) / len(numbers)
    return all(0.8 * mean <= one <= 1.2 * mean for one in numbers)


@pytest.mark.slow
def test_results_arrive_by_one_subscription_from_all_nodes(
    make_queue: Callable[..., TaskQueue], redis_cluster: ClusterOfThree
) -> None:
    queue = make_queue(shards=8)

    @queue.task(name="one")
    def one() -> int:
        return 1

    worker = Worker(queue)
    thread = Thread(target=worker.run)
    thread.start()
    try:
        assert [one.submit().result(30) for _ in range(24)] == [1] * 24
        pattern = internals_of(queue).keys.channel("*")
        channels = [
            channel
            for node in redis_cluster.nodes
            for channel in Redis.from_url(node.url).pubsub_channels(pattern)
        ]
        assert len(channels) == 1
    finally:
        worker.stop()
        thread.join(30)


def test_an_inspector_sees_one_queue(make_queue: Callable[..., TaskQueue]) -> None:
    queue = make_queue(shards=8)

    @queue.task(name="one")
    def one() -> int:
        return 1

    handles = [one.submit() for _ in range(16)]
    # A process that was not told how many there are.
    inspector = Inspector(make_queue())

    seen = inspector.stat()
    assert seen.waiting == 16
    assert len(seen.shards) == 8
    assert sum(each.waiting for each in seen.shards) == 16
    assert {row.id for row in inspector.ls("inbox", 100)} == {
        handle.id for handle in handles
    }
    assert str(inspector.why(handles[5].id))
