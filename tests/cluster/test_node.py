"""A node whose state is in a Redis Cluster, with its keys checked by the server."""

from __future__ import annotations

import json
from typing import Any

from workstealing.drivers.sync_driver import Driver
from workstealing.node.cluster import Cluster
from workstealing.node.node import Node
from workstealing.node.shared_state import SharedState


def test_a_node_lives_on_a_cluster(any_driver: Driver, key_prefix: str) -> None:
    node = Node(Cluster(SharedState(any_driver, key_prefix)))

    def ask(kind: str, **more: Any) -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(
            node.answer(json.dumps({"type": kind, **more}).encode())
        )
        return reply

    ask("submit_job", job_id="early")
    ask("init", workers=["w1", "w2", "w3"], jobs_to_distribute=6)
    stolen = ask("steal_job", thief_worker="w3", busy_workers=["w1"])
    ask("complete_job", worker="w3", job_id=stolen["job_id"])
    assert ask("remove_worker", worker="w1")["jobs_moved"] == 2
    assert ask("take_job", worker="w2")["type"] == "take_job_ok"
    assert ask("remove_worker", worker="w2")["jobs_moved"] > 0
    assert ask("run_simulation", duration_ms=100_000)["jobs_completed"] == 6
    assert ask("check_cluster_state")["all_idle"]
