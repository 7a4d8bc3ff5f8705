"""The messages between the processes of a rehearsal: one JSON object to a line.

The user's process tells the story server what to import and which stories to run. The
story server forks workers, which report where they are, and tells them when to go on.
"""

from __future__ import annotations

import socket
from typing import Literal, TypeVar

import msgspec

from workstealing.rehearsing.stories import RehearsalStory

__all__ = (
    "Continue",
    "ProcessChannel",
    "RunStory",
    "StoryFindings",
    "TaskSetup",
    "WorkerFindings",
)

_CHUNK = 65_536
T = TypeVar("T", bound=msgspec.Struct)


class TaskSetup(msgspec.Struct, frozen=True):
    """Which task is rehearsed, and how a new process imports it."""

    main: dict[str, str]
    """The main script, as multiprocessing describes it, if the task is in it."""
    modules: list[str]
    """The modules to import; the first one has the queue."""
    files: dict[str, str]
    """The files of the modules, in case they cannot be imported by name."""
    queue: str
    """The name of the queue in its module."""
    task: str
    version: int
    payload: str
    principal: str
    roles: list[str]
    url: str
    """The server of the rehearsal."""


class RunStory(msgspec.Struct, frozen=True):
    """Have a story run, with a task of this id."""

    story: RehearsalStory
    task_id: str


class StoryFindings(msgspec.Struct):
    """The report of the story server: that it is ready, or how a story went."""

    problem: str = ""
    """Why it could not be run, or what went wrong unexpectedly."""
    where: str = ""
    """Where it happened; empty if the task did not come that far."""
    is_reached: bool = True
    """Whether the task came to the point of the story."""
    is_blocked: bool = False
    """Whether one process had to wait for the other, which was held."""
    steps: int = 0
    """Steps that the first process took."""
    saves: int = 0
    begun: int = 0
    """How often the task was begun, by all processes together."""
    ignored: str = ""
    """Where it went on after it was told to stop; empty if it stopped."""


class WorkerFindings(msgspec.Struct):
    """The report of a worker: it is held, about to be killed, or has ended."""

    what: Literal["held", "dying", "ended", "failed"]
    where: str = ""
    """Where that happened; or why the worker failed."""
    steps: int = 0
    saves: int = 0
    begun: int = 0
    ignored: str = ""


class Continue(msgspec.Struct, frozen=True):
    """Let a worker that waits go on."""

    learns_of_it: bool
    """Whether it learns first that its lease is lost."""


class ProcessChannel:
    """One end of a channel between two processes."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._received = b""

    @classmethod
    def pair(cls) -> tuple[ProcessChannel, ProcessChannel]:
        """Return both ends of a new channel."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    def fileno(self) -> int:
        """Return its number, to wait for it with others."""
        return self._end.fileno()

    def send(self, message: msgspec.Struct) -> None:
        """Send a message; `OSError` if the other process is gone."""
        self._end.sendall(msgspec.json.encode(message) + b"\n")

    def receive(self, kind: type[T], seconds: float | None = None) -> T | None:
        """Wait for a message; None if the other process is gone.

        Raises:
            TimeoutError: none came within so many seconds.
        """
        self._end.settimeout(seconds)
        while b"\n" not in self._received:
            try:
                data = self._end.recv(_CHUNK)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self._received += data
        message, _, self._received = self._received.partition(b"\n")
        return msgspec.json.decode(message, type=kind)

    def close(self) -> None:
        """Close this end."""
        self._end.close()
