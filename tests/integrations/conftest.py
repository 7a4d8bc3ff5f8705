"""Real servers in child processes, and raw requests to them.

A site keeps a diary: one line per slice, written by an observer. A server that has
stopped writes no more of it.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from workstealing.testing import wait_until

Command = Callable[[int], Sequence[str]]


class Site:
    """A server process, and what it says.

    Args:
        papers: A new folder, for its diary and its output.
        command: What to run, given the descriptor of the socket that it listens on.
        folder: Where to run it.
        environment: Its variables; `DIARY` is added to them.
        end: The signal that lets it finish what it does.
        varying: The headers that are left out of answers, for they tell the time.
    """

    def __init__(
        self,
        papers: Path,
        command: Command,
        *,
        folder: Path,
        environment: Mapping[str, str],
        end: signal.Signals = signal.SIGTERM,
        varying: Sequence[str] = ("date",),
    ) -> None:
        self._diary = papers / "diary"
        self._diary.touch()
        self._output = papers / "output"
        self._end = end
        names = "|".join(varying)
        self._varying = re.compile(rf"\r\n({names}): [^\r]*".encode(), re.IGNORECASE)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        descriptor = self._listener.fileno()
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command(descriptor),
                cwd=folder,
                env={**environment, "DIARY": str(self._diary)},
                stdout=output,
                stderr=output,
                pass_fds=(descriptor,),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def connect(self) -> socket.socket:
        """Connect; who connects before the server is ready waits in the backlog."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def get(self, *paths: str, version: str = "1.1") -> bytes:
        """Return all that is answered to requests on one connection, but the time."""
        with self.connect() as connection:
            *first, last = paths
            requests = [
                _request(path, is_last=False, version=version) for path in first
            ]
            # All at once: a server may close the connection after the first of them.
            requests.append(_request(last, is_last=True, version=version))
            connection.sendall(b"".join(requests))
            return self._without_time(_read_to_end(connection))

    def get_exactly(self, path: str, length: int) -> bytes:
        """Return what is answered, without waiting for the end of the connection."""
        with self.connect() as connection:
            connection.sendall(_request(path, is_last=True))
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += _received(connection)
            head, end, body = answer.partition(b"\r\n\r\n")
            head = self._without_time(head)
            chunks = [body]
            missing = length - len(head + end + body)
            while missing > 0:
                chunks.append(_received(connection))
                missing -= len(chunks[-1])
        return b"".join([head, end, *chunks])

    def hang_up(self, path: str) -> None:
        """Ask for something long, and go away when it comes."""
        with self.connect() as connection:
            connection.sendall(_request(path, is_last=False))
            assert connection.recv(1024)

    def diary(self) -> list[str]:
        """Return the lines that were written so far."""
        return self._diary.read_text().split()

    def wait_for(self, line: str) -> None:
        """Wait until a line is in the diary."""
        wait_until(lambda: line in self.diary(), 30, f"{line!r} in {self.diary()}")

    def stop(self) -> list[str]:
        """Let the server finish what it does; return the whole diary."""
        if self._process.poll() is None:
            self._process.send_signal(self._end)
        try:
            self._process.wait(timeout=30)
        finally:
            self._process.kill()
            self._process.wait()
            self._listener.close()
        return self.diary()

    def output(self) -> str:
        """Return what the server said of itself."""
        return self._output.read_text(errors="replace")

    def _without_time(self, answer: bytes) -> bytes:
        return self._varying.sub(b"", answer)


StartSite = Callable[..., Site]


@pytest.fixture
def start_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartSite]:
    """Start a `Site`, with papers of its own, that ends with the test."""
    with _starting(tmp_path_factory) as start_site:
        yield start_site


@pytest.fixture(scope="module")
def start_lasting_site(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[StartSite]:
    """Start a `Site` that ends with the module, for all tests that want the same."""
    with _starting(tmp_path_factory) as start_site:
        yield start_site


@contextmanager
def _starting(papers: pytest.TempPathFactory) -> Iterator[StartSite]:
    with ExitStack() as endings:

        def start_site(command: Command, **settings: Any) -> Site:
            site = Site(papers.mktemp("site"), command, **settings)
            endings.callback(site.stop)
            return site

        yield start_site


def _request(path: str, *, is_last: bool, version: str = "1.1") -> bytes:
    close = "Connection: close\r\n" if is_last else ""
    target = f"/{path.removeprefix('/')}"
    return f"GET {target} HTTP/{version}\r\nHost: site\r\n{close}\r\n".encode()


def _received(connection: socket.socket) -> bytes:
    chunk = connection.recv(65536)
    assert chunk, "the connection has ended before the response"
    return chunk


def _read_to_end(connection: socket.socket) -> bytes:
    chunks = []
    try:
        while chunk := connection.recv(65536):
            chunks.append(chunk)
    except ConnectionResetError:
        chunks.append(b"<reset>")
    return b"".join(chunks)
