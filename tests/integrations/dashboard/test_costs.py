"""What a page costs the server does not depend on how many tasks there are.

Commands are counted by the server, those that scripts run too. With a million tasks,
and with how long each page takes:

    WORKSTEALING_TASKS=1000000 pytest -s tests/integrations/dashboard/test_costs.py
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from redis import Redis

from workstealing import AsyncTaskQueue, TaskQueue, connect_async
from workstealing.client.queue_internals import internals_of
from workstealing.dashboard import AccessGuard, DashboardData, create_app
from workstealing.queue.minute_calls import NUMBERS
from workstealing.queue.worker_calls import exchange, join, record_minute
from workstealing.tasks.outcome import ErrorReport, TaskOutcome
from workstealing.testing import Server

TOKEN = "a-token-that-is-long-enough"
WORKERS = 200
FEW = 10_000
MANY = int(os.environ.get("WORKSTEALING_TASKS", "40000"))
# The last look is counted, when nothing is new any more; times need a few of them.
LOOKS = 5 if MANY > 100_000 else 2
_STATES = ("waiting", "assigned", "running", "delayed", "parked", "paused", "steps")
PAGES_OF_A_QUEUE: list[tuple[str, dict[str, str]]] = [
    *(("/queue", {"span": span}) for span in ("10", "60", "480")),
    *(("/task", {"id": task_id}) for task_id in ("first", "done-1", "dead-1")),
    ("/schedules", {}),
    ("/workers", {}),
    ("/workers", {"first": "w150.0"}),
    ("/worker", {"name": "w7.0"}),
    *(("/tasks", {"state": one}) for one in (*_STATES, "done", "dead")),
    ("/tasks", {"state": "done", "after": '["ended", 4000000000000, "done-900"]'}),
    ("/tasks", {"state": "done", "after": '["ended", 1, "nobody"]'}),
    *(("/tasks", {"state": one, "task": "nobody"}) for one in (*_STATES, "done")),
    ("/tasks", {"state": "dead", "error": "nobody"}),
]
PAGES_OF_ALL = ("/", "/workers", "/side-work", "/acts", "/metrics", "/search?id=first")


@pytest.fixture(scope="module")
def cost_server() -> Any:
    with Server() as server:
        yield server


def _fill(server: Server, name: str, tasks: int) -> None:
    """Let each worker hold some of many tasks, and more be done, dead and delayed."""
    client = Redis.from_url(server.url)
    queue = TaskQueue(name, client, lease=3600)

    @queue.task(name="work")
    def work(number: int) -> None: ...

    @queue.task(name="paused")
    def paused(number: int) -> None: ...

    parts = internals_of(queue)
    keys = parts.keys
    paused.submit_many([(n,) for n in range(50)])
    queue.pause("paused")
    work.options(id="first").submit(0)
    for start in range(0, tasks, 50_000):
        work.submit_many([(n,) for n in range(start, min(tasks, start + 50_000))])
    described = {"abilities": ["work@1", "paused@1"], "host": "h", "pid": 1}
    for n in range(WORKERS):
        worker = f"w{n}.0"
        parts.driver.call(join(keys, parts.settings, worker, "1", described))
        call = exchange(keys, parts.settings, worker, "1", want=1, keep=20)
        parts.driver.call(call)
    # Three are dead, so there is an alarm on each page.
    client.zadd(keys.workers, dict.fromkeys(("w1.0", "w2.0", "w3.0"), 1))
    some = tasks // 10
    envelope = json.dumps({"id": "x", "task": "work"})
    delayed = {f"later-{n}": 4_000_000_000_000 + n for n in range(some)}
    client.hset(keys.task, mapping=dict.fromkeys(delayed, envelope))
    client.zadd(keys.later, delayed)
    raised = 'Traceback:\n  File "shop.py", line 7, in f\nValueError: no'
    error = ErrorReport("ValueError", "no", raised)
    failed = TaskOutcome(state="failed", error=error, worker="w0.0", ended=1)
    dead = {f"dead-{n}": 1_700_000_000_000 + n for n in range(some)}
    client.hset(keys.task, mapping=dict.fromkeys(dead, envelope))
    client.hset(keys.done, mapping=dict.fromkeys(dead, failed.encode()))
    client.zadd(keys.dead, dead)
    done = TaskOutcome(task="work@1", worker="w0.0", ended=1).encode()
    # More than are looked at for when one expires.
    ended = max(some, 12_000)
    client.hset(keys.done, mapping={f"done-{n}": done for n in range(ended)})
    ends = [f"done-{n} 4000000000000" for n in range(ended)]
    for start in range(0, ended, 1000):
        client.rpush(keys.outcome_times, *ends[start : start + 1000])
    this = int(time.time() // 60)
    counts = {f"task-{n}@1": [1] * NUMBERS for n in range(20)}
    for ago in range(480):
        parts.driver.call(record_minute(keys, this - ago, counts))
    for n in range(200):
        client.xadd(keys.thefts, {"victim": "w1.0", "thief": f"w{n}.0", "tasks": 2})
    client.close()


@pytest.fixture
async def browser(cost_server: Server) -> AsyncIterator[httpx.AsyncClient]:
    client = connect_async(cost_server.url, profile="tasks")
    names = ("few", "many")
    data = DashboardData(client, [AsyncTaskQueue(name, client) for name in names])
    app = create_app(data, AccessGuard(TOKEN))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://127.0.0.1",
        headers={"Authorization": f"Bearer {TOKEN}"},
    ) as browser:
        yield browser
    await data.close()


@pytest.mark.timeout(600)
async def test_no_page_lets_the_server_run_more_than_a_hundred_commands(
    cost_server: Server, browser: httpx.AsyncClient
) -> None:
    _fill(cost_server, "few", FEW)
    _fill(cost_server, "many", MANY)
    client = Redis.from_url(cost_server.url)

    async def look(path: str) -> int:
        """Return how many commands the server runs for a page that was seen."""
        took = []
        for _ in range(LOOKS):
            client.config_resetstat()
            began = time.perf_counter()
            answer = await browser.get(path)
            took.append((time.perf_counter() - began) * 1000)
            assert answer.status_code in (200, 303), answer.text
        stats = client.info("commandstats")
        commands = sum(stats[one]["calls"] for one in stats if "config" not in one)
        if MANY > 100_000:
            print(f"| `{path}` | {commands} | {statistics.median(took):.0f} |")  # noqa: T201
        return int(commands)

    costs: dict[str, list[int]] = {}
    for path, query in PAGES_OF_A_QUEUE:
        for name in ("few", "many"):
            where = urlencode({"queue": name, "run": "default", **query})
            costs.setdefault(f"{path} {query}", []).append(
                await look(f"{path}?{where}")
            )
    for path in PAGES_OF_ALL:
        costs[path] = [await look(path)]

    assert {page: cost for page, cost in costs.items() if max(cost) > 100} == {}
    # How many shards a queue has is asked again every few seconds.
    assert {page: cost for page, cost in costs.items() if cost[-1] > cost[0] + 1} == {}
