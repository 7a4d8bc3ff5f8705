"""What happened, as values: the events of side work, and the union of all events.

| event | when |
| --- | --- |
| `SliceEnded` | a slice worked, found nothing, hit a conflict, or failed |
| `SliceRefused` | a job was drawn, but a protection kept it from running |
| `SetupFailed` | a setup function raised; it is called again later |
| `BreakerOpened` | a target failed and is left alone for some seconds |
| `BreakerClosed` | a target answered again |
| `RateAdapted` | a recruiter changed a rate by itself, as `Adapt` allows |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from workstealing.telemetry.task_events import QueueEvent

__all__ = (
    "REFUSALS",
    "BreakerClosed",
    "BreakerOpened",
    "Event",
    "Outcome",
    "RateAdapted",
    "SetupFailed",
    "SliceEnded",
    "SliceRefused",
)


class Outcome(str, Enum):
    """How a drawn slice ended, in more detail than the `Duty` that a host gets."""

    RECRUITED = "recruited"
    """It worked."""
    EMPTY = "empty"
    """It found nothing to do."""
    CONFLICT = "conflict"
    """The job raised `Conflict`: another recruit was doing the same work; or another
    process had the turn of a job that a fleet shares."""
    ERROR = "error"
    """The job raised."""
    INTERRUPTED = "interrupted"
    """The host was asked to stop, or cancelled, while it worked."""
    BUSY = "busy"
    """Refused: a slice of this job, or of this thread, is in flight."""
    OPEN = "open"
    """Refused: the breaker of its target is open."""
    BUDGET = "budget"
    """Refused: side work has used up its share of time, or the caller has none."""
    STORE = "store"
    """Refused: the store is slower than usual."""

    __str__ = str.__str__
    # That of Enum is several times slower, and runs in every slice.
    __hash__ = str.__hash__


REFUSALS = (Outcome.BUSY, Outcome.OPEN, Outcome.BUDGET, Outcome.STORE)
"""A job was drawn and not begun."""


@dataclass(frozen=True, slots=True)
class SliceEnded:
    """A slice has ended, however it went."""

    job: str
    outcome: Outcome
    seconds: float
    rounds: int
    """How often `recruited()` was called: more than once after `Duty.MORE`."""
    overran: bool
    """It took longer than its deadline."""
    error: BaseException | None
    calls: int
    """Moments offered since the recruiter's previous slice event."""


@dataclass(frozen=True, slots=True)
class SliceRefused:
    """A job was drawn, but its slice was not begun."""

    job: str
    outcome: Outcome
    calls: int
    """Moments offered since the recruiter's previous slice event."""


@dataclass(frozen=True, slots=True)
class SetupFailed:
    """A setup function raised."""

    setup: str
    error: BaseException
    retry_in: float


@dataclass(frozen=True, slots=True)
class BreakerOpened:
    """A target failed; its jobs are refused for some seconds."""

    target: str
    seconds: float


@dataclass(frozen=True, slots=True)
class BreakerClosed:
    """A target that had failed answered again."""

    target: str


@dataclass(frozen=True, slots=True)
class RateAdapted:
    """A recruiter changed the rate of a job by itself."""

    job: str
    before: float
    after: float
    why: str


_SideWorkEvent: TypeAlias = (
    SliceEnded
    | SliceRefused
    | SetupFailed
    | BreakerOpened
    | BreakerClosed
    | RateAdapted
)
# In quotes: a host that only enlists need not import the events of tasks. In one pair
# of them, or pyright takes it for an unknown type.
Event: TypeAlias = "_SideWorkEvent | QueueEvent"
