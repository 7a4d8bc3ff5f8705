"""The server of a rehearsal: a Redis of its own, emptied before each story.

What it holds after a story is all that the story has left in any queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any

from workstealing.drivers.connect import driver_source
from workstealing.drivers.own_server import Server
from workstealing.errors import BadOutcome
from workstealing.queue.keys import QueueKeys
from workstealing.queue.producer_calls import read_outcomes
from workstealing.queue.steps import RedisCommand
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.outcome import TaskOutcome

__all__ = ("InQueues", "RehearsalServer")


@dataclass(frozen=True, slots=True)
class InQueues:
    """What a story has left in the queues."""

    outcome: TaskOutcome | None
    """How the task ended; None if it has not."""
    submitted: tuple[str, ...]
    """The tasks that it submitted, with their arguments, in alphabetical order."""


class RehearsalServer:
    """A server for the rehearsal alone, stopped at its end."""

    def __init__(self) -> None:
        self._server = Server()
        self._source = driver_source(self._server.url, "tasks")

    @property
    def url(self) -> str:
        """Its address."""
        return self._server.url

    def clear(self) -> None:
        """Delete everything."""
        self._command("FLUSHALL")

    def look(self, keys: QueueKeys, task_id: str) -> InQueues:
        """Return what has become of a task, and what it has submitted."""
        (seen,) = self._source.driver.call(read_outcomes(keys, [task_id]))
        try:
            outcome = TaskOutcome.read(seen.outcome) if seen.outcome else None
        except BadOutcome:
            outcome = None
        submitted: list[str] = []
        for key in self._command("KEYS", "ws:{*}:task"):
            found: dict[bytes, bytes] = self._command("HGETALL", key)
            own = task_id.encode() if key.decode() == keys.task else b""
            submitted += [_shown(one) for name, one in found.items() if name != own]
        return InQueues(outcome, tuple(sorted(submitted)))

    def __enter__(self) -> RehearsalServer:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._source.close()
        self._server.stop()

    def _command(self, *parts: Any) -> Any:
        return self._source.driver.call(RedisCommand(parts, lambda reply: reply))


def _shown(envelope: bytes) -> str:
    read = Envelope.read_or_none(envelope)
    if read is None:
        return envelope.decode(errors="backslashreplace")
    return f"{read.name} {bytes(read.payload).decode()}"
