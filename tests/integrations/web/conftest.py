"""Real servers in child processes, and raw requests to them.

A site is a module of `sites/`. It is served with or without us, and keeps a diary: one
line per slice, written by an observer. A server that has stopped writes no more of it.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which

import pytest

from workstealing.testing import wait_until
from workstealing.testing.plugin import missing

SITES = Path(__file__).parent / "sites"
_DATE = re.compile(rb"\r\ndate: [^\r]*", re.IGNORECASE)
_UVICORN = """
import socket, uvicorn
config = uvicorn.Config("{site}:app", log_level="critical", ws="websockets-sansio")
uvicorn.Server(config).run(sockets=[socket.socket(fileno={fd})])
"""


class Site:
    """A server process, and what it says."""

    def __init__(self, folder: Path, server: str, site: str, **settings: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._diary = folder / "diary"
        self._diary.touch()
        self._output = folder / "output"
        # A uWSGI worker that is asked to end gracefully may stay for ever.
        self._end = signal.SIGINT if server == "uwsgi" else signal.SIGTERM
        fd = self._listener.fileno()
        program = which(
            "uwsgi",
            path=f"{Path(sys.executable).parent}{os.pathsep}"
            f"{os.environ.get('PATH', '')}",
        )
        gunicorn = [
            "-m",
            "gunicorn",
            "-w",
            "2",
            "--graceful-timeout",
            "5",
            "-b",
            f"fd://{fd}",
            f"{site}:app",
        ]
        commands = {
            "gunicorn": [sys.executable, *gunicorn, "--no-control-socket"],
            "gunicorn-hooks": [
                sys.executable, *gunicorn, "-c", f"{SITES}/gunicorn_hooks.py",
                "--no-control-socket",
            ],
            "gunicorn-threads": [
                sys.executable, *gunicorn, "--threads", "2", "--no-control-socket"
            ],
            "uvicorn": [sys.executable, "-c", _UVICORN.format(site=site, fd=fd)],
            "uwsgi": [
                str(program), "--http-socket", f"fd://{fd}", "--module", f"{site}:app",
                "--master", "--no-orphans", "--worker-reload-mercy", "5",
                "--processes", "2",
                "--pythonpath", str(SITES), "-H", sys.prefix,
            ],
        }  # fmt: skip
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                commands[server],
                cwd=SITES,
                env={**os.environ, "DIARY": str(self._diary), **settings},
                stdout=output,
                stderr=output,
                pass_fds=(fd,),
            )

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def connect(self) -> socket.socket:
        """Connect; who connects before the server is ready waits in the backlog."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def get(self, *paths: str, version: str = "1.1") -> bytes:
        """Return all that is answered to requests on one connection, but dates."""
        with self.connect() as connection:
            for number, path in enumerate(paths, 1):
                close = "Connection: close\r\n" if number == len(paths) else ""
                connection.sendall(_request(path, close, version))
            return _DATE.sub(b"", _read_to_end(connection))

    def get_exactly(self, path: str, length: int) -> bytes:
        """Return what is answered, without waiting for the end of the connection."""
        answer = b""
        with self.connect() as connection:
            connection.sendall(_request(path, "Connection: close\r\n", "1.1"))
            while len(_DATE.sub(b"", answer)) < length:
                chunk = connection.recv(65536)
                assert chunk, answer
                answer += chunk
        return _DATE.sub(b"", answer)

    def hang_up(self, path: str) -> None:
        """Ask for something long, and go away when it comes."""
        with self.connect() as connection:
            connection.sendall(_request(path, "", "1.1"))
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


Serve = Callable[..., Site]


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Serve sites until the test ends."""
    sites: list[Site] = []

    def serve(server: str, site: str, **settings: str) -> Site:
        if server == "uwsgi" and not (Path(sys.executable).parent / "uwsgi").exists():
            pytest.skip("uWSGI is not installed: run  pip install uwsgi")
        sites.append(Site(tmp_path_factory.mktemp(site), server, site, **settings))
        return sites[-1]

    yield serve
    for site in sites:
        site.stop()


@pytest.fixture(autouse=True, scope="session")
def _frameworks() -> None:
    for name in ("flask", "gunicorn", "starlette", "fastapi", "uvicorn", "websockets"):
        if not _is_installed(name):
            missing(f"{name} is not installed: run  pip install --group frameworks")


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def _request(path: str, close: str, version: str) -> bytes:
    return f"GET {path} HTTP/{version}\r\nHost: site\r\n{close}\r\n".encode()


def _read_to_end(connection: socket.socket) -> bytes:
    chunks = []
    try:
        while chunk := connection.recv(65536):
            chunks.append(chunk)
    except ConnectionResetError:
        chunks.append(b"<reset>")
    return b"".join(chunks)
