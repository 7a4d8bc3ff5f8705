"""What tests on a Cluster share: a driver that makes the server check keys."""

from __future__ import annotations

from typing import Any

import pytest
from redis.cluster import RedisCluster
from redis.exceptions import ResponseError

from workstealing.drivers.sync_driver import Driver
from workstealing.queue.steps import Call, Step


class StrictDriver(Driver):
    """Runs scripts with a first line that makes the server check their keys.

    It refuses keys of two slots, and those that were not declared.
    """

    def __init__(self, client: RedisCluster) -> None:
        super().__init__(client)
        self.performed: set[str] = set()

    def _send(self, step: Step) -> Any:
        if not isinstance(step, Call):
            return super()._send(step)
        self.performed.add(step.script.name)
        return self.client.execute_command(
            "EVAL",
            f"#!lua\n{step.script.text}",
            len(step.keys),
            *step.keys,
            *step.arguments,
        )


@pytest.fixture
def strict(cluster_client: RedisCluster) -> StrictDriver:
    try:
        cluster_client.eval("#!lua\nreturn 1", 1, "key")
    except ResponseError:
        pytest.skip("the server does not check the keys of scripts: Redis 7 does")
    return StrictDriver(cluster_client)


@pytest.fixture(params=["as it is", "strictly"])
def any_driver(request: pytest.FixtureRequest, cluster_client: RedisCluster) -> Driver:
    """A driver, and one that makes the server check the keys of scripts."""
    if request.param == "strictly":
        strict: StrictDriver = request.getfixturevalue("strict")
        return strict
    return Driver(cluster_client)
