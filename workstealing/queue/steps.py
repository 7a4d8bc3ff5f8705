"""Operations on Redis as values, procedures as generators.

A `Step` says what is wanted; a driver performs it and sends the answer back. A `Flow`
is a procedure of several steps. Because neither does I/O, one body of logic serves
sync and asyncio callers, and a test can play Redis by hand.
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
    "AwaitOutcome",
    "Call",
    "Flow",
    "Invoke",
    "Nodes",
    "Owners",
    "Pipeline",
    "RedisCommand",
    "Sleep",
    "Step",
    "Subscribe",
    "Subscription",
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
    """Replies are bytes, whatever `decode_responses` of the client is."""
    after: RedisCommand[Any] | None = None
    """A blocking command that comes first, sent together with the script."""
    replicas: int = 0
    """How many must have what it wrote; with fewer, `NotReplicated` is raised."""


@dataclass(frozen=True, slots=True)
class Pipeline(Generic[T]):
    """Run scripts one after another, each without waiting for the one before.

    Answered with all their answers. A call is made while the server works on the one
    before, and is sent even if that one turns out to be refused.
    """

    calls: Iterable[Call[T]]


@dataclass(frozen=True, slots=True)
class RedisCommand(Generic[T]):
    """Send one plain command, to a node of `Nodes` or to where its key lives."""

    parts: tuple[Argument, ...]
    parse: Callable[[Any], T]
    node: str | None = None
    is_blocking: bool = False
    """It waits on the server: sent over the connection of the thread, if it has one.

    What `parse` is given is the reply as it came, without what redis-py makes of it.
    """


@dataclass(frozen=True, slots=True)
class Nodes:
    """Name every primary: one for a single server, all of them in a Cluster."""

    @staticmethod
    def parse(reply: Any) -> tuple[str, ...]:
        """Return the names, in a stable order."""
        return tuple(reply)


@dataclass(frozen=True, slots=True)
class Owners:
    """Name the primary that has each of some keys, as far as the client knows."""

    keys: tuple[str, ...]

    @staticmethod
    def parse(reply: Any) -> tuple[str, ...]:
        """Return the name for each key: all are alike where there is no Cluster."""
        return tuple(reply)


@dataclass(frozen=True, slots=True)
class Invoke(Generic[T]):
    """Call a function of the user; its answer is awaited where it can be."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    @staticmethod
    def parse(reply: Any) -> Any:
        """Return what the function returned."""
        return reply


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscribe to the outcome of a task; answered with a `Subscription`.

    Before a task is submitted, it is a guess that somebody will wait for it.
    """

    prefix: str
    """What names of channels of this queue begin with."""
    task_id: str
    is_guess: bool = False
    """Only where outcomes were awaited lately; without a channel if they were not."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The answer to `Subscribe`."""

    channel: str
    """Where outcomes are published for this waiter; empty if it does not subscribe."""
    is_requested: bool
    """The submission of the task has asked already to publish its outcome there."""


@dataclass(frozen=True, slots=True)
class AwaitOutcome:
    """Wait for the outcome of a task, after `Subscribe`.

    Answered with the outcome, or with None when the time is over. Either way, it is not
    expected any longer.
    """

    prefix: str
    task_id: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Sleep:
    """Let some time pass."""

    seconds: float


Step: TypeAlias = (
    Call[Any]
    | Pipeline[Any]
    | RedisCommand[Any]
    | Nodes
    | Owners
    | Invoke[Any]
    | Subscribe
    | AwaitOutcome
    | Sleep
)
Flow: TypeAlias = Generator[Step, Any, T]


def ask(step: Call[T] | RedisCommand[T]) -> Flow[T]:
    """Yield one step and return its answer with its type: `yield from ask(call)`."""
    return cast("T", (yield step))
