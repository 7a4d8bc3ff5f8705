"""The process that starts the embedded server and ends it after its last user.

Run by its path, as `python embedded_keeper.py FOLDER SERVER OPTION…`, so it imports
nothing of this package. Each user holds a shared lock on `FOLDER/users`, which the
kernel drops when the user dies, however it dies. The keeper tries the exclusive lock
now and then: when it gets it, nobody is left. A second keeper of a folder ends at once.
It detaches itself, so that no user has a child that it did not ask for.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

__all__ = ("answers", "keep", "locked")

_LOOK_SECONDS = 1.0
_END_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


def keep(folder: Path, command: list[str]) -> None:
    """Keep one server running on `folder/socket` for as long as it has users."""
    if not locked(_open(folder / "keeper"), fcntl.LOCK_EX):
        return
    # The child shares the lock; whoever started us need not wait, nor bury us.
    if os.fork():
        return
    os.setsid()
    users = _open(folder / "users")
    address = str(folder / "socket")
    server: subprocess.Popen[bytes] | None = None
    while not locked(users, fcntl.LOCK_EX):
        # It may answer without us: then its keeper died, and we take over.
        if (server is None or server.poll() is not None) and not answers(address):
            server = _started(command, folder / "log")
        time.sleep(_LOOK_SECONDS)
    # New users wait for the lock meanwhile, and then start a server of their own.
    _end(address, server)


def locked(descriptor: int, kind: int) -> bool:
    """Take a lock of that kind, if it can be had at once."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def answers(address: str | tuple[str, int], timeout: float = 1.0) -> bool:
    """Tell whether a server at a socket's path, or host and port, takes commands."""
    # A server that asks for a password is up; one that is LOADING is not yet.
    return _said(address, b"PING\r\n", timeout).startswith((b"+PONG", b"-NOAUTH"))


def _said(address: str | tuple[str, int], words: bytes, timeout: float) -> bytes:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(address)
            connection.sendall(words)
            return connection.recv(64)
        except OSError:
            return b""


def _open(path: Path) -> int:
    # Lock files are never removed: two processes could then lock two files.
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _started(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - the binary that our parent found
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # This process has one thread, so it is safe to run code before exec.
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(address: str, server: subprocess.Popen[bytes] | None) -> None:
    if server is None:
        # We took it over, so it is not our child.
        _said(address, b"SHUTDOWN NOSAVE\r\n", _END_SECONDS)
        return
    server.terminate()
    try:
        server.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    keep(Path(sys.argv[1]), sys.argv[2:])
