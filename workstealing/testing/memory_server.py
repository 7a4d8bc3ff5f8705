"""A Redis in memory whose time stands still until a test moves it.

It is fakeredis, which runs the very scripts that a real server runs, with three
changes: time comes from a `MemoryClock`, for keys that expire as well; scripts are
compiled once; and each envelope that is put into a queue is recorded. Needs the extra
`testing`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

from workstealing.drivers.memory_addresses import announce
from workstealing.errors import ConfigurationError, MissingExtra

try:
    from fakeredis import (
        FakeAsyncRedis,
        FakeAsyncRedisConnection,
        FakeRedis,
        FakeRedisConnection,
        FakeServer,
    )
except ImportError as error:
    raise MissingExtra("fakeredis", "testing") from error
if find_spec("lupa") is None:
    raise MissingExtra("lupa, which runs scripts for fakeredis,", "testing")

__all__ = ("MemoryClock", "MemoryServer", "WrittenEnvelope")

_NS = 1_000_000_000


class MemoryClock:
    """The time of one server in memory: it stands still until it is moved.

    `monotonic()` is that of the machine. Otherwise a wait for a thread would never end,
    and a time that was moved would look like a server that does not answer.
    """

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        # Scripts count in milliseconds.
        self._now_ns = time.time_ns() // 1_000_000 * 1_000_000

    def time_ns(self) -> int:
        """Return the time of day, in nanoseconds since 1970."""
        return self._now_ns

    def move_to(self, time_ns: int) -> None:
        """Move the time of day, forward or back."""
        self._now_ns = time_ns


class WrittenEnvelope(NamedTuple):
    """A task as it was put into a queue."""

    key: str
    """Of the hash of the envelopes of its queue."""
    id: str
    envelope: bytes


class MemoryServer:
    """A server in this process, for one test."""

    def __init__(self) -> None:
        self.clock = MemoryClock()
        self.written: list[WrittenEnvelope] = []
        """All that was ever put into a queue here, in order."""
        self._is_closed = False
        self._server = _CompilingServer()
        self._server.dbs = defaultdict(self._new_database)
        self.url = announce(self)

    def client(self) -> FakeRedis:
        """Return a client for threads."""
        return FakeRedis(**self._options(_connection_of(self)))

    def async_client(self) -> FakeAsyncRedis:
        """Return a client for one event loop."""
        return FakeAsyncRedis(**self._options(_async_connection_of(self)))

    def clear(self) -> None:
        """Forget everything; the time stays."""
        with self._server.lock:
            for database in self._server.dbs.values():
                database.clear()
        self.written.clear()

    def close(self) -> None:
        """Refuse all later connections and commands: the test has ended."""
        self._is_closed = True
        self._server.connected = False

    def adopt(self, socket: Any) -> Any:
        """Let a connection use our time, and record the envelopes that it writes."""
        write: Callable[..., int] = socket.hset

        def hset(key: Any, *pairs: bytes) -> int:
            if key.key.endswith(b":task"):
                name = key.key.decode()
                for task_id, envelope in zip(pairs[::2], pairs[1::2], strict=True):
                    one = WrittenEnvelope(name, task_id.decode(), envelope)
                    self.written.append(one)
            return write(key, *pairs)

        def hsetnx(key: Any, field: bytes, value: bytes) -> int:
            return 0 if field in key.value else hset(key, field, value)

        # fakeredis looks a command up by its name, for clients and for scripts.
        socket.hset, socket.hsetnx, socket.time = hset, hsetnx, self._time
        return socket

    def check_open(self) -> None:
        """Refuse to connect if the test has ended."""
        if self._is_closed:
            raise ConfigurationError(
                f"{self.url} ended with its test, but something of that test still uses"
                " it: a task or handle that was kept, or a thread that is still running"
            )

    def _options(self, connection_class: type[Any]) -> dict[str, Any]:
        self.check_open()
        return {
            "server": self._server,
            "connection_class": connection_class,
            "host": self.url.partition("://")[2],
            "protocol": 2,
        }

    def _new_database(self) -> Any:
        database: Any = _Database(self._server.lock)
        database.clock = self.clock
        return database

    def _time(self) -> list[bytes]:
        seconds, ns = divmod(self.clock.time_ns(), _NS)
        return [str(seconds).encode(), str(ns // 1000).encode()]


def _connection_of(memory: MemoryServer) -> type[FakeRedisConnection]:
    class MemoryConnection(FakeRedisConnection):
        def _connect(self) -> Any:
            memory.check_open()
            return memory.adopt(super()._connect())

    return MemoryConnection


def _async_connection_of(memory: MemoryServer) -> type[FakeAsyncRedisConnection]:
    class AsyncMemoryConnection(FakeAsyncRedisConnection):
        async def _connect(self) -> None:
            memory.check_open()
            await super()._connect()
            memory.adopt(self._sock)

    return AsyncMemoryConnection


# Scripts of all servers, by their hashes; and compiled, by their texts.
_SCRIPTS: dict[bytes, bytes] = {}
_COMPILED: dict[bytes | str, bytes] = {}


class _CompilingServer(FakeServer):
    """A server that compiles each script once: most of the time of a short test.

    fakeredis keeps its Lua runtime here. Should it stop doing so, this has no effect.
    """

    def __init__(self) -> None:
        super().__init__()
        self.script_cache = _SCRIPTS

    @property
    def _lua_runtime(self) -> _CompilingRuntime:
        try:
            kept: _CompilingRuntime = self.__dict__["runtime"]
        except KeyError:
            raise AttributeError("_lua_runtime") from None
        return kept

    @_lua_runtime.setter
    def _lua_runtime(self, runtime: Any) -> None:
        self.__dict__["runtime"] = _CompilingRuntime(runtime)


class _CompilingRuntime:
    """A Lua runtime, as far as fakeredis uses it."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._loaded: dict[bytes | str, Callable[[], Any]] = {}
        self._load = runtime.eval("loadstring")
        self._dump = runtime.eval("string.dump")
        self.eval = runtime.eval
        self.globals = runtime.globals
        self.require = runtime.require
        self.table_from = runtime.table_from

    def execute(self, code: bytes | str) -> Any:
        """Run a script; a full collection after each one is left to Lua itself."""
        if code == "collectgarbage()":
            return None
        known = self._loaded.get(code)
        if known is None:
            if code not in _COMPILED:
                _COMPILED[code] = self._dump(self._runtime.compile(code))
            known = self._loaded[code] = self._load(_COMPILED[code])
        return known()


def _moved_time(database: Any) -> float:
    seconds: float = database.clock.time_ns() / _NS
    return seconds


def _ignore(database: Any, seconds: float) -> None:
    """Ignore the time of the machine, which fakeredis sets with each command."""


# By type(), because fakeredis does not export the class.
_Database: Any = type(
    "MemoryDatabase",
    (type(FakeServer().dbs[0]),),
    {"time": property(_moved_time, _ignore)},
)
