"""A connection of one's own, spoken to without detours.

A worker exchanges with Redis all its life, in one thread. Taking a connection out of
the pool and putting it back, as redis-py does for each command, and what it does around
that, costs as much as half of the exchange. Only plain clients have lines that were
told, as ours are, not to repeat commands; for others, and for all that is rare, the
client does as well.
"""

from __future__ import annotations

from typing import Any

from hiredis import pack_command
from redis import Redis
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import NoScriptError, ResponseError

from workstealing.drivers.sync import Driver
from workstealing.queue.call import Call, Command, Step

__all__ = ("dedicated",)

_PLAIN = (Connection, SSLConnection, UnixDomainSocketConnection)


def dedicated(driver: Driver) -> Driver:
    """Return a driver of the same client for one thread; close it at the end."""
    client = driver.client
    if isinstance(client, Redis) and _is_plain(client):
        return _LineDriver(client)
    return Driver(client)


def _is_plain(client: Redis) -> bool:
    pool: Any = client.connection_pool
    retry = pool.connection_kwargs.get("retry")
    return pool.connection_class in _PLAIN and (
        retry is None or getattr(retry, "_retries", 1) == 0
    )


class _LineDriver(Driver):
    """Sends scripts and waits for bells on a line; everything else as others do."""

    def __init__(self, client: Redis) -> None:
        super().__init__(client)
        self._line = _Line(client)

    def close(self) -> None:
        super().close()
        self._line.close()

    def _send(self, step: Step) -> Any:
        if isinstance(step, Call):
            rest = (len(step.keys), *step.keys, *step.arguments)
            script, is_raw = step.script, step.is_raw
            try:
                return self._line.ask(("EVALSHA", script.sha, *rest), is_raw)
            except NoScriptError:
                return self._line.ask(("EVAL", script.text, *rest), is_raw)
        if isinstance(step, Command) and step.parts[0] == "BLPOP":
            return self._line.ask(step.parts, False)
        return super()._send(step)


class _Line:
    """One connection of a pool, held for long."""

    def __init__(self, client: Redis) -> None:
        self._pool: Any = client.connection_pool
        self._connection: Any = None

    def ask(self, command: tuple[Any, ...], is_raw: bool) -> Any:
        if self._connection is None:
            self._connection = self._pool.get_connection()
        connection = self._connection
        try:
            connection.send_packed_command([pack_command(command)])
            return connection.read_response(disable_decoding=is_raw)
        except ResponseError:
            # The server has answered: the line is as good as before.
            raise
        except BaseException:
            # What comes next on it would be the answer to this.
            self.close()
            raise

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()
            self._pool.release(connection)
