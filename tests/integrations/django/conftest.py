"""A real Django project, under real servers and its own `manage.py`.

It keeps a diary: one line per slice, written by an observer.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from workstealing.testing import wait_until
from workstealing.testing.plugin import missing

PROJECT = Path(__file__).parent / "project"
_DATE = re.compile(rb"\r\n(date|expires|age): [^\r]*", re.IGNORECASE)
_UVICORN = """
import socket, uvicorn
config = uvicorn.Config("bazaar.asgi:app", log_level="critical", lifespan="off")
uvicorn.Server(config).run(sockets=[socket.socket(fileno={fd})])
"""


class Site:
    """A server process, and what it says."""

    def __init__(self, folder: Path, server: str, **settings: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._diary = folder / "diary"
        self._diary.touch()
        self._output = folder / "output"
        fd = self._listener.fileno()
        gunicorn = [
            *("-m", "gunicorn", "-w", "2", "-b", f"fd://{fd}", "bazaar.wsgi:app"),
            "--no-control-socket",
        ]
        arguments = {
            "gunicorn": gunicorn,
            "gunicorn-preload": [*gunicorn, "--preload"],
            "uvicorn": ["-c", _UVICORN.format(fd=fd)],
        }
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *arguments[server]],
                cwd=PROJECT,
                env=environment(DIARY=str(self._diary), **settings),
                stdout=output,
                stderr=output,
                pass_fds=(fd,),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def get(self, *paths: str, version: str = "1.1") -> bytes:
        """Return all that is answered to requests on one connection, but the time."""
        with self._connect() as connection:
            for number, path in enumerate(paths, 1):
                close = "Connection: close\r\n" if number == len(paths) else ""
                connection.sendall(_request(path, close, version))
            return _DATE.sub(b"", _read_to_end(connection))

    def get_exactly(self, path: str, length: int) -> bytes:
        """Return what is answered, without waiting for the end of the connection."""
        answer = b""
        with self._connect() as connection:
            connection.sendall(_request(path, "Connection: close\r\n", "1.1"))
            while len(_DATE.sub(b"", answer)) < length:
                chunk = connection.recv(65536)
                assert chunk, answer
                answer += chunk
        return _DATE.sub(b"", answer)

    def hang_up(self, path: str) -> None:
        """Ask for something long, and go away when it comes."""
        with self._connect() as connection:
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
            self._process.send_signal(signal.SIGTERM)
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

    def _connect(self) -> socket.socket:
        # Who connects before the server is ready waits in the backlog.
        address = self._listener.getsockname()
        return socket.create_connection(address, timeout=30)


Serve = Callable[..., Site]


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Serve the project until the test ends."""
    sites: list[Site] = []

    def serve(server: str, **settings: str) -> Site:
        sites.append(Site(tmp_path_factory.mktemp("site"), server, **settings))
        return sites[-1]

    yield serve
    for site in sites:
        site.stop()


@pytest.fixture
def manage(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `manage.py`, or a program after `-c`, in the project."""
    (tmp_path / "diary").touch()

    def manage(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        program = words if words[0] == "-c" else ("manage.py", *words)
        return subprocess.run(
            [sys.executable, *program],
            cwd=PROJECT,
            env=environment(DIARY=str(tmp_path / "diary"), **settings),
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return manage


@pytest.fixture(autouse=True, scope="session")
def _frameworks() -> None:
    for name in ("django", "django_redis", "gunicorn", "uvicorn"):
        if find_spec(name) is None:
            missing(f"{name} is not installed: run  pip install --group frameworks")


def environment(**settings: str) -> dict[str, str]:
    unwanted = ("WORKSTEALING_URL", "REDIS_URL")
    kept = {name: v for name, v in os.environ.items() if name not in unwanted}
    here = {"DJANGO_SETTINGS_MODULE": "bazaar.settings", "PYTHONPATH": str(_ROOT)}
    return {**kept, **here, **settings}


_ROOT = Path(__file__).parents[3]


def _request(path: str, close: str, version: str) -> bytes:
    return f"GET /{path} HTTP/{version}\r\nHost: site\r\n{close}\r\n".encode()


def _read_to_end(connection: socket.socket) -> bytes:
    chunks = []
    try:
        while chunk := connection.recv(65536):
            chunks.append(chunk)
    except ConnectionResetError:
        chunks.append(b"<reset>")
    return b"".join(chunks)
