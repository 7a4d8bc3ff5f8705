"""`workstealing web` ends in order, as supervisors and users ask for it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import workstealing
from workstealing.testing import Server

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

ROOT = Path(workstealing.__file__).parents[1]
_CODE = "from workstealing.cli.entry import main; main()"


@pytest.fixture
def web(redis_server: Server, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    known = {
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "WORKSTEALING_URL": redis_server.url,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", _CODE, "web", "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, **known},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.mark.parametrize("is_in_use", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_dashboard_that_is_told_to_end_closes_its_door_and_exits_with_zero(
    web: subprocess.Popen[str], number: signal.Signals, is_in_use: bool
) -> None:
    assert web.stdout is not None
    address = urlsplit(web.stdout.readline())
    assert address.hostname is not None
    door = (address.hostname, address.port or 0)
    if is_in_use:
        with socket.create_connection(door, timeout=30) as browser:
            browser.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert browser.recv(1000).startswith(b"HTTP/1.1 ")
            web.send_signal(number)
            output, errors = web.communicate(timeout=30)
    else:
        # As early as anybody can know of it.
        web.send_signal(number)
        output, errors = web.communicate(timeout=30)

    assert (web.returncode, output, errors) == (0, "", "")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(door, timeout=30)
