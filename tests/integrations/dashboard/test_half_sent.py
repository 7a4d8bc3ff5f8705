"""A request that does not arrive in time is given up, whoever sends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from workstealing.dashboard.impatient_server import (
    REQUEST_SECONDS,
    ImpatientProtocol,
)


class Timer:
    """A call that the test makes itself, unless it was cancelled."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds, self.call, self.is_pending = seconds, call, True

    def cancel(self) -> None:
        self.is_pending = False


class Line(asyncio.Transport):
    """A connection, and the time that passes on it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False
        self.timers: list[Timer] = []
        self._loop = asyncio.get_running_loop()
        config = uvicorn.Config(_app, log_level="critical", lifespan="off")
        loop: Any = self
        self.server = ImpatientProtocol(config, ServerState(), {}, loop)
        self.server.connection_made(self)

    def send(self, data: bytes) -> None:
        self.server.data_received(data)

    def let_time_pass(self) -> None:
        for timer in self.timers:
            if timer.is_pending and timer.seconds == REQUEST_SECONDS:
                timer.call()

    # What the protocol uses of its loop.

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(seconds, call))
        return self.timers[-1]

    def create_task(self, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        return self._loop.create_task(coroutine, **options)

    # What it uses of a transport.

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data: Any) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


async def _app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


HALF = [
    b"",
    b"GET / HTTP/1.1\r\nHost: loc",
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\ntok",
]


@pytest.mark.parametrize("half", HALF, ids=["nothing", "headers", "body"])
async def test_a_connection_with_half_a_request_is_closed(half: bytes) -> None:
    line = Line()
    for octet in half:
        line.send(bytes([octet]))
    assert not line.is_closed

    line.let_time_pass()

    assert line.is_closed
    # Whoever sends byte after byte has no more time than others.
    assert sum(timer.seconds == REQUEST_SECONDS for timer in line.timers) == 1


async def test_a_request_that_has_arrived_has_all_the_time_it_needs() -> None:
    line = Line()
    line.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

    line.let_time_pass()

    assert not line.is_closed


async def test_the_next_request_on_a_connection_must_arrive_in_time_too() -> None:
    line = Line()
    line.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asyncio.gather(*line.server.tasks)
    line.send(b"GET / HT")

    line.let_time_pass()

    assert line.is_closed
