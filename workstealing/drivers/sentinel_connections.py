"""The connections of a watch: to each Sentinel, and to a replica that is promoted.

Both say when they are due, and have no thread of their own; neither ever raises. After
a failure they connect again, with growing pauses.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from workstealing.drivers.sentinel_announcements import CHANNELS, ServerAddress

__all__ = ("Promotion", "SubscribedSentinel", "is_primary")

_ANSWER_SECONDS = 2.0
_SUBSCRIBED_SECONDS = 5.0
_UNSUBSCRIBED_SECONDS = 1.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.25, 8.0
_ROLE_PAUSE, _LONGEST_ROLE_PAUSE, _ROLE_SECONDS = 0.005, 0.1, 30.0


class SubscribedSentinel:
    """One Sentinel: connected to when it is due, asked, and subscribed to.

    Subscribed connections take no questions, and so each question interrupts the
    subscription. All three commands are sent at once: nothing is announced in between.
    """

    def __init__(self, host: str, port: int, settings: dict[str, Any]) -> None:
        self._place = host, port, settings
        self._connection: Any = None
        self._is_subscribed = self._is_asked = False
        self._asked_at = self._connect_at = 0.0
        self._pause = _SHORTEST_PAUSE
        self.named: ServerAddress | None = None
        """The primary that it named last, also before its connection broke."""

    @property
    def socket(self) -> socket.socket | None:
        """What to wait for; None while it is not connected."""
        # redis-py has no other way to wait for several.
        held: socket.socket | None = self._connection and self._connection._sock  # noqa: SLF001
        return held

    def due(self) -> float:
        """Return when to look after it."""
        if self._connection is None:
            return self._connect_at
        if self._is_asked:
            return self._asked_at + _ANSWER_SECONDS
        is_told = self._is_subscribed
        return self._asked_at + (
            _SUBSCRIBED_SECONDS if is_told else _UNSUBSCRIBED_SECONDS
        )

    def look(self, service: str) -> None:
        """Ask for the primary, and subscribe; connect first if it is not connected."""
        if self._is_asked:
            # It has not answered.
            self.hang_up()
            return
        try:
            if self._connection is None:
                self._connection = _connected(*self._place)
            self._connection.send_packed_command(
                self._connection.pack_commands(
                    (
                        ("UNSUBSCRIBE",),
                        ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service),
                        ("SUBSCRIBE", *CHANNELS),
                    )
                )
            )
            self._asked_at, self._is_asked = time.monotonic(), True
        except Exception:  # noqa: BLE001 - the thread must not end
            self.hang_up()

    def replies(self) -> Iterator[Any]:
        """Read what it has said, without waiting for more."""
        try:
            while self._connection is not None and self._connection.can_read(timeout=0):
                try:
                    reply = self._connection.read_response(disable_decoding=True)
                except ResponseError:
                    # A user may not be allowed to subscribe, or to ask.
                    reply = None
                self._is_asked, self._pause = False, _SHORTEST_PAUSE
                self._note(reply)
                yield reply
        except Exception:  # noqa: BLE001 - the thread must not end
            self.hang_up()

    def _note(self, reply: Any) -> None:
        match reply:
            case [b"subscribe", *_]:
                self._is_subscribed = True
            case [b"unsubscribe", *_]:
                self._is_subscribed = False

    def hang_up(self) -> None:
        """Close the connection, and wait a while before the next."""
        connection, self._connection = self._connection, None
        self._is_subscribed = self._is_asked = False
        self._connect_at = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        _close(connection)


class Promotion:
    """A replica that is about to be the primary: asked for its role until it is.

    Where it does not tell, `+promoted-slave` does.
    """

    def __init__(self, address: ServerAddress, settings: dict[str, Any]) -> None:
        self.address = address
        self._settings = settings
        self._connection: Any = None
        self._end = time.monotonic() + _ROLE_SECONDS
        self.hurry()

    def hurry(self) -> None:
        """Have it asked at once, and then after growing pauses."""
        self.due, self._pause = 0.0, _ROLE_PAUSE

    def is_done(self) -> bool:
        """Ask for its role."""
        try:
            if self._connection is None:
                self._connection = _connected(*self.address, self._settings)
            self._connection.send_command("HELLO")
            return is_primary(self._connection.read_response())
        except Exception:  # noqa: BLE001 - the thread must not end
            self.hang_up()
            return False
        finally:
            self.due = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_ROLE_PAUSE)

    def is_late(self) -> bool:
        """Return whether it has been waited for too long."""
        return time.monotonic() > self._end

    def hang_up(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        _close(connection)


def is_primary(greeting: Any) -> bool:
    """Return whether a server that answers HELLO is a primary.

    Unlike ROLE, that is no dangerous command, and allowed to most users.
    """
    if not isinstance(greeting, dict):
        greeting = dict(zip(greeting[::2], greeting[1::2], strict=True))
    role = greeting.get(b"role", greeting.get("role"))
    return role in (b"master", "master")


def _connected(host: str, port: int, settings: dict[str, Any]) -> Any:
    # The client knows which kind of connection its settings mean.
    pool: Any = Redis(host=host, port=port, **settings).connection_pool
    connection = pool.make_connection()
    try:
        connection.connect()
    except BaseException:
        connection.disconnect()
        raise
    return connection


def _close(connection: Any) -> None:
    if connection is not None:
        with suppress(Exception):
            connection.disconnect()
