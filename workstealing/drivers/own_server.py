"""A real Redis or Valkey server of this process's own: for a test, for a rehearsal.

Each server has a private folder and ends with the process that started it: at exit by
`atexit`, and after a SIGKILL by a small shell that waits for the end of its parent.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom
from typing import TypeVar

from workstealing.drivers.embedded import server_binary
from workstealing.drivers.embedded_keeper import answers

__all__ = ("HOST", "Server", "ServerStartError", "free_port", "wait_until")

HOST = "127.0.0.1"

_START_SECONDS = 20.0
_PORT_ATTEMPTS = 5
_BUS_OFFSET = 10_000
# Below the range from which systems draw the ports of outgoing connections, and low
# enough that the bus port of a Cluster node is below it too.
_PORTS = range(11_000, 22_000)
# Ends when the writing end of its stdin is gone, however the writer ended.
_WATCH = 'read -r _; kill -9 "$1" 2>/dev/null; rm -rf "$2"'

T = TypeVar("T")


class ServerStartError(RuntimeError):
    """The server ended, or did not answer in time; its log is in the message."""


class Server:
    """One server, on a Unix socket or, with `tcp=True`, on a free port of 127.0.0.1.

    Other keywords are options of its configuration: `maxmemory="2mb"`,
    `appendonly="yes"`, `maxmemory_policy="noeviction"`. By default nothing is written
    to disk. Use it with `with`, or call `start()` and `stop()`.
    """

    def __init__(self, *, tcp: bool = False, **options: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ws-"))
        self.port = free_port() if tcp else 0
        self._options: dict[str, object] = {"save": "", "appendonly": "no", **options}
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        self._reserved: socket.socket | None = None
        self._owner = os.getpid()

    @property
    def address(self) -> str | tuple[str, int]:
        """Where it listens: a path, or a host and a port."""
        return (HOST, self.port) if self.port else str(self.folder / "socket")

    @property
    def url(self) -> str:
        """The URL for `connect()`."""
        if self.port:
            return f"redis://{HOST}:{self.port}/0"
        return f"unix://{self.address}?db=0"

    @property
    def pid(self) -> int:
        """The process id; only of a started server."""
        return self._running().pid

    @property
    def log(self) -> str:
        """The log of the server so far."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> Server:
        """Start, and wait until it answers."""
        if self._process is not None:
            return self
        atexit.register(self.stop)
        for attempt in range(_PORT_ATTEMPTS):
            try:
                self._launch()
            except ServerStartError:
                # Another process may have taken the port in the meantime.
                if "already in use" not in self.log or attempt == _PORT_ATTEMPTS - 1:
                    self.stop()
                    raise
                self.port = free_port()
            else:
                break
        return self

    def stop(self) -> None:
        """End it and remove its folder; does nothing if it has been stopped."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.stop)
        self._end(signal.SIGTERM)
        self._release_port()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """End it with SIGKILL; folder and port stay its own, so it can `restart()`."""
        self._end(signal.SIGKILL)
        if self.port:
            self._reserved = _reserve(self.port)

    def restart(self) -> None:
        """Shut it down and start it at the same address, with its files."""
        self._end(signal.SIGTERM)
        self._launch()

    def pause(self) -> None:
        """Stop it from answering; connections stay open."""
        os.kill(self._running().pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it answer again."""
        os.kill(self._running().pid, signal.SIGCONT)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _launch(self) -> None:
        self._release_port()
        with (self.folder / "log").open("wb") as log:
            process = self._process = subprocess.Popen(  # noqa: S603 - our own binary
                [str(server_binary()), *self._arguments()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._watch = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", _WATCH, "sh", str(process.pid), str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            wait_until(
                lambda: process.poll() is not None or answers(self.address),
                _START_SECONDS,
                "a server to answer",
            )
        except TimeoutError:
            self._end(signal.SIGKILL)
            raise ServerStartError(self.log) from None
        if process.poll() is not None:
            self._end(signal.SIGKILL)
            raise ServerStartError(self.log)

    def _arguments(self) -> list[str]:
        arguments = ["--port", str(self.port), "--dir", str(self.folder)]
        if self.port:
            arguments += ["--bind", HOST]
        else:
            arguments += ["--unixsocket", str(self.address), "--unixsocketperm", "700"]
        for name, value in self._options.items():
            # Servers before 7.0 take the words of a value only one by one.
            words = str(value).split() or [""]
            arguments += ["--" + name.replace("_", "-"), *words]
        return arguments

    def _end(self, with_signal: signal.Signals) -> None:
        # The watcher ends first: it must not kill a pid that may be reused.
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.kill()
            self._watch.wait()
            self._watch.stdin.close()
            self._watch = None
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(with_signal)
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _release_port(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server is not running: call start() first")
        return self._process


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free, and whose bus port is free too."""
    draw = SystemRandom()
    while True:
        port = draw.choice(_PORTS)
        if _is_free(port) and _is_free(port + _BUS_OFFSET):
            return port


def wait_until(condition: Callable[[], T], seconds: float, what: str) -> T:
    """Poll a condition until it is true; return its value.

    Raises:
        TimeoutError: *seconds* have passed.
    """
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= end:
            raise TimeoutError(f"waited {seconds} seconds for {what}")
        time.sleep(0.01)


def _reserve(port: int) -> socket.socket | None:
    """Keep a port from others, who would answer in the place of a dead server."""
    reserved = socket.socket()
    try:
        # Connections that were just closed are no obstacle, but another socket is.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((HOST, port))
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except OSError:
        reserved.close()
        return None
    return reserved


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
