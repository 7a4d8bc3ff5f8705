"""Starts the processes of the fleet, and starts them again when they have died.

Nobody is to end by himself: one who was not told to, or does not end when he is told,
has broken a promise.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from soak.memory import MemoryWatch

__all__ = ("Fleet", "Member")

_KINDS = {
    "producer": 3,
    "worker": 2,
    "threads": 1,
    "asyncio": 1,
    "processes": 1,
    "host": 2,
}
# A stop timeout of 5 s, a server that does not answer, and a machine that is busy.
_STOP_SECONDS = 45.0
_POLL = 0.1
_LOOK = 1.0


class Member:
    """A place in the fleet, and the process that has it now."""

    def __init__(self, kind: str, number: int) -> None:
        self.kind = kind
        self.name = f"{kind}{number}"
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.is_told = False
        """Its end is meant."""

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it is there."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def children(self) -> list[int]:
        """Return the ids of its child processes."""
        if self.process is None:
            return []
        pid = self.process.pid
        with suppress(OSError):
            found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            return sorted(map(int, found.split()))
        return []


class Fleet:
    """All processes but the servers."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        settings: Mapping[str, str],
        seconds_without_replica: float,
    ) -> None:
        self._folder = folder
        self._seed = seed
        # A worker has no stop timeout, and keeps its reports until a replica has them.
        self._stop_seconds = _STOP_SECONDS + seconds_without_replica
        self._environment = {
            **os.environ,
            **settings,
            "WORKSTEALING_EMBEDDED": "never",
            "SOAK_FLEET": str(folder),
            "PYTHONPATH": str(Path(__file__).parents[1]),
        }
        self.members = [
            Member(kind, number)
            for kind, count in _KINDS.items()
            for number in range(count)
        ]
        self.broken: list[str] = []
        """What members did that they must not."""
        self.memory = MemoryWatch()
        """What they take of it."""
        self._next_look = 0.0
        self._is_over = threading.Event()
        self._mutex = threading.Lock()
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        """Start all."""
        for member in self.members:
            self._start(member)
        self._keeper.start()

    def terminate(self, member: Member) -> None:
        """Ask one to end, and wait until he has."""
        with self._mutex:
            member.is_told = True
            member.send(signal.SIGCONT)
            member.send(signal.SIGTERM)
            process = member.process
        if process is None:
            return
        try:
            process.wait(self._stop_seconds)
        except subprocess.TimeoutExpired:
            self.broken.append(
                f"{member.name} did not end within {self._stop_seconds:.0f} s of"
                f" SIGTERM: see the end of {self._log(member)}"
            )
            # Its log tells where all its threads are.
            member.send(signal.SIGUSR1)
            time.sleep(1.0)
            process.kill()
            process.wait()

    def kill(self, member: Member) -> None:
        """End one without a word."""
        with self._mutex:
            member.is_told = True
            member.send(signal.SIGKILL)

    def dismiss(self, kinds: tuple[str, ...]) -> None:
        """End all of some kinds for good, all at the same time."""
        leaving = [member for member in self.members if member.kind in kinds]
        with self._mutex:
            self.members = [one for one in self.members if one not in leaving]
        threads = [
            threading.Thread(target=self.terminate, args=(member,))
            for member in leaving
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def end(self) -> None:
        """End whoever is left, however that has to be done."""
        self._is_over.set()
        if self._keeper.ident:
            self._keeper.join()
        for member in self.members:
            member.send(signal.SIGKILL)
            if member.process is not None:
                member.process.wait()

    def wait_for_none(self, seconds: float) -> list[int]:
        """Wait until nobody is left, children included; return who is."""
        end = time.monotonic() + seconds
        while (left := self._stragglers()) and time.monotonic() < end:
            time.sleep(_POLL)
        return left

    def _keep(self) -> None:
        while not self._is_over.wait(_POLL):
            with self._mutex:
                for member in self.members:
                    if member.process is not None and member.process.poll() is not None:
                        self._replace(member, member.process.returncode)
                self._look_at_memory()

    def _look_at_memory(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK
        for member in self.members:
            if member.process is not None:
                pids = [member.process.pid, *member.children()]
                self.memory.look(member.kind, self._log(member).stem, pids, now)

    def _replace(self, member: Member, code: int) -> None:
        if not member.is_told:
            log = self._log(member)
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            self.broken.append(
                f"{member.name} ended by itself with {code}: {' '.join(last)} ({log})"
            )
        self._start(member)

    def _start(self, member: Member) -> None:
        member.starts += 1
        member.is_told = False
        with self._log(member).open("wb") as log:
            member.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "soak.member", member.kind),
                    f"{member.name}-{member.starts}",
                    f"{self._seed} {member.name} {member.starts}",
                ],
                stdout=log,
                stderr=log,
                env=self._environment,
            )

    def _log(self, member: Member) -> Path:
        return self._folder / f"{member.name}-{member.starts}.log"

    def _stragglers(self) -> list[int]:
        mark = f"SOAK_FLEET={self._folder}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found
