"""A Cluster under load: a node dies and comes back, and a slot moves to another."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from redis import Redis
from redis.crc import key_slot

from workstealing import TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.drivers.own_server import HOST
from workstealing.errors import RedisError
from workstealing.testing import ClusterOfThree, Server, wait_until

_ENOUGH = 300


class Load:
    """A producer that repeats what was refused, and two workers."""

    def __init__(self, name: str, url: str) -> None:
        self.queue = queue = TaskQueue(name, url, lease=2.0)
        self.runs: Counter[int] = Counter()
        self.accepted = 0
        self.refused = 0
        self._is_over = Event()

        @queue.task(name="note")
        def note(number: int) -> int:
            self.runs[number] += 1
            return number

        self._note = note
        self._workers = [Worker(queue, pool=f"w{n}") for n in range(2)]
        self._threads = [Thread(target=worker.run) for worker in self._workers]
        self._threads.append(Thread(target=self._produce))

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            self._threads[-1].join(20)
            wait_until(self._is_done, 40, "all to be done")
            for worker in self._workers:
                worker.stop()
            for thread in self._threads:
                thread.join(20)

    def wait_for_more(self) -> None:
        enough = len(self.runs) + _ENOUGH
        wait_until(lambda: len(self.runs) > enough, 30, "more tasks to be done")

    def _produce(self) -> None:
        while not self._is_over.is_set():
            number = self.accepted
            try:
                self._note.options(id=f"note-{number}").submit(number)
            except RedisError:
                self.refused += 1
                time.sleep(0.02)
            else:
                self.accepted += 1

    def _is_done(self) -> bool:
        try:
            return self.queue.counts().unfinished == 0
        except RedisError:
            return False


@pytest.fixture
def cluster() -> Iterator[ClusterOfThree]:
    with ClusterOfThree(appendonly="yes", appendfsync="always") as cluster:
        yield cluster


def assert_all_done_once(load: Load) -> None:
    counts = load.queue.counts()
    assert set(load.runs) == set(range(load.accepted))
    assert counts.stats["done"] == counts.outcomes == load.accepted
    load.queue.close()


def ask(node: Server, *words: str | int) -> Any:
    with Redis.from_url(node.url, decode_responses=True) as client:
        return client.execute_command(*words)


def slot_of(load: Load) -> int:
    return int(key_slot(internals_of(load.queue).keys.task.encode()))


def owner_of(cluster: ClusterOfThree, slot: int) -> Server:
    borders = [16_384 * part // 3 for part in range(1, 4)]
    return next(
        node for node, end in zip(cluster.nodes, borders, strict=True) if slot < end
    )


@pytest.mark.timeout(120)
def test_when_the_node_of_a_queue_dies_and_comes_back_nothing_is_lost(
    cluster: ClusterOfThree, key_prefix: str
) -> None:
    load = Load(key_prefix, cluster.url)
    with load.running():
        load.wait_for_more()
        node = owner_of(cluster, slot_of(load))
        node.kill()
        wait_until(lambda: load.refused, 20, "a refusal")
        node.start()
        load.wait_for_more()

    assert_all_done_once(load)


@pytest.mark.timeout(120)
def test_when_the_slot_of_a_queue_moves_under_load_nothing_is_lost(
    cluster: ClusterOfThree, key_prefix: str
) -> None:
    load = Load(key_prefix, cluster.url)
    with load.running():
        load.wait_for_more()
        slot = slot_of(load)
        source = owner_of(cluster, slot)
        target = next(node for node in cluster.nodes if node is not source)
        move(slot, source, target, cluster)
        load.wait_for_more()

    assert ask(source, "CLUSTER", "COUNTKEYSINSLOT", slot) == 0
    assert ask(target, "CLUSTER", "COUNTKEYSINSLOT", slot) > 0
    assert_all_done_once(load)


def move(slot: int, source: Server, target: Server, cluster: ClusterOfThree) -> None:
    """Move a slot key by key, as `redis-cli --cluster reshard` does it."""
    ids = {node: str(ask(node, "CLUSTER", "MYID")) for node in (source, target)}
    ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    while keys := ask(source, "CLUSTER", "GETKEYSINSLOT", slot, 1):
        ask(source, "MIGRATE", HOST, target.port, "", 0, 5000, "KEYS", *keys)
    for node in (target, source, *cluster.nodes):
        ask(node, "CLUSTER", "SETSLOT", slot, "NODE", ids[target])
