"""What a page costs the server does not depend on how many tasks there are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from redis import Redis

from workstealing import AsyncTaskQueue, TaskQueue, connect_async
from workstealing.client.queue_internals import internals_of
from workstealing.dashboard import AccessGuard, DashboardData, create_app
from workstealing.queue.worker_calls import join
from workstealing.testing import Server

TOKEN = "a-token-that-is-long-enough"
WORKERS = 200
MANY = 100_000


class Counting:
    """Counts what a client sends: each command, and each script once."""

    def __init__(self, client: Any) -> None:
        self.sent = 0
        send = client.execute_command

        async def execute_command(*parts: Any, **options: Any) -> Any:
            self.sent += 1
            return await send(*parts, **options)

        client.execute_command = execute_command


@pytest.fixture(scope="module")
def cost_server() -> Any:
    with Server() as server:
        yield server


def _fill(server: Server, name: str, tasks: int) -> None:
    client = Redis.from_url(server.url)
    queue = TaskQueue(name, client)

    @queue.task(name="work")
    def work(number: int) -> None: ...

    parts = internals_of(queue)
    described = {"abilities": ["work@1"], "host": "h", "pid": 1}
    for n in range(WORKERS):
        call = join(parts.keys, parts.settings, f"w{n}.0", "1", described)
        parts.driver.call(call)
    work.options(id="first").submit(0)
    work.submit_many([(n,) for n in range(tasks)])
    delayed = {f"later-{n}": 4_000_000_000_000 + n for n in range(tasks // 10)}
    envelope = json.dumps({"id": "x", "task": "work"})
    client.hset(parts.keys.task, mapping=dict.fromkeys(delayed, envelope))
    client.zadd(parts.keys.later, delayed)
    client.close()


@pytest.fixture
async def counted(cost_server: Server) -> AsyncIterator[Any]:
    client = connect_async(cost_server.url, profile="tasks")
    counting = Counting(client)
    names = ("few", "many")
    data = DashboardData(client, [AsyncTaskQueue(name, client) for name in names])
    app = create_app(data, AccessGuard(TOKEN))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://127.0.0.1",
        headers={"Authorization": f"Bearer {TOKEN}"},
    ) as browser:
        # The first page loads scripts and looks for queues.
        await browser.get("/")
        yield browser, counting
    await data.close()


@pytest.mark.timeout(120)
async def test_no_page_sends_more_than_a_hundred_commands(
    cost_server: Server, counted: Any
) -> None:
    _fill(cost_server, "few", 10_000)
    _fill(cost_server, "many", MANY)
    browser, counting = counted
    states = ("waiting", "assigned", "running", "delayed", "parked", "paused")
    paths = [
        ("/queue", {}),
        ("/queue", {"span": "480"}),
        ("/task", {"id": "first"}),
        ("/schedules", {}),
        ("/worker", {"name": "w7.0"}),
        *(("/tasks", {"state": one}) for one in (*states, "steps", "done", "dead")),
        ("/tasks", {"state": "waiting", "prefix": "nobody"}),
    ]
    everywhere = [("/", {}), ("/workers", {}), ("/side-work", {}), ("/metrics", {})]
    everywhere.append(("/search", {"id": "first"}))
    costs: dict[str, list[int]] = {}
    for path, query in (*paths, *everywhere):
        for name in ("few", "many"):
            where = {"queue": name, "run": "default", **query}
            if (path, query) in everywhere:
                where = dict(query)
            await browser.get(f"{path}?{urlencode(where)}")
            before = counting.sent
            answer = await browser.get(f"{path}?{urlencode(where)}")
            assert answer.status_code in (200, 303), answer.text
            costs.setdefault(f"{path} {query}", []).append(counting.sent - before)

    assert {page: cost for page, cost in costs.items() if max(cost) > 100} == {}
    filtered = "/tasks {'state': 'waiting', 'prefix': 'nobody'}"
    # A filter that nobody matches looks at a thousand, if there are as many.
    grown = {
        page: cost
        for page, cost in costs.items()
        if page != filtered and cost[1] > cost[0]
    }
    assert grown == {}
