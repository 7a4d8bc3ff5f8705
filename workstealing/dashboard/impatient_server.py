"""Serves the dashboard, and closes connections whose requests do not arrive in time.

uvicorn waits forever for the rest of a request, so anybody who can connect could use up
the connections of the process, without a token.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ("REQUEST_SECONDS", "ImpatientProtocol")

REQUEST_SECONDS = 20.0
"""How long a request may take to arrive, from the connection or its first byte on."""

_INCOMPLETE = (h11.IDLE, h11.SEND_BODY)


class ImpatientProtocol(H11Protocol):
    """One connection; it is closed if a request does not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Expect the first request."""
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        """Take what has arrived, and expect the rest of it."""
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._stop()
        super().connection_lost(exc)

    def _look(self) -> None:
        if self.conn.their_state not in _INCOMPLETE:
            self._stop()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        self.transport.close()
