"""`workstealing web` gives up a request that does not arrive in time."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from workstealing.testing import Server

# As the command line begins, with less patience.
CODE = """
from workstealing.dashboard import impatient_server
impatient_server.REQUEST_SECONDS = 0.05
from workstealing.cli.entry import main
main()
"""
HALF = {"nothing": b"", "headers": b"GET / HTTP/1.1\r\nHost: loc"}


@pytest.fixture(scope="module")
def address(redis_server: Server) -> Iterator[tuple[str, int]]:
    with subprocess.Popen(
        [
            *(sys.executable, "-u", "-c", CODE, "web"),
            *("--port", "0", "--redis", redis_server.url),
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        parts = urlsplit(process.stdout.readline())
        assert parts.hostname is not None, "it did not start"
        assert parts.port is not None
        yield parts.hostname, parts.port
        process.kill()


@pytest.mark.parametrize("half", HALF.values(), ids=HALF)
def test_a_connection_with_half_a_request_is_closed_by_the_command(
    address: tuple[str, int], half: bytes
) -> None:
    # Without the limit it would wait for ever, and time out here.
    with socket.create_connection(address, timeout=20) as line:
        line.sendall(half)

        assert line.recv(1) == b""
