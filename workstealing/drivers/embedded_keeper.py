"""The process that starts the embedded server and ends it after its last user.

Run by its path, as `python embedded_keeper.py FOLDER SOCKET SERVER OPTION…`, so it
imports nothing of this package. Each user holds a shared lock on `FOLDER/users`, which
the kernel drops when the user dies, however it dies. The keeper tries the exclusive
lock now and then: when it gets it, nobody is left. A second keeper of a folder ends at
once, because keeper and server hold `FOLDER/keeper` as long as one of them lives. Where
the server listens stands in `FOLDER/address`. The keeper detaches itself, so that no
user has a child that it did not ask for.
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
_POLL_SECONDS = 0.01
_START_SECONDS = 10.0
_END_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


def keep(folder: Path, address: Path, command: list[str]) -> None:
    """Keep one server running on a socket for as long as it has users."""
    keeper = _open(folder / "keeper")
    if not locked(keeper, fcntl.LOCK_EX):
        return
    # It may name another server, when the folder is a copy.
    address_file = folder / "address"
    address_file.unlink(missing_ok=True)
    # The child shares the lock; the process that started us need not wait for it.
    if os.fork():
        return
    os.setsid()
    users = _open(folder / "users")
    server: subprocess.Popen[bytes] | None = None
    while not locked(users, fcntl.LOCK_EX):
        if server is not None and not address.exists():
            # Nobody can reach it any more.
            _end(server)
        if not address.parent.exists():
            # Users make and check such folders, and then start another keeper.
            break
        if server is None or server.poll() is not None:
            for stale in (address_file, address):
                stale.unlink(missing_ok=True)
            server = _started(command, folder / "log", keeper)
            _wait_for_socket(address, server)
            address_file.write_bytes(os.fsencode(address))
        time.sleep(_LOOK_SECONDS)
    # New users wait for the lock meanwhile, and then start a server of their own.
    if server is not None:
        _end(server)


def locked(descriptor: int, kind: int) -> bool:
    """Take a lock of that kind, if it can be had at once."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def answers(address: str | tuple[str, int], timeout: float = 1.0) -> bool:
    """Return whether a server at a socket's path, or host and port, takes commands."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(address)
            connection.sendall(b"PING\r\n")
            # A server that asks for a password is up; one that is LOADING is not yet.
            return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


def _open(path: Path) -> int:
    # Lock files are never removed: two processes could then lock two files.
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _started(command: list[str], log: Path, lock: int) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - the binary that our parent found
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # No other keeper may start one on the same data, should we be killed.
            pass_fds=(lock,),
            # This process has one thread, so it is safe to run code before exec.
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_for_socket(address: Path, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while not address.exists() and server.poll() is None and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    keep(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
