"""A server that is not the one to ask says so; a new connection finds the right one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.redis.scripted_server import ScriptedServer
from workstealing.drivers.connect import async_driver, dedicated, driver
from workstealing.errors import RedisUnavailable
from workstealing.queue.scripts import assemble
from workstealing.queue.steps import Call, RedisCommand

WORDS = [
    "READONLY You can't write against a read only replica.",
    "LOADING Redis is loading the dataset in memory",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "CLUSTERDOWN The cluster is down",
    "TRYAGAIN Multiple keys request during rehashing of slot",
]
STEPS = {
    "command": RedisCommand(("INCR", "key"), int),
    "script": Call(assemble("word", lambda _: "return 7"), ("key",), (), int),
}


@pytest.mark.parametrize("kind", ["sync", "asyncio", "dedicated"])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.split()[0])
async def test_a_step_that_was_refused_goes_over_a_new_connection_once(
    word: str, step: Any, kind: str
) -> None:
    refused = f"-{word}\r\n".encode()
    server = ScriptedServer(lambda _, number: refused if number == 1 else b":7\r\n")
    with server.listening():
        answer = await called(kind, server.url, step)

    assert answer == 7
    assert server.connections == 2
    assert len(server.asked) == 2


@pytest.mark.parametrize("kind", ["sync", "asyncio", "dedicated"])
async def test_a_step_that_is_refused_twice_is_not_sent_a_third_time(kind: str) -> None:
    server = ScriptedServer(lambda *_: b"-CLUSTERDOWN The cluster is down\r\n")
    with server.listening(), pytest.raises(RedisUnavailable, match="cluster is down"):
        await called(kind, server.url, STEPS["script"])

    assert len(server.asked) == 2


async def called(kind: str, url: str, step: Any) -> Any:
    if kind == "asyncio":
        awaited = async_driver(url, "tasks")
        try:
            return await awaited.call(step)
        finally:
            await awaited.client.aclose()
    shared = driver(url, "tasks")
    drives = dedicated(shared) if kind == "dedicated" else shared
    try:
        return await asyncio.to_thread(drives.call, step)
    finally:
        drives.close()
        shared.client.close()
