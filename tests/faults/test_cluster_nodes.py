"""A Cluster under load: a node dies and comes back, and a slot moves to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from redis.crc import key_slot

from workstealing.client.queue_internals import internals_of
from workstealing.drivers.own_server import HOST
from workstealing.testing import ClusterOfThree, Server, wait_until

Make = Callable[..., Any]


@pytest.fixture
def cluster() -> Iterator[ClusterOfThree]:
    with ClusterOfThree(appendonly="yes", appendfsync="always") as cluster:
        yield cluster


def ask(node: Server, *words: str | int) -> Any:
    with Redis.from_url(node.url, decode_responses=True) as client:
        return client.execute_command(*words)


def slot_of(load: Any) -> int:
    return int(key_slot(internals_of(load.queue).keys.task.encode()))


def owner_of(cluster: ClusterOfThree, slot: int) -> Server:
    borders = [16_384 * part // 3 for part in range(1, 4)]
    return next(
        node for node, end in zip(cluster.nodes, borders, strict=True) if slot < end
    )


@pytest.mark.timeout(120)
def test_when_the_node_of_a_queue_dies_and_comes_back_nothing_is_lost(
    cluster: ClusterOfThree, make_load: Make
) -> None:
    load = make_load(cluster.url)
    with load.running():
        load.wait_for_more()
        node = owner_of(cluster, slot_of(load))
        node.kill()
        wait_until(lambda: load.refused, 20, "a refusal")
        node.start()
        load.wait_for_more()

    load.assert_all_done_once()


@pytest.mark.timeout(120)
def test_when_the_slot_of_a_queue_moves_under_load_nothing_is_lost(
    cluster: ClusterOfThree, make_load: Make
) -> None:
    load = make_load(cluster.url)
    with load.running():
        load.wait_for_more()
        slot = slot_of(load)
        source = owner_of(cluster, slot)
        target = next(node for node in cluster.nodes if node is not source)
        move(slot, source, target, cluster)
        load.wait_for_more()

    assert ask(source, "CLUSTER", "COUNTKEYSINSLOT", slot) == 0
    assert ask(target, "CLUSTER", "COUNTKEYSINSLOT", slot) > 0
    load.assert_all_done_once()


def move(slot: int, source: Server, target: Server, cluster: ClusterOfThree) -> None:
    """Move a slot key by key, as `redis-cli --cluster reshard` does it."""
    ids = {node: str(ask(node, "CLUSTER", "MYID")) for node in (source, target)}
    ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    while keys := ask(source, "CLUSTER", "GETKEYSINSLOT", slot, 1):
        ask(source, "MIGRATE", HOST, target.port, "", 0, 5000, "KEYS", *keys)
    for node in (target, source, *cluster.nodes):
        ask(node, "CLUSTER", "SETSLOT", slot, "NODE", ids[target])
