"""Serves a site in a process of its own, and loads it from this one.

The load does not come from `wrk`, whose shortest round is a second, but from a few
connections that always have one request under way.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from workstealing.testing import wait_until

__all__ = ("CONNECTIONS", "Load", "Round", "middle_mean", "p99", "served")

CONNECTIONS = 4
_REQUESTS = 50
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection: close", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Round:
    """How one round of load went: its seconds, and those of each request."""

    took: float
    requests: list[float]


def middle_mean(ratios: list[float]) -> float:
    """Return the geometric mean of the middle half: it favours neither side."""
    quarter = len(ratios) // 4
    return statistics.geometric_mean(sorted(ratios)[quarter:-quarter])


def p99(rounds: list[Round]) -> float:
    """Return the seconds that one request in a hundred exceeds."""
    seconds = [second for each in rounds for second in each.requests]
    return statistics.quantiles(seconds, n=100)[98]


@contextmanager
def served(command: tuple[str, ...], **environment: str) -> Iterator[int]:
    """Serve a site, whose command names the descriptor `{fd}`; return its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        # gunicorn sends head and body apart: the body would wait for an answer.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fd = listener.fileno()
        process = subprocess.Popen(
            [sys.executable, *(part.replace("{fd}", str(fd)) for part in command)],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(fd,),
        )
        try:
            yield int(listener.getsockname()[1])
        finally:
            process.terminate()
            wait_until(lambda: process.poll() is not None, 40, "the server to end")


class Load:
    """A few connections to a server, opened anew for each request if it closes them."""

    def __init__(self, port: int) -> None:
        self._address = ("127.0.0.1", port)
        # None is opened early: a server that serves one at a time would wait for it.
        self._connections: dict[int, socket.socket] = {}

    def round(self, path: str) -> Round:
        """Send requests, each when the one before on its connection is answered."""
        request = f"GET {path} HTTP/1.1\r\nHost: site\r\n\r\n".encode()
        length, closes = self._answer(request)
        seconds: list[float] = []
        sent_at, missing = {}, {}
        with selectors.DefaultSelector() as selector:

            def send(number: int) -> None:
                sent_at[number], missing[number] = time.perf_counter(), length
                if number not in self._connections:
                    self._connections[number] = self._connect()
                connection = self._connections[number]
                selector.register(connection, selectors.EVENT_READ, number)
                connection.sendall(request)

            began_at = time.perf_counter()
            for number in range(CONNECTIONS):
                send(number)
            under_way, to_send = CONNECTIONS, _REQUESTS - CONNECTIONS
            while under_way:
                for key, _ in selector.select():
                    number = key.data
                    received = self._connections[number].recv(65536)
                    missing[number] -= len(received)
                    if missing[number] and received:
                        continue
                    if missing[number]:
                        raise RuntimeError("the server has closed a connection early")
                    seconds.append(time.perf_counter() - sent_at[number])
                    selector.unregister(self._connections[number])
                    if closes:
                        self._connections.pop(number).close()
                    if to_send:
                        to_send -= 1
                        send(number)
                    else:
                        under_way -= 1
            took = time.perf_counter() - began_at
        return Round(took, seconds)

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()

    def _answer(self, request: bytes) -> tuple[int, bool]:
        """Return how long each answer is, and whether the server closes after it."""
        answer = b""
        with self._connect() as connection:
            connection.sendall(request)
            while received := connection.recv(65536):
                answer += received
                head, end, body = answer.partition(b"\r\n\r\n")
                length = _LENGTH.search(head)
                if end and length and len(body) == int(length[1]):
                    return len(answer), _CLOSES.search(head) is not None
        raise RuntimeError(f"the server has not answered: {answer!r}")

    def _connect(self) -> socket.socket:
        return socket.create_connection(self._address, timeout=30)
