"""The name of a server, from clients that never connect."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing.drivers.address import target_of
from workstealing.drivers.connect import connect, connect_async


@pytest.mark.parametrize("build", [connect, connect_async])
@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("redis://ann:sesame@example.org:6380/3", "example.org:6380/3"),
        ("rediss://example.org", "example.org:6379/0"),
        ("unix:///run/redis.sock?db=2", "unix:/run/redis.sock/2"),
        ("redis+sentinel://:sesame@a,b/main/1", "sentinel:main/1"),
    ],
)
def test_a_target_tells_where_but_no_password(build: Any, url: str, name: str) -> None:
    assert target_of(build(url)) == name


def test_the_target_of_an_asyncio_cluster_is_one_of_its_nodes() -> None:
    client = connect_async("redis+cluster://:sesame@10.0.0.2:7001,10.0.0.1:7000")

    assert target_of(client) == "cluster:10.0.0.1:7000"


def test_a_cluster_that_is_away_has_a_target() -> None:
    client = connect("redis+cluster://:sesame@127.0.0.1:2,127.0.0.1:1")

    assert target_of(client) == "cluster:127.0.0.1:1"


def test_clients_of_users_have_targets_too() -> None:
    assert target_of(Redis()) == "localhost:6379/0"
    assert target_of(AsyncRedis(host="h", port=1, db=2)) == "h:1/2"
    assert target_of(Redis(unix_socket_path="/s")) == "unix:/s/0"
