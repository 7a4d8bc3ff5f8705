"""What replicas have of a call, where the server does not say so with a number.

The call has been executed by then: it is not sent again, and its ids are told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.redis.scripted_server import ScriptedServer
from workstealing import TaskQueue
from workstealing.drivers.connect import async_driver, dedicated, driver
from workstealing.errors import NotReplicated, RedisError
from workstealing.queue.scripts import assemble
from workstealing.queue.steps import Call, RedisCommand

NO_NUMBER = [
    "UNBLOCKED force unblock from blocking operation, instance state changed",
    "ERR WAIT cannot be used with replica instances.",
    "NOPERM this user has no permissions to run the 'wait' command",
]
SCRIPT = assemble("fenced", lambda _: "return 7")


def fenced(replicas: int = 1, **more: Any) -> Call[Any]:
    return Call(SCRIPT, ("key",), (), lambda reply: reply, replicas=replicas, **more)


async def call_sync(url: str, call: Call[Any]) -> Any:
    return await asyncio.to_thread(driver(url, "tasks").call, call)


async def call_asyncio(url: str, call: Call[Any]) -> Any:
    drives = async_driver(url, "tasks")
    try:
        return await drives.call(call)
    finally:
        await drives.client.aclose()


async def call_dedicated(url: str, call: Call[Any]) -> Any:
    drives = dedicated(driver(url, "tasks"))
    try:
        return await asyncio.to_thread(drives.call, call)
    finally:
        drives.close()


async def call_ahead(url: str, call: Call[Any]) -> Any:
    drives = dedicated(driver(url, "tasks"))
    drives.call(RedisCommand(("PING",), str))
    drives.send(call)
    try:
        return await asyncio.to_thread(drives.call, call)
    finally:
        drives.close()


FACES = [call_sync, call_asyncio, call_dedicated, call_ahead]


def waits_with(reply: str) -> Callable[[bytes, int], bytes]:
    replies = {b"EVALSHA": ":7", b"PUBLISH": ":0", b"PING": "+PONG", b"WAIT": reply}
    return lambda name, _: f"{replies[name]}\r\n".encode()


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("word", NO_NUMBER)
async def test_a_call_that_no_replica_confirmed_is_not_sent_again(
    face: Any, word: str
) -> None:
    server = ScriptedServer(waits_with(f"-{word}"))
    with server.listening(), pytest.raises(NotReplicated) as caught:
        await face(server.url, fenced())

    assert (caught.value.confirmed, caught.value.answer) == (0, 7)
    assert word.split(" ", 1)[1] in str(caught.value.__cause__)
    assert server.asked.count(b"EVALSHA") == 1
    assert server.asked.count(b"WAIT") == 1


@pytest.mark.parametrize("face", FACES)
async def test_a_call_that_a_replica_confirmed_has_its_answer(face: Any) -> None:
    server = ScriptedServer(waits_with(":1"))
    with server.listening():
        assert await face(server.url, fenced()) == 7


def test_a_task_is_named_where_a_server_became_a_replica() -> None:
    def answer(name: bytes, _: int) -> bytes:
        replies = {b"EVALSHA": b"*1\r\n$2\r\nok\r\n", b"PUBLISH": b":0\r\n"}
        return replies.get(name, f"-{NO_NUMBER[1]}\r\n".encode())

    server = ScriptedServer(answer)
    with server.listening(), TaskQueue("fenced", server.url, replicas=1) as queue:

        @queue.task(name="add")
        def add(a: int, b: int) -> int:
            return a + b

        with pytest.raises(NotReplicated) as caught:
            add.options(id="mine").submit(1, 2)

    assert caught.value.ids == ("mine",)
    assert server.asked.count(b"EVALSHA") == 1


@pytest.mark.parametrize("reply", [":7", "-READONLY You can't write."])
async def test_a_script_behind_a_wait_that_was_ended_is_sent_again_only_if_refused(
    reply: str,
) -> None:
    def answer(name: bytes, connection: int) -> bytes:
        if connection > 1:
            return b"$-1\r\n" if name == b"BLPOP" else b":7\r\n"
        replies = {b"BLPOP": f"-{NO_NUMBER[0]}", b"EVALSHA": reply}
        return f"{replies[name]}\r\n".encode()

    server = ScriptedServer(answer)
    with server.listening():
        after = RedisCommand(("BLPOP", "bell", 1), str)
        assert await call_dedicated(server.url, fenced(0, after=after)) == 7

    assert server.asked.count(b"EVALSHA") == (1 if reply == ":7" else 2)


async def test_a_wait_that_is_forbidden_is_told() -> None:
    def answer(name: bytes, _: int) -> bytes:
        return b":7\r\n" if name == b"EVALSHA" else b"-NOPERM no blpop\r\n"

    server = ScriptedServer(answer)
    after = RedisCommand(("BLPOP", "bell", 1), str)
    with server.listening(), pytest.raises(RedisError, match="no blpop"):
        await call_dedicated(server.url, fenced(0, after=after))
