"""Operations as values, procedures as generators.

A `Step` says what is wanted; a driver does it and sends the answer back. A `Flow` is
a procedure of several steps. Because neither does I/O, one body of logic serves the
sync and the asyncio face, and a test can play Redis by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from workstealing.queue.scripts import Script

__all__ = (
    "SINGLE",
    "Argument",
    "Call",
    "Command",
    "Consult",
    "Expect",
    "Expected",
    "Flow",
    "Hear",
    "Listen",
    "Nap",
    "Nodes",
    "Step",
    "Volley",
    "ask",
)

T = TypeVar("T")

Argument: TypeAlias = str | bytes | int | float

SINGLE = ("single",)
"""What `Nodes` is answered with where there is no Cluster."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """Run one script; all its keys are declared and share a hash slot."""

    script: Script
    keys: tuple[str, ...]
    arguments: tuple[Argument, ...]
    parse: Callable[[Any], T]
    is_raw: bool = False
    """Replies are bytes that may be no text, whatever the client was told to return."""


@dataclass(frozen=True, slots=True)
class Volley(Generic[T]):
    """Run scripts one after another, each without waiting for the one before.

    Answered with all their answers. A call is made while the server works on the one
    before, and is sent even if that one turns out to be refused.
    """

    calls: Iterable[Call[T]]


@dataclass(frozen=True, slots=True)
class Command(Generic[T]):
    """Send one plain command, to a node of `Nodes` or to where its key lives."""

    parts: tuple[Argument, ...]
    parse: Callable[[Any], T]
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Nodes:
    """Name every primary: one for a single server, all of them in a Cluster."""

    @staticmethod
    def parse(reply: Any) -> tuple[str, ...]:
        """Return the names, in a stable order."""
        return tuple(reply)


@dataclass(frozen=True, slots=True)
class Consult(Generic[T]):
    """Call a function of the user; its answer is awaited where it can be."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    @staticmethod
    def parse(reply: Any) -> Any:
        """Return what the function returned."""
        return reply


@dataclass(frozen=True, slots=True)
class Listen:
    """Be ready to hear; answered with the name of who listens, for a channel."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Expect:
    """Be ready to hear of a task to come, if whoever submits here is wont to wait.

    Answered with the name of who listens, or with nothing: most never wait, and must
    not be told of what they do not want to know.
    """

    prefix: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Expected:
    """Tell whether a task is one that was expected; answered with true or false."""

    prefix: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Hear:
    """Wait for what is told of a task; answered with an outcome, or None in time."""

    prefix: str
    task_id: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Nap:
    """Let some time pass."""

    seconds: float


Step: TypeAlias = (
    Call[Any]
    | Volley[Any]
    | Command[Any]
    | Nodes
    | Consult[Any]
    | Listen
    | Expect
    | Expected
    | Hear
    | Nap
)
Flow: TypeAlias = Generator[Step, Any, T]


def ask(step: Call[T] | Command[T]) -> Flow[T]:
    """Yield one step and return its answer with its type: `yield from ask(call)`."""
    return cast("T", (yield step))
