"""What a worker holds of a task, what it makes of it, and what it tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.restart import Restart, stricter
from workstealing.tasks.task import TaskDefinition

__all__ = ("Attempt", "Report", "Taken", "Unable", "Verdict")

Verdict = Literal["done", "cancelled", "failed", "dead", "forged", "retry", "back"]


@dataclass(frozen=True, slots=True)
class Taken:
    """A task that was given to a worker, and the token it must name in its report."""

    id: str
    token: str
    attempt: int
    envelope: bytes


@dataclass(frozen=True, slots=True)
class Report:
    """How a task that a worker held has ended, or why it comes back."""

    id: str
    token: str
    verdict: Verdict
    outcome: bytes = b""
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Unable:
    """A task that this process does not know, and what it would need."""

    task: Taken
    ability: str


class Attempt:
    """One try at a task: all that is needed to run it and to report on it."""

    __slots__ = (
        "_claims",
        "arguments",
        "began_ns",
        "context",
        "definition",
        "envelope",
        "is_interrupted",
        "is_overdue",
        "task",
    )

    def __init__(
        self,
        task: Taken,
        envelope: Envelope,
        definition: TaskDefinition,
        arguments: dict[str, Any],
        context: ExecutionContext,
        began_ns: int,
    ) -> None:
        self.task = task
        self.envelope = envelope
        self.definition = definition
        self.arguments = arguments
        self.context = context
        self.began_ns = began_ns
        self.is_interrupted = False
        """It did not come to an end by itself, and was made to."""
        self.is_overdue = False
        """The reason was that it ran for longer than it may."""
        self._claims = [True]

    @property
    def timeout(self) -> float | None:
        """How many seconds it may run."""
        return self.envelope.timeout or self.definition.timeout

    @property
    def runs_once(self) -> bool:
        """Whether it must not be run again, whatever happens."""
        return self.definition.restart == "never" or self.envelope.restart == "never"

    @property
    def restart(self) -> Restart:
        """After what it is run again: as its caller and the task say together."""
        return stricter(self.envelope.restart, self.definition.restart)

    def claim(self) -> bool:
        """Be the one who reports on it: true for the first who asks."""
        try:
            return self._claims.pop()
        except IndexError:
            return False
