"""Uses connections of redis-py directly, where its own way of sending costs too much.

`DedicatedConnection` is held by one thread for as long as its worker works: taking a
connection out of the pool and putting it back for each command, and what redis-py does
around that, costs as much as half of an exchange with Redis.

`send_one` sends one script without what redis-py does around each command.

A call that replicas must confirm is followed by `fence`, on the same connection: only
there does the server know which write is meant.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from inspect import signature
from typing import Any, TypeVar

from hiredis import pack_command
from redis import asyncio as aio
from redis import connection as sync
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import NoScriptError, ResponseError
from redis.exceptions import TimeoutError as TimedOut

from workstealing.drivers.cluster_client import LazyCluster
from workstealing.errors import ConfigurationError, NotReplicated
from workstealing.queue.steps import Argument, Call

__all__ = (
    "DedicatedConnection",
    "answered",
    "command_of",
    "confirmed",
    "fence",
    "is_plain",
    "packed_call",
    "send_one",
    "send_one_async",
    "shut_down",
    "timeout_of",
)

T = TypeVar("T")

# A replica that keeps up confirms within a millisecond or two.
_REPLICA_SECONDS = 1.0
# How late the reply to a blocking command may come.
_LATE_SECONDS = 1.0
# How late it may come if the client has no timeout.
_LONGEST_SILENCE = 60.0


class DedicatedConnection:
    """One connection of a client's pool, held until it is closed."""

    def __init__(self, client: Any) -> None:
        self._pool: Any = client.connection_pool
        self._timeout = timeout_of(client)
        self._connection: Any = None
        self._waits_on: Any = None
        self._sent: Call[Any] | None = None

    def send(self, behind: Sequence[tuple[Argument, ...]], call: Call[Any]) -> None:
        """Send a script and commands *behind* it; `call_and` reads the replies.

        If anything else is sent before that, the replies are lost.
        """
        self._drop_unread()
        # Set first, because an interrupt may come during the send.
        self._sent = call
        self._send([*packed_call(call), *_packed_all(behind)])

    def call(self, call: Call[Any]) -> Any:
        """Run a script; return its reply as it is."""
        return self.call_and([], call)[0]

    def call_and(
        self, behind: Sequence[tuple[Argument, ...]], call: Call[Any]
    ) -> list[Any]:
        """Run a script and commands *behind* it; return all replies as they are."""
        before, seconds = list[bytes](), 0.0
        if call.after is not None:
            before, seconds = _packed(call.after.parts), _seconds(call.after.parts)
        rest = _packed_all(behind)
        if self._sent is call:
            waited, replies = list[Any](), self._read_sent(1 + len(rest), call.is_raw)
        else:
            sent = before + packed_call(call) + rest
            replies = self._exchange(sent, call.is_raw, seconds)
            waited, replies = replies[: len(before)], replies[len(before) :]
        if isinstance(replies[0], NoScriptError):
            in_full = packed_call(call, in_full=True)
            replies = self._exchange(in_full + rest, call.is_raw)
        answers = answered(replies)
        # If the server has ended the wait, the script behind it was run all the same.
        answered([one for one in waited if not str(one).startswith("UNBLOCKED ")])
        return answers

    def ask(self, parts: tuple[Argument, ...]) -> Any:
        """Send a blocking command, with its seconds last; return its reply as it is."""
        return answered(self._exchange(_packed(parts), False, _seconds(parts)))[0]

    def interrupt(self) -> None:
        """End a wait on the server with a `ConnectionError`; from another thread.

        The server forgets what it was to wait for, and what was sent behind that.
        """
        connection = self._waits_on
        if connection is not None:
            shut_down(connection)

    def close(self) -> None:
        """Give the connection back; another is taken when one is needed again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()
            self._pool.release(connection)

    def _exchange(
        self, commands: list[bytes], is_raw: bool, seconds: float = 0.0
    ) -> list[Any]:
        """Send all at once and read the replies; the first may take *seconds*."""
        self._drop_unread()
        self._send(commands)
        return self._read(len(commands), is_raw, seconds)

    def _read_sent(self, number: int, is_raw: bool) -> list[Any]:
        """Read the replies to what was sent before."""
        self._sent = None
        if self._connection is None:
            raise Disconnected("the connection was closed before the reply was read")
        return self._read(number, is_raw)

    def _drop_unread(self) -> None:
        """Close the connection if a reply is unread: it would answer the next call."""
        if self._sent is not None:
            self._sent = None
            self.close()

    def _send(self, commands: list[bytes]) -> None:
        if self._connection is None:
            self._connection = self._pool.get_connection()
        try:
            # Joined, for redis-py would send each in a packet of its own.
            self._connection.send_packed_command([b"".join(commands)])
        except BaseException:
            self.close()
            raise

    def _read(self, number: int, is_raw: bool, seconds: float = 0.0) -> list[Any]:
        """Read replies; an error that the server sends is returned as a reply."""
        connection, replies = self._connection, list[Any]()
        try:
            if seconds:
                self._wait(connection, seconds)
            for _ in range(number):
                try:
                    replies.append(connection.read_response(disable_decoding=is_raw))
                except ResponseError as error:
                    replies.append(error)
            return replies
        except BaseException:
            # A late reply would be taken for the answer to the next call.
            self.close()
            raise

    def _wait(self, connection: Any, seconds: float) -> None:
        """Wait for the reply to a command that blocks."""
        # The server is to wait, not to be slow. It looks at the time only now and then,
        # up to ten times a second.
        late = _LONGEST_SILENCE if self._timeout is None else self._timeout
        self._waits_on = connection
        try:
            if not connection.can_read(timeout=seconds + max(late, _LATE_SECONDS)):
                raise TimedOut("no answer to a command that blocks")
        finally:
            self._waits_on = None


def fence(client: Any, call: Call[Any]) -> list[tuple[Argument, ...]]:
    """Return the commands that tell how many replicas have what a call wrote."""
    if isinstance(client, (RedisCluster, aio.RedisCluster)):
        raise ConfigurationError(
            "replicas= is not supported on a Cluster: leave it out, and set"
            " min-replicas-to-write at its nodes"
        )
    timeout = timeout_of(client)
    seconds = min(_REPLICA_SECONDS, timeout / 2) if timeout else _REPLICA_SECONDS
    # A repeated call writes nothing, and WAIT alone would confirm it at once. A message
    # is the smallest thing that replicas are sent; nobody subscribes to a key.
    return [
        ("PUBLISH", call.keys[0], ""),
        ("WAIT", call.replicas, round(seconds * 1000)),
    ]


def confirmed(call: Call[T], replies: Sequence[Any]) -> T:
    """Return the answer to a call with a fence, if enough replicas have it.

    A server that refuses to say, such as one that was demoted meanwhile, has run the
    call all the same.
    """
    answer = call.parse(replies[0])
    refusal = next((one for one in replies[1:] if isinstance(one, Exception)), None)
    number = 0 if refusal else replies[-1]
    if number < call.replicas:
        missing = NotReplicated((), number, call.replicas)
        missing.answer = answer
        raise missing from refusal
    return answer


def answered(replies: list[Any]) -> list[Any]:
    """Return replies, or raise the first one if it is an error."""
    if replies and isinstance(replies[0], Exception):
        raise replies[0]
    return replies


def timeout_of(client: Any) -> float | None:
    """Return the seconds that a client waits for a reply; None is for ever."""
    if isinstance(client, LazyCluster):
        seconds = client.settings.get("socket_timeout")
    else:
        holder = getattr(client, "nodes_manager", None) or client.connection_pool
        seconds = holder.connection_kwargs.get("socket_timeout")
    return None if seconds is None else float(seconds)


def send_one(client: Any, call: Call[Any]) -> Any:
    """Run a script over a plain client; return its reply as it is."""
    pool = client.connection_pool
    connection = pool.get_connection()
    try:
        connection.send_packed_command(packed_call(call))
        try:
            return connection.read_response(disable_decoding=call.is_raw)
        except NoScriptError:
            connection.send_packed_command(packed_call(call, in_full=True))
            return connection.read_response(disable_decoding=call.is_raw)
    except ResponseError:
        # The server has answered, so the connection can be used again.
        raise
    except BaseException:
        # A late reply would be taken for the answer to the next call.
        connection.disconnect()
        raise
    finally:
        pool.release(connection)


async def send_one_async(client: Any, call: Call[Any]) -> Any:
    """Run a script over a plain asyncio client; return its reply as it is."""
    pool = client.connection_pool
    connection = await pool.get_connection()
    try:
        await connection.send_packed_command(packed_call(call))
        try:
            return await connection.read_response(disable_decoding=call.is_raw)
        except NoScriptError:
            await connection.send_packed_command(packed_call(call, in_full=True))
            return await connection.read_response(disable_decoding=call.is_raw)
    except ResponseError:
        raise
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    finally:
        await pool.release(connection)


_KINDS = frozenset(
    {
        sync.Connection,
        sync.SSLConnection,
        sync.UnixDomainSocketConnection,
        aio.Connection,
        aio.SSLConnection,
        aio.UnixDomainSocketConnection,
    }
)


def is_plain(client: Any) -> bool:
    """Return whether the connections of a client can be used directly."""
    pool = getattr(client, "connection_pool", None)
    if pool is None or pool.connection_class not in _KINDS:
        return False
    # Before redis-py 5.3 a pool asks for the command that a connection is for.
    purpose = signature(pool.get_connection).parameters.get("command_name")
    retry = pool.connection_kwargs.get("retry")
    return (
        (purpose is None or purpose.default is not purpose.empty)
        and (retry is None or getattr(retry, "_retries", 1) == 0)
        # Not with client-side caching or a single connection, which need more care.
        and getattr(pool, "cache", None) is None
        and client.connection is None
    )


def _packed(parts: tuple[Argument, ...]) -> list[bytes]:
    """Return a command as connections of redis-py take it."""
    pack: Any = pack_command  # its type says that a command has a single part
    return [pack(parts)]


def _packed_all(commands: Iterable[tuple[Argument, ...]]) -> list[bytes]:
    return [packed for parts in commands for packed in _packed(parts)]


def _seconds(parts: tuple[Argument, ...]) -> float:
    """Return how long a blocking command waits on the server: its last part."""
    return parts[-1] if isinstance(parts[-1], (int, float)) else 0.0


def packed_call(call: Call[Any], *, in_full: bool = False) -> list[bytes]:
    """Return a call as connections of redis-py take it."""
    return _packed(command_of(call, in_full=in_full))


def command_of(call: Call[Any], *, in_full: bool = False) -> tuple[Argument, ...]:
    """Return the command that runs a script: by its hash, or with its text."""
    script, keys = call.script, call.keys
    name, which = ("EVAL", script.text) if in_full else ("EVALSHA", script.sha)
    return (name, which, len(keys), *keys, *call.arguments)


def shut_down(connection: Any) -> None:
    """Shut down the socket of a connection, also if some thread reads from it."""
    held = getattr(connection, "_sock", None)
    if held is not None:
        with suppress(OSError):
            held.shutdown(socket.SHUT_RDWR)
