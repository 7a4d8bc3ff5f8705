"""What a site with side work keeps of its throughput and its latency.

One process serves the same page with and without us. Very many very short rounds of
load alternate between the two, each is compared with its neighbour, and the mean is
that of the middle half of the ratios: the machine's speed changes by half within
seconds, and a slice in a round is much less than that. That is why the load does not
come from `wrk`, whose shortest round is a second, but from a few connections that stay
open and always have one request under way.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.measuring import Budget
from workstealing.testing import Server, wait_until

__all__ = ("measure",)

_ROUNDS = 2000
_REQUESTS = 50
_CONNECTIONS = 4
_PATHS = ("/none", "/with")
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_GUNICORN = (
    *("-m", "gunicorn", "--bind", "fd://{fd}", "--threads", str(_CONNECTIONS)),
    "--no-control-socket",
    "benchmarks.web_sites:flask_site()",
)
_UVICORN = """
import socket, uvicorn
config = uvicorn.Config("benchmarks.web_sites:asgi_site", factory=True,
                        log_level="critical", access_log=False, lifespan="off")
uvicorn.Server(config).run(sockets=[socket.socket(fileno={fd})])
"""


@dataclass(frozen=True, slots=True)
class Round:
    """How one round of load went: its seconds, and those of each request."""

    took: float
    requests: list[float]


def measure() -> list[Budget]:
    """Measure a Flask site under gunicorn and an ASGI site under uvicorn."""
    return [
        *_compare("Flask, gunicorn", _GUNICORN),
        *_compare("ASGI, uvicorn", ("-c", _UVICORN)),
    ]


def _compare(host: str, command: tuple[str, ...]) -> list[Budget]:
    rounds: tuple[list[Round], list[Round]] = [], []
    with Server() as redis, _served(command, redis.url) as port, _load(port) as load:
        for path in _PATHS:
            load(path)
        for number in range(_ROUNDS):
            # Who is first may find the machine in another state than who is second.
            for side in (0, 1) if number % 2 else (1, 0):
                rounds[side].append(load(_PATHS[side]))
    without, with_us = rounds
    ratios = [a.took / b.took for a, b in zip(without, with_us, strict=True)]
    kept = _middle_mean(ratios)
    slower = _p99(with_us) / _p99(without)
    return [
        Budget(f"{host}: throughput with / without", kept, 0.99, at_least=True),
        Budget(f"{host}: p99 with / without", slower, 1.05),
    ]


def _middle_mean(ratios: list[float]) -> float:
    """Return the geometric mean of the middle half: it favours neither side."""
    quarter = len(ratios) // 4
    return statistics.geometric_mean(sorted(ratios)[quarter:-quarter])


def _p99(rounds: list[Round]) -> float:
    seconds = [second for each in rounds for second in each.requests]
    return statistics.quantiles(seconds, n=100)[98]


@contextmanager
def _served(command: tuple[str, ...], redis: str) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        # gunicorn sends head and body apart: the body would wait for an answer.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fd = listener.fileno()
        process = subprocess.Popen(
            [sys.executable, *(part.replace("{fd}", str(fd)) for part in command)],
            env={**os.environ, "SITE_REDIS": redis},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(fd,),
        )
        try:
            yield int(listener.getsockname()[1])
        finally:
            process.terminate()
            wait_until(lambda: process.poll() is not None, 40, "the server to end")


@contextmanager
def _load(port: int) -> Iterator[Callable[[str], Round]]:
    with ExitStack() as stack:
        address = ("127.0.0.1", port)
        connections = [
            stack.enter_context(socket.create_connection(address, timeout=30))
            for _ in range(_CONNECTIONS)
        ]
        yield lambda path: _round(connections, path)


def _round(connections: list[socket.socket], path: str) -> Round:
    """Send requests, each when the one before on its connection is answered."""
    request = f"GET {path} HTTP/1.1\r\nHost: site\r\n\r\n".encode()
    length = len(_answer(connections[0], request))
    seconds: list[float] = []
    sent_at, missing = {}, {}
    with selectors.DefaultSelector() as selector:
        began_at = time.perf_counter()
        for number, connection in enumerate(connections):
            selector.register(connection, selectors.EVENT_READ, number)
            sent_at[number], missing[number] = time.perf_counter(), length
            connection.sendall(request)
        under_way, to_send = len(connections), _REQUESTS - len(connections)
        while under_way:
            for key, _ in selector.select():
                number = key.data
                missing[number] -= len(connections[number].recv(65536))
                if missing[number]:
                    continue
                now = time.perf_counter()
                seconds.append(now - sent_at[number])
                if to_send:
                    to_send -= 1
                    sent_at[number], missing[number] = now, length
                    connections[number].sendall(request)
                else:
                    under_way -= 1
        took = time.perf_counter() - began_at
    return Round(took, seconds)


def _answer(connection: socket.socket, request: bytes) -> bytes:
    """Return an answer, whose length all others have too."""
    connection.sendall(request)
    answer = b""
    while True:
        answer += connection.recv(65536)
        head, end, body = answer.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if end and length and len(body) == int(length[1]):
            return answer
