"""A task on its way through a worker: delivered, attempted, reported.

`Delivery` is what Redis gave, `Attempt` is that made ready to run, and `Report` is what
goes back. A delivery that this process cannot run is `Unroutable` here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.envelope import After, Envelope
from workstealing.tasks.retry import Restart, stricter

__all__ = (
    "Attempt",
    "Delivery",
    "Ending",
    "Report",
    "Unfed",
    "Unroutable",
    "ValueOrError",
    "Verdict",
    "value_or_error",
    "within_its_time",
)

T = TypeVar("T")

ValueOrError: TypeAlias = tuple[Any, BaseException | None]
"""What was returned, or what was raised."""

Verdict = Literal[
    "done", "cancelled", "expired", "failed", "dead", "forged", "retry", "back"
]


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A task that Redis gave to a worker, with the token that its report must name."""

    id: str
    token: str
    attempt: int
    envelope: bytes
    argument: bytes | None = None
    """Of a step: what those before it returned, as JSON, once it was read."""
    shard: int = 0
    """Where it is from."""
    since_ms: int = 0
    """When it was put back into the queue, by the clock of the server; 0: never."""

    def waits_since_ms(self, envelope: Envelope) -> int:
        """Return since when it has waited for this attempt; 0 if nobody knows."""
        is_step = envelope.after is not None
        if self.since_ms or self.attempt > 1 or is_step:
            # Nothing notes when it was the turn of a step.
            return self.since_ms
        return envelope.due or envelope.at


class Report(msgspec.Struct, frozen=True, gc=False):
    """How a task has ended, or why it goes back to the queue."""

    id: str
    token: str
    verdict: Verdict
    outcome: bytes = b""
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Unroutable:
    """A task that this process does not know, and the ability it takes to run it."""

    task: Delivery
    ability: str


@dataclass(frozen=True, slots=True)
class Unfed:
    """A step whose argument, the result of those before it, is still to be read."""

    task: Delivery
    after: After


Ending = Report | Unroutable | None
"""What comes of a delivery; None: nothing is to be reported, another worker has it."""


class Attempt(msgspec.Struct, eq=False):
    """One try at a task: all that is needed to run it and to report on it."""

    task: Delivery
    envelope: Envelope
    definition: TaskDefinition
    arguments: dict[str, Any]
    context: ExecutionContext
    began_ns: int
    is_interrupted: bool = False
    """It was made to stop: by its time limit, a cancellation or a stop."""
    is_overdue: bool = False
    """It was made to stop because it ran into its time limit."""

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


async def within_its_time(attempt: Attempt, coroutine: Coroutine[Any, Any, T]) -> T:
    """Await the coroutine of an attempt; cancel it when its time limit is over."""
    task, seconds = asyncio.current_task(), attempt.timeout
    if task is None or seconds is None:
        return await coroutine

    def end() -> None:
        attempt.is_interrupted = attempt.is_overdue = True
        task.cancel()

    limit = asyncio.get_running_loop().call_later(seconds, end)
    try:
        return await coroutine
    finally:
        limit.cancel()


async def value_or_error(awaitable: Awaitable[Any]) -> ValueOrError:
    """Await code of the user in an asyncio task of its own, and catch what it raises.

    asyncio lets `SystemExit` and `KeyboardInterrupt` of a task escape from its loop,
    past whoever awaits that task.
    """
    try:
        return await awaitable, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - whoever awaits it decides
        return None, error
