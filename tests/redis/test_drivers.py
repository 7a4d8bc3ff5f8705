"""Both drivers on a real server: answers, scripts, flows, and errors by name."""

from __future__ import annotations

import asyncio
import logging
import socketserver
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, ClassVar

import pytest
from redis import Redis, exceptions

from workstealing.drivers.connect import async_driver, connect, connect_async, driver
from workstealing.errors import (
    ConfigurationError,
    RedisError,
    RedisOutOfMemory,
    RedisReadOnly,
    RedisUnavailable,
    ServerTooOld,
    WrongType,
)
from workstealing.queue.scripts import Script, assemble
from workstealing.queue.steps import Call, Flow, Invoke, Nodes, RedisCommand, ask
from workstealing.testing import Server, wait_until

# Busy for longer than the client waits, but not for much longer: a client that tried
# again would get through, and be seen.
SLOW_INCREMENT = """
redis.call('INCR', KEYS[1])
-- TIME stands still in a script, and servers before 7.0 have no clock.
local clock = (rawget(_G, 'os') or {}).clock
local start = clock and clock()
while clock and clock() - start < 0.3 do end
for _ = 1, clock and 0 or 1e8 do end
"""


class Face:
    """One way to call both drivers."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._opened: list[Any] = []

    def open(self, url: str, **options: Any) -> Any:
        options.setdefault("profile", "tasks")
        build, drive = (
            (connect, driver) if self.kind == "sync" else (connect_async, async_driver)
        )
        client: Any = build(url, **options)
        self._opened.append(client)
        return _Opened(drive(client), self.kind)

    async def close(self) -> None:
        for client in self._opened:
            if self.kind == "sync":
                client.close()
            else:
                await client.aclose()


class _Opened:
    def __init__(self, drives: Any, kind: str) -> None:
        self.drives = drives
        self._sync = kind == "sync"

    async def call(self, step: Any) -> Any:
        answer = self.drives.call(step)
        return answer if self._sync else await answer

    async def run(self, flow: Any) -> Any:
        answer = self.drives.run(flow)
        return answer if self._sync else await answer


@pytest.fixture(params=["sync", "asyncio"])
async def face(request: pytest.FixtureRequest) -> AsyncIterator[Face]:
    face = Face(request.param)
    yield face
    await face.close()


@pytest.fixture
def opened(face: Face, redis_server: Server) -> Any:
    return face.open(redis_server.url)


def command(
    *parts: Any, parse: Callable[[Any], Any] = lambda reply: reply
) -> RedisCommand:
    return RedisCommand(parts, parse)


def script(text: str) -> Script:
    return assemble("test", lambda _: text)


def call(text: str, *keys: str) -> Call[Any]:
    return Call(script(text), keys, (), lambda reply: reply)


async def test_a_command_is_answered(opened: Any, key_prefix: str) -> None:
    await opened.call(command("SET", key_prefix, "1"))

    assert await opened.call(command("GET", key_prefix, parse=int)) == 1


async def test_a_script_that_the_server_forgot_is_sent_again(
    opened: Any, key_prefix: str
) -> None:
    increment = call("return redis.call('INCR', KEYS[1])", key_prefix)

    first = await opened.call(increment)
    await opened.call(command("SCRIPT", "FLUSH"))
    second = await opened.call(increment)

    assert (first, second) == (1, 2)


async def test_an_error_in_a_script_names_the_file_and_line(
    opened: Any, key_prefix: str
) -> None:
    texts = {
        "main.lua": "--- needs: add\n-- KEY count  str\nreturn add(count)",
        "lib/add.lua": "local function add(key)\n  return redis.call('INCR', key)\nend",
    }
    adding = assemble("main", texts.__getitem__)
    await opened.call(command("SET", key_prefix, "no number"))

    with pytest.raises(RedisError, match=r"lib/add\.lua:2"):
        await opened.call(Call(adding, adding.keys(count=key_prefix), (), int))


async def test_a_single_server_is_its_own_only_node(opened: Any) -> None:
    def nodes() -> Flow[Any]:
        return (yield Nodes())

    assert await opened.run(nodes()) == ("single",)


async def test_a_flow_is_sent_its_answers(opened: Any, key_prefix: str) -> None:
    def twice() -> Flow[int]:
        first = yield from ask(command("INCR", key_prefix))
        second = yield from ask(command("INCR", key_prefix))
        return first + second

    assert await opened.run(twice()) == 3


async def test_a_failure_is_thrown_into_the_flow(opened: Any, key_prefix: str) -> None:
    def patient() -> Flow[str]:
        yield command("SET", key_prefix, "text")
        try:
            yield command("LPUSH", key_prefix, "x")
        except WrongType:
            value = yield command("GET", key_prefix)
            return str(value)
        return "no failure"

    assert await opened.run(patient()) == "b'text'"


async def test_a_flow_that_gives_up_is_closed(opened: Any, key_prefix: str) -> None:
    closed = []

    def careless() -> Flow[None]:
        try:
            yield command("SET", key_prefix, "text")
            yield command("LPUSH", key_prefix, "x")
        finally:
            closed.append(True)

    with pytest.raises(WrongType):
        await opened.run(careless())

    assert closed == [True]


async def test_a_function_of_the_user_is_consulted(opened: Any) -> None:
    def asks() -> Flow[int]:
        return (yield Invoke(divmod, (7, 2)))

    assert await opened.run(asks()) == (3, 1)


async def test_an_error_of_the_users_function_stays_its_own(opened: Any) -> None:
    def fails() -> None:
        raise exceptions.ConnectionError("of another server")

    def asks() -> Flow[None]:
        yield Invoke(fails, ())

    with pytest.raises(exceptions.ConnectionError, match="of another server"):
        await opened.run(asks())


@pytest.mark.parametrize("in_script", [False, True])
async def test_a_wrong_type_is_told_and_its_cause_kept(
    opened: Any, key_prefix: str, in_script: bool
) -> None:
    await opened.call(command("SET", key_prefix, "text"))
    push = command("LPUSH", key_prefix, "x")
    if in_script:
        push = call("return redis.call('LPUSH', KEYS[1], 'x')", key_prefix)

    with pytest.raises(WrongType, match="WRONGTYPE") as caught:
        await opened.call(push)

    assert isinstance(caught.value.__cause__, exceptions.ResponseError)


@pytest.mark.parametrize("in_script", [False, True])
async def test_a_full_server_is_told(face: Face, in_script: bool) -> None:
    with Server(maxmemory="1", maxmemory_policy="noeviction") as server:
        opened = face.open(server.url)
        write = command("SET", "key", "value")
        if in_script:
            write = call("return redis.call('SET', KEYS[1], 'x')", "key")

        with pytest.raises(RedisOutOfMemory) as caught:
            await opened.call(write)

        assert isinstance(caught.value.__cause__, exceptions.ResponseError)


@pytest.mark.parametrize("in_script", [False, True])
async def test_a_replica_that_takes_no_writes_is_told(
    face: Face, in_script: bool
) -> None:
    with Server(replicaof="127.0.0.1 1") as server:
        opened = face.open(server.url)
        write = command("SET", "key", "value")
        if in_script:
            write = call("return redis.call('SET', KEYS[1], 'x')", "key")

        with pytest.raises(RedisReadOnly):
            await opened.call(write)


async def test_a_command_that_the_server_lacks_is_told(opened: Any) -> None:
    with pytest.raises(ServerTooOld, match="LEVITATE"):
        await opened.call(command("LEVITATE", "key"))


async def test_a_server_that_is_gone_is_unavailable(face: Face) -> None:
    with Server(tcp=True) as server:
        opened = face.open(server.url)
        await opened.call(command("PING"))
        server.kill()

        with pytest.raises(RedisUnavailable) as caught:
            await opened.call(command("PING"))

        assert isinstance(caught.value.__cause__, exceptions.ConnectionError)


async def test_a_server_that_came_back_is_used_again(face: Face) -> None:
    with Server(tcp=True) as server:
        opened = face.open(server.url)
        await opened.call(command("SET", "key", "1"))

        await asyncio.to_thread(server.restart)

        assert await opened.call(command("SET", "key", "2"))


async def test_a_server_busy_with_a_script_is_unavailable(face: Face) -> None:
    with Server(lua_time_limit=1) as server:
        opened = face.open(server.url)
        with connect(server.url, profile="tasks", timeout=60) as other:
            endless = threading.Thread(target=_run_endless_script, args=(other,))
            endless.start()
            # A client of ours asks for the server's role first, and is told the same.
            with Redis.from_url(server.url) as watcher:
                wait_until(lambda: _is_busy(watcher), 10, "the script to be busy")

                with pytest.raises(RedisUnavailable, match="BUSY"):
                    await opened.call(command("GET", "key"))

                watcher.execute_command("SCRIPT", "KILL")
            endless.join()


def _run_endless_script(client: Any) -> None:
    with pytest.raises(exceptions.ResponseError):
        client.eval("while true do end", 0)


def _is_busy(client: Any) -> bool:
    try:
        client.get("key")
    except exceptions.ResponseError as error:
        return "BUSY" in str(error)
    return False


async def test_a_script_whose_reply_is_late_is_not_sent_twice(face: Face) -> None:
    with Server(tcp=True) as server:
        opened = face.open(server.url, timeout=0.2)
        await opened.call(command("PING"))

        with pytest.raises(RedisUnavailable):
            await opened.call(call(SLOW_INCREMENT, "count"))

        with connect(server.url, profile="tasks") as other:
            assert other.get("count") == b"1"


async def test_a_call_that_is_cancelled_leaves_no_answer_to_others(
    redis_server: Server, key_prefix: str
) -> None:
    face = Face("asyncio")
    opened = face.open(redis_server.url)
    with Redis.from_url(redis_server.url) as other:
        await opened.call(command("PING"))
        other.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        late = asyncio.create_task(
            opened.call(call("return redis.call('INCR', KEYS[1])", key_prefix))
        )
        while not other.info("clients")["blocked_clients"]:
            await asyncio.sleep(0.01)

        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        other.execute_command("CLIENT", "UNPAUSE")

        assert await opened.call(call("return 'mine'")) == b"mine"
    await face.close()


async def test_a_wrong_password_is_no_reason_to_wait(face: Face) -> None:
    with Server(tcp=True, requirepass="right") as server:
        opened = face.open(server.url.replace("://", "://:wrong@"))

        with pytest.raises(RedisError) as caught:
            await opened.call(command("PING"))

        assert not isinstance(caught.value, RedisUnavailable)
        assert "wrong@" not in str(caught.value)


async def test_an_evicting_server_is_warned_about_at_first_use(
    face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    with Server(maxmemory="100mb", maxmemory_policy="allkeys-lru") as server:
        opened = face.open(server.url)
        assert caplog.records == []

        for _ in range(3):
            await opened.call(command("PING"))
        await face.open(server.url).call(command("PING"))

    messages = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert len(messages) == 1
    assert "maxmemory-policy allkeys-lru" in messages[0]


async def test_a_server_is_looked_at_once(face: Face) -> None:
    with Server() as server, connect(server.url, profile="tasks") as other:
        opened = face.open(server.url)
        for _ in range(5):
            await opened.call(command("PING"))

        assert other.info("commandstats")["cmdstat_info"]["calls"] == 1


async def test_a_server_that_forbids_the_look_is_used(
    face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with Server(tcp=True) as server:
        with connect(server.url, profile="tasks") as admin:
            admin.acl_setuser(
                "ann", enabled=True, nopass=True, keys="*", commands=["+@all", "-info"]
            )
        opened = face.open(server.url.replace("://", "://ann:x@"))

        assert await opened.call(command("INCR", "key")) == 1
        assert await opened.call(command("INCR", "key")) == 2

    assert caplog.records == []


async def test_an_old_server_is_refused(face: Face, old_server: str) -> None:
    opened = face.open(old_server)

    for _ in range(2):
        with pytest.raises(ServerTooOld, match=r"Redis 5\.0\.14"):
            await opened.call(command("INCR", "key"))

    assert b"INCR" not in _OldServer.asked


@pytest.fixture
def old_server() -> Iterator[str]:
    """No such binary is at hand: this one only says how old it is."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _OldServer) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"redis://127.0.0.1:{server.server_address[1]}/0"
        server.shutdown()
        thread.join()


class _OldServer(socketserver.StreamRequestHandler):
    asked: ClassVar[set[bytes]] = set()

    def handle(self) -> None:
        while count := self.rfile.readline():
            words = [self._word() for _ in range(int(count[1:]))]
            self.asked.add(words[0])
            text = b"redis_version:5.0.14\r\n" if words[0] == b"INFO" else b"OK"
            self.wfile.write(b"$%d\r\n%s\r\n" % (len(text), text))

    def _word(self) -> bytes:
        length = int(self.rfile.readline()[1:])
        return self.rfile.read(length + 2)[:-2]


def test_a_driver_takes_the_client_of_a_user_as_it_is(redis_client: Any) -> None:
    assert driver(redis_client).client is redis_client


@pytest.mark.parametrize("thing", [1, b"redis://", object(), ["redis://h"]])
def test_a_driver_of_anything_else_is_refused(thing: Any) -> None:
    for drive in (driver, async_driver):
        with pytest.raises(ConfigurationError, match="a client of redis-py, a URL"):
            drive(thing)


def test_each_driver_refuses_the_other_kind_of_client(
    redis_client: Any, async_redis_client: Any
) -> None:
    with pytest.raises(ConfigurationError, match="is an asyncio client"):
        driver(async_redis_client)
    with pytest.raises(ConfigurationError, match="not an asyncio client"):
        async_driver(redis_client)
