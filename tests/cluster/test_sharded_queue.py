"""A queue with shards uses all nodes of a Cluster alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import Any

import pytest
from redis import Redis

from workstealing import TaskQueue, Worker, gather_results
from workstealing.client.queue_internals import internals_of
from workstealing.inspecting import Inspector
from workstealing.queue.keys import QueueKeys
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


def shards_of(queue: TaskQueue, nodes: Nodes) -> list[int]:
    """Return how many shards each node has."""
    client: Any = internals_of(queue).driver.client
    counted = Counter(
        client.get_node_from_key(keys.task).port
        for keys in internals_of(queue).shards.all
    )
    return [counted[port] for port in nodes.ports]


def name_with_even_shards(cluster: ClusterOfThree, prefix: str, shards: int) -> str:
    """Return a name of a queue of whose shards each node has as many as it can.

    That is so for most names with eight shards, and for a third of them with nine.
    """
    with TaskQueue(prefix, cluster.url) as queue:
        client: Any = internals_of(queue).driver.client
        for number in range(200):
            name = f"{prefix}-{number}"
            every = (QueueKeys(name, "default", shard) for shard in range(shards))
            held = Counter(client.get_node_from_key(one.task).port for one in every)
            if max(held.values()) == math.ceil(shards / len(cluster.nodes)):
                return name
    raise AssertionError("no name has even shards")


@pytest.mark.parametrize("shards", [8, 9, 16])
def test_shards_have_as_many_commands_each_and_so_have_nodes_with_as_many_shards(
    make_queue: Callable[..., TaskQueue],
    redis_cluster: ClusterOfThree,
    key_prefix: str,
    shards: int,
) -> None:
    queue = make_queue(
        name_with_even_shards(redis_cluster, key_prefix, shards), shards=shards
    )

    @queue.task(name="add")
    def add(a: int, b: int) -> int:
        return a + b

    queue.counts()
    nodes = Nodes(redis_cluster)
    handles = [add.submit(n, n) for n in range(40 * shards)]
    handles += add.submit_many([(n, n) for n in range(200 * shards)])
    # One by one, so that what tasks cost is most of what is counted.
    workers = [Worker(queue, pool="crew", index=index, batch=1) for index in range(4)]
    threads = [
        Thread(target=worker.run, kwargs={"until_empty": True}) for worker in workers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    commands, held = nodes.commands(), shards_of(queue, nodes)

    assert queue.counts().stats["done"] == 240 * shards
    per_shard = [done / number for done, number in zip(commands, held, strict=True)]
    assert are_even(per_shard), per_shard
    if shards == 8:
        # A node with two of them has a quarter less to do than the mean of all nodes.
        assert sorted(held) == [2, 3, 3]
    if shards == 9:
        assert held == [3, 3, 3]
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
    assert [each.waiting for each in seen.shards] == [2] * 8
    assert {row.id for row in inspector.ls("inbox", 100)} == {
        handle.id for handle in handles
    }
    assert str(inspector.why(handles[5].id))
