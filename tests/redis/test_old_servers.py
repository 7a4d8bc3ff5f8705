"""A server that is too old is sent nothing, by however many at once."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest

from tests.redis.scripted_server import ScriptedServer, info
from workstealing.drivers.connect import async_driver, driver
from workstealing.errors import ServerTooOld
from workstealing.queue.steps import RedisCommand

INCREMENT = RedisCommand(("INCR", "key"), int)


@pytest.mark.parametrize("kind", ["sync", "asyncio"])
async def test_who_comes_while_another_looks_writes_nothing_either(kind: str) -> None:
    first, second = Event(), Event()

    def tell() -> bytes:
        """Say how old it is, but not before somebody else has come."""
        (second if first.is_set() else first).set()
        second.wait(20)
        return info("5.0.14")

    def answer(*_: Any) -> bytes:
        second.set()
        return b":1\r\n"

    server = ScriptedServer(answer, tell)
    with server.listening():
        drives: Any = (driver if kind == "sync" else async_driver)(server.url, "tasks")

        async def called() -> Any:
            if kind == "sync":
                return await asyncio.to_thread(drives.call, INCREMENT)
            return await drives.call(INCREMENT)

        early = asyncio.create_task(called())
        await asyncio.to_thread(first.wait, 20)
        late = asyncio.create_task(called())
        answers = await asyncio.gather(early, late, return_exceptions=True)
        if kind == "asyncio":
            await drives.client.aclose()

    assert [type(one) for one in answers] == [ServerTooOld] * 2
    assert server.asked == []
