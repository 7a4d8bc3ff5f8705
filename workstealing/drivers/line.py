"""A connection of one's own: a worker exchanges with Redis all its life, in one thread.

Taking a connection out of the pool and putting it back, as redis-py does for each
command, and what it does around that, costs as much as half of the exchange.
"""

from __future__ import annotations

from typing import Any

from redis.exceptions import NoScriptError, ResponseError

from workstealing.drivers.packing import packed, packed_call
from workstealing.queue.call import Argument, Call

__all__ = ("Line",)


class Line:
    """One connection of a client's pool, held until it is closed."""

    def __init__(self, client: Any) -> None:
        self._pool: Any = client.connection_pool
        self._connection: Any = None

    def call(self, call: Call[Any]) -> Any:
        """Run a script; return its reply as it is."""
        try:
            return self._exchange(packed_call(call), call.is_raw)
        except NoScriptError:
            return self._exchange(packed_call(call, in_full=True), call.is_raw)

    def ask(self, parts: tuple[Argument, ...]) -> Any:
        """Send a command; return its reply as it is."""
        return self._exchange(packed(parts), is_raw=False)

    def close(self) -> None:
        """Give the connection back; another is taken when one is needed again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()
            self._pool.release(connection)

    def _exchange(self, command: list[bytes], is_raw: bool) -> Any:
        if self._connection is None:
            self._connection = self._pool.get_connection()
        connection = self._connection
        try:
            connection.send_packed_command(command)
            return connection.read_response(disable_decoding=is_raw)
        except ResponseError:
            # The server has answered: the line is as good as before.
            raise
        except BaseException:
            # What comes next on it would be the answer to this.
            self.close()
            raise
