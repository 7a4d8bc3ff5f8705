"""A dashboard on a real server, and a browser that has come in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from workstealing import AsyncTaskQueue
from workstealing.dashboard.access_guard import AccessGuard
from workstealing.dashboard.app import create_app
from workstealing.dashboard.dashboard_data import DashboardData
from workstealing.testing import Server

TOKEN = "a-token-that-is-long-enough"
READ_ONLY = "another-one-that-only-looks"
ORIGIN = "http://127.0.0.1:8765"


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def queue(async_redis_client: Redis, key_prefix: str) -> AsyncTaskQueue:
    return AsyncTaskQueue(key_prefix, async_redis_client)


@pytest.fixture
async def app(
    redis_server: Server, queue: AsyncTaskQueue, clock: Clock
) -> AsyncIterator[Any]:
    client = Redis.from_url(redis_server.url)
    data = DashboardData(client, [AsyncTaskQueue(queue.name, client)])
    yield create_app(
        data, AccessGuard(TOKEN, ["dash.example"], clock, read_only_token=READ_ONLY)
    )
    await data.close()


@pytest.fixture
async def stranger(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that shows nothing."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        yield client


@pytest.fixture
async def browser(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that came in, and sends what browsers send."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {"Origin": ORIGIN}
    async with httpx.AsyncClient(
        transport=transport, base_url=ORIGIN, headers=headers
    ) as client:
        answer = await client.post("/login", data={"token": TOKEN})
        assert answer.status_code == 303
        yield client
