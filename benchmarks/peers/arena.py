"""Where libraries are measured: one server, one trace of tasks, processes of a library.

Everything that is started here is ended here, and nothing else is.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from benchmarks.peers.catalogue import Library
from benchmarks.peers.environments import python_of
from benchmarks.peers.process_settings import environment
from benchmarks.peers.task_bodies import count_records, records
from workstealing.drivers.embedded import server_binary

__all__ = ("Arena", "LibraryFailed", "Snapshot", "StartedWorker", "server_for_peers")

_READY_SECONDS = 10.0
_CALL_SECONDS = 300.0
# What the driver itself and the opening of a connection cause.
_NOT_COUNTED = {
    *("info", "flushall", "ping", "hello", "select", "command", "command|docs"),
    *("client|setinfo", "client|setname", "client|id", "config|get"),
    *("script|load", "function|load"),
}


class LibraryFailed(Exception):
    """A library did not do what it should; the message says what it did."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the server has done so far."""

    commands: int
    reads: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class StartedWorker:
    """A worker process, and when it was started."""

    process: subprocess.Popen[bytes]
    started_at: float


def server_for_peers() -> Path:
    """Return the Redis on PATH, else the Valkey that comes as a package."""
    found = shutil.which("redis-server")
    return Path(found) if found else server_binary()


class Arena:
    """A server without persistence, emptied before each measurement."""

    def __init__(self, root: Path, server: Path) -> None:
        self._root = root
        # In memory where that exists: a record must not wait for a disk.
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self._folder = Path(tempfile.mkdtemp(prefix="peers-", dir=memory))
        self._trace = self._folder / "trace"
        self._log = self._folder / "workers.log"
        self._server_binary = server
        self._workers: list[StartedWorker] = []
        port = _free_port()
        self._url = f"redis://127.0.0.1:{port}/0"
        self._client: Any = redis.Redis.from_url(self._url)
        self._server = subprocess.Popen(
            [
                *(str(server), "--bind", "127.0.0.1", "--port", str(port)),
                *("--save", "", "--appendonly", "no", "--dir", str(self._folder)),
                *("--loglevel", "warning"),
            ],
            stdout=subprocess.DEVNULL,
        )

    def __enter__(self) -> Arena:
        until = time.monotonic() + _READY_SECONDS
        while True:
            with suppress(redis.ConnectionError):
                self._client.ping()
                return self
            if time.monotonic() > until or self._server.poll() is not None:
                self.__exit__()
                raise RuntimeError(f"{self._server_binary} did not start")
            time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        self._client.close()
        self._server.terminate()
        self._server.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def server_version(self) -> str:
        """The server's name and version."""
        about = self._client.info("server")
        if "valkey_version" in about:
            return f"Valkey {about['valkey_version']}"
        return f"Redis {about['redis_version']}"

    def empty(self) -> None:
        """Forget all keys and all tasks that ran."""
        self._client.flushall()
        self._trace.write_bytes(b"")
        time.sleep(0.1)

    def snapshot(self) -> Snapshot:
        """Count what the server has done so far."""
        calls = {
            name.removeprefix("cmdstat_"): entry["calls"]
            for name, entry in self._client.info("commandstats").items()
        }
        cpu = self._client.info("cpu")
        return Snapshot(
            commands=sum(n for name, n in calls.items() if name not in _NOT_COUNTED),
            reads=self._client.info("stats")["total_reads_processed"],
            cpu_seconds=cpu["used_cpu_sys"] + cpu["used_cpu_user"],
        )

    def memory(self) -> int:
        """Return the bytes in use once no client but ours has a buffer."""
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            if self._client.info("clients")["connected_clients"] <= 1:
                break
            time.sleep(0.02)
        time.sleep(0.05)
        return int(self._client.info("memory")["used_memory"])

    def count(self) -> int:
        """Return how often a task has run."""
        return count_records(self._trace)

    def records(self) -> list[tuple[int, float, float]]:
        """Return number, start and end of each task that has run."""
        return list(records(self._trace))

    def call(
        self, library: Library, settings: Mapping[str, Any], *arguments: object
    ) -> dict[str, Any]:
        """Have a process of the library do something; return what it printed."""
        done = subprocess.run(
            [
                *(str(python_of(self._root, library)), "-m"),
                *("benchmarks.peers.producer_process", library.name),
                *map(str, arguments),
            ],
            env=self._environment(settings),
            cwd=self._root,
            capture_output=True,
            text=True,
            timeout=_CALL_SECONDS,
            check=False,
        )
        if done.returncode or not done.stdout.strip():
            raise LibraryFailed(f"{arguments[0]} failed: {done.stderr[-800:]}")
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return found

    def start(self, library: Library, settings: Mapping[str, Any]) -> StartedWorker:
        """Start a worker in a session of its own."""
        started_at = time.monotonic()
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                self._worker_command(library, settings),
                env=self._environment(settings) | _formatted(library, settings),
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        worker = StartedWorker(process, started_at)
        self._workers.append(worker)
        return worker

    def kill(self, worker: StartedWorker) -> None:
        """End a worker and all that it has started with SIGKILL."""
        # Some have left the group, and cannot be found without their parent.
        below = _descendants(worker.process.pid)
        with suppress(ProcessLookupError):
            os.killpg(worker.process.pid, signal.SIGKILL)
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        worker.process.wait()
        self._workers.remove(worker)

    def kill_all(self) -> None:
        """End all workers, after a failure."""
        for worker in list(self._workers):
            self.kill(worker)

    def await_tasks(self, count: int, seconds: float) -> None:
        """Wait until so many tasks have run.

        Raises:
            LibraryFailed: not in time, or a worker has ended.
        """
        until = time.monotonic() + seconds
        while (seen := self.count()) < count:
            ended = any(worker.process.poll() is not None for worker in self._workers)
            if ended or time.monotonic() > until:
                last = self._log.read_text(errors="replace")[-800:]
                raise LibraryFailed(f"{seen} of {count} tasks were run; {last}")
            time.sleep(0.01)

    def _worker_command(
        self, library: Library, settings: Mapping[str, Any]
    ) -> list[str]:
        python = python_of(self._root, library)
        if library.command is None:
            module = "benchmarks.peers.worker_process"
            return [str(python), "-m", module, library.name]
        command, *arguments = library.command.format(**settings).split()
        return [str(python.parent / command), *arguments]

    def _environment(self, settings: Mapping[str, Any]) -> dict[str, str]:
        return environment(self._root, self._url, self._trace, settings)


def _formatted(library: Library, settings: Mapping[str, Any]) -> dict[str, str]:
    return {name: value.format(**settings) for name, value in library.variables.items()}


def _descendants(pid: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    children: dict[int, list[int]] = {}
    for line in listed.stdout.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found, to_visit = [], [pid]
    while to_visit:
        below = children.get(to_visit.pop(), [])
        found += below
        to_visit += below
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
