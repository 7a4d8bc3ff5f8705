"""A Cluster under load: nodes die and come back, replicas are promoted, slots move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis
from redis.crc import key_slot
from redis.exceptions import RedisError

from workstealing.client.queue_internals import internals_of
from workstealing.drivers.own_server import HOST
from workstealing.tasks.outcome import State
from workstealing.testing import ClusterOfThree, Server, wait_until

Make = Callable[..., Any]

# Until the others have given up a node that is silent for two seconds, and voted.
_PROMOTION = 30


@pytest.fixture
def cluster() -> Iterator[ClusterOfThree]:
    with ClusterOfThree(appendonly="yes", appendfsync="always") as cluster:
        yield cluster


@contextmanager
def replica_of(node: Server, cluster: ClusterOfThree) -> Iterator[Server]:
    """Add a replica of a node; the two other primaries are enough to promote it."""
    options = {
        "cluster_enabled": "yes",
        "cluster_node_timeout": 2000,
        "repl_diskless_sync_delay": 0,
    }
    with Server(tcp=True, **options) as replica:
        ask(replica, "CLUSTER", "MEET", HOST, node.port)
        nodes = (replica, *cluster.nodes)
        wait_until(
            lambda: all("nodes:4" in ask(one, "CLUSTER", "INFO") for one in nodes),
            _PROMOTION,
            "all to know it",
        )
        ask(replica, "CLUSTER", "REPLICATE", str(ask(node, "CLUSTER", "MYID")))
        wait_until(
            lambda: ask(replica, "ROLE")[3:4] == ["connected"],
            _PROMOTION,
            "it to follow",
        )
        yield replica


def role(node: Server) -> str:
    try:
        return str(ask(node, "ROLE")[0])
    except RedisError:
        return "away"


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


@pytest.mark.timeout(240)
def test_when_the_replica_of_a_dead_node_is_promoted_all_that_it_has_is_done(
    cluster: ClusterOfThree, make_load: Make
) -> None:
    """Replication does not wait, so what only the dead node had is lost, and no more.

    Whoever waits for a task that is lost hears that there is none.
    """
    load = make_load(cluster.url)
    node = owner_of(cluster, slot_of(load))
    with replica_of(node, cluster) as replica:
        with load.running():
            load.wait_for_more()
            node.kill()
            wait_until(lambda: role(replica) == "master", _PROMOTION, "the promotion")
            load.wait_for_more()
            safe_from = load.accepted
            node.start()
            wait_until(lambda: role(node) == "slave", _PROMOTION, "it to follow")
            load.wait_for_more()

        counts = load.queue.counts()
        names = [f"note-{number}" for number in range(load.accepted)]
        lost = {
            number
            for number, name in enumerate(names)
            if load.queue.handle(name).state().state is State.UNKNOWN
        }
        assert counts.stats["done"] == counts.outcomes == load.accepted - len(lost)
        assert counts.unfinished == counts.dead == 0
        assert load.missing <= lost
        assert not {number for number in lost if number >= safe_from}


@pytest.mark.timeout(240)
def test_when_a_replica_takes_the_place_of_its_node_as_planned_nothing_is_lost(
    cluster: ClusterOfThree, make_load: Make
) -> None:
    load = make_load(cluster.url)
    node = owner_of(cluster, slot_of(load))
    with replica_of(node, cluster) as replica:
        with load.running():
            load.wait_for_more()
            ask(replica, "CLUSTER", "FAILOVER")
            wait_until(lambda: role(replica) == "master", _PROMOTION, "the promotion")
            wait_until(lambda: role(node) == "slave", _PROMOTION, "it to follow")
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
