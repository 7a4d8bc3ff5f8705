"""What the dashboard shows while a node of a Cluster is away."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from workstealing import TaskQueue, connect_async
from workstealing.client.queue_internals import internals_of
from workstealing.dashboard.access_guard import AccessGuard
from workstealing.dashboard.app import create_app
from workstealing.dashboard.dashboard_data import DashboardData, named_queue
from workstealing.inspecting import AsyncInspector, QueuesFound
from workstealing.testing import ClusterOfThree, ManualClock, Server

from .conftest import ORIGIN, TOKEN


@dataclass(frozen=True)
class _Halved:
    """A Cluster with a node that was killed: a queue there, and one on another node."""

    url: str
    here: str
    away: str
    sharded: str
    node: str


@pytest.fixture(scope="module")
def halved() -> Iterator[_Halved]:
    with ClusterOfThree(cluster_require_full_coverage="no") as cluster:
        url = cluster.url
        # The first shard tells how many there are.
        here = _port_of("many", url)
        node = next(one for one in cluster.nodes if one.port != here)
        names = [f"letters-{n}" for n in range(100)]
        kept = next(name for name in names if _port_of(name, url) == here)
        lost = next(name for name in names if _port_of(name, url) == node.port)
        for name, shards in ((kept, 1), (lost, 1), ("many", 8)):
            with TaskQueue(name, url, shards=shards) as queue:
                send = queue.task(name="send")(lambda: None)
                send.options(id=f"in-{name}").submit()
                send.submit_many([()] * 80)
        node.kill()
        yield _Halved(url, kept, lost, "many", f"127.0.0.1:{node.port}")


def _port_of(name: str, url: str) -> Any:
    with TaskQueue(name, url) as queue:
        client: Any = internals_of(queue).driver.client
        return client.get_node_from_key(internals_of(queue).keys.control).port


@pytest.fixture
async def reader(halved: _Halved) -> AsyncIterator[httpx.AsyncClient]:
    client = connect_async(halved.url, profile="tasks")
    queues = [named_queue(name, client) for name in (halved.away, halved.here)]
    data = DashboardData(client, queues)
    transport = httpx.ASGITransport(create_app(data, AccessGuard(TOKEN)))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(
        transport=transport, base_url=ORIGIN, headers=headers
    ) as browser:
        yield browser
    await data.close()


def _words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


async def test_the_first_page_shows_the_queues_of_the_other_nodes(
    reader: httpx.AsyncClient, halved: _Halved
) -> None:
    answer = await reader.get("/")

    assert answer.status_code == 200
    assert f"{halved.here}/default 81 0 0" in _words(answer.text)
    assert f"{halved.away}/default cannot be read" in _words(answer.text)
    assert f"No answer from {halved.node}:" in _words(answer.text)
    told = (await reader.get("/api/stat")).json()
    (unreadable,) = told["unreadable"]
    assert unreadable["queue"] == halved.away
    assert "did not answer" in unreadable["problem"]


async def test_the_page_of_all_workers_names_the_queue_that_cannot_be_read(
    reader: httpx.AsyncClient, halved: _Halved
) -> None:
    words = _words((await reader.get("/workers")).text)

    assert f"{halved.away}/default Its workers cannot be read:" in words
    assert "No worker is alive" not in words


async def test_metrics_leave_out_what_cannot_be_read_as_a_whole(
    reader: httpx.AsyncClient, halved: _Halved
) -> None:
    answer = await reader.get("/metrics")

    assert answer.status_code == 200
    assert f'backlog{{queue="{halved.here}",run="default"}} 81' in answer.text
    assert f'queue="{halved.away}"' not in answer.text
    assert f'queue="{halved.sharded}"' not in answer.text


async def test_metrics_of_queues_do_not_depend_on_the_node_of_the_ledger(
    reader: httpx.AsyncClient, halved: _Halved, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = internals_of(TaskQueue(halved.away, halved.url)).keys.control
    monkeypatch.setattr("workstealing.jobs.ledger_entries._key", lambda _: key)
    assert (await reader.get("/side-work")).status_code == 503

    answer = await reader.get("/metrics")

    assert answer.status_code == 200
    assert f'queue="{halved.here}"' in answer.text


async def test_the_page_of_a_queue_shows_its_other_shards(
    reader: httpx.AsyncClient, halved: _Halved
) -> None:
    where = {"queue": halved.sharded, "run": "default"}

    answer = await reader.get("/queue", params=where)

    assert answer.status_code == 200
    assert re.search(r"\d of 8 shards cannot be reached", answer.text)


async def test_a_task_is_found_in_a_queue_that_can_be_read(
    reader: httpx.AsyncClient, halved: _Halved
) -> None:
    found = await reader.get("/search", params={"id": f"in-{halved.here}"})
    lost = await reader.get("/search", params={"id": f"in-{halved.away}"})

    assert found.status_code == 303
    assert f"queue={halved.here}&" in found.headers["location"]
    assert lost.status_code == 503, "nobody knows that there is no such task"


async def test_a_queue_stays_listed_while_its_node_is_away(
    redis_server: Server, key_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (f"{key_prefix}-a", "default"), (f"{key_prefix}-b", "default")
    looks = [
        QueuesFound((first, second), is_all=True),
        QueuesFound((second,), is_all=False, unreachable=("node:1",)),
        QueuesFound((second,), is_all=True),
    ]

    async def queues(_: AsyncInspector) -> QueuesFound:
        return looks.pop(0)

    monkeypatch.setattr(AsyncInspector, "queues", queues)
    clock = ManualClock()
    data = DashboardData(Redis.from_url(redis_server.url), clock=clock)
    shown = []
    for _ in range(3):
        seen = await data.overview()
        shown.append([one.stat.queue for one in seen.snapshots])
        clock.advance(15)
    await data.close()

    assert shown == [[first[0], second[0]], [first[0], second[0]], [second[0]]]
