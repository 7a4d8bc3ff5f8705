"""What side work is: a `Job`, the `Duty` that it returns, and how often it is wanted.

That is its pace: a share of all `enlist()` calls (`rate=`), or one slice every
few seconds in each process (`every=`), or in all of them together (`fleet_pace.py`).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Protocol, runtime_checkable

from workstealing._checks import checked_rate, checked_seconds
from workstealing.chance import Chance
from workstealing.errors import AmbiguousPace, InvalidInterval

__all__ = (
    "AsyncJob",
    "Duty",
    "Every",
    "Job",
    "Pace",
    "PerCall",
    "PerTime",
    "checked_interval",
    "pace",
)

Every = float | timedelta


class Duty(IntEnum):
    """Whether a moment was used: returned by a job, and by `enlist()`.

    A *job* returns what it did: `DISMISSED` means "I had nothing to do". `enlist()`
    returns what the caller's moment was used for: `DISMISSED` means "no work was done".
    That is the normal case, since most calls are not drawn. It is also returned if a
    job was drawn and had nothing to do, raised, or was refused to protect the host;
    `stats()` and telemetry distinguish these, as `Outcome`. `enlist()` never returns
    `MORE`.
    """

    DISMISSED = 0
    """From a job: nothing to do. From `enlist()`: no work was done."""
    RECRUITED = 1
    """From a job: it worked. From `enlist()`: a job worked."""
    MORE = 2
    """From a job only: it worked, and wants to be called again in this slice."""


@runtime_checkable
class Job(Protocol):
    """An object that does one small, bounded slice of side work when asked.

    A slice never waits and never retries: what one recruit cannot do, the next will.
    """

    def recruited(self) -> Duty | None:
        """Do one slice; None counts as `Duty.RECRUITED`."""
        ...


@runtime_checkable
class AsyncJob(Protocol):
    """A `Job` whose slice is awaited; for an `AsyncRecruiter`."""

    def recruited(self) -> Awaitable[Duty | None]:
        """Do one slice; None counts as `Duty.RECRUITED`."""
        ...


@dataclass(frozen=True, slots=True)
class PerCall:
    """A share of all `enlist()` calls."""

    rate: float


@dataclass(frozen=True, slots=True)
class PerTime:
    """One slice per *every* seconds and process, on average."""

    every: float

    def wait(self, chance: Chance) -> float:
        """Draw the seconds until the next slice.

        Exponential, hence memoryless: a draw may be thrown away at any moment without
        changing the rate, and processes that started together drift apart.
        """
        return -self.every * math.log1p(-chance.random())


Pace = PerCall | PerTime


def pace(rate: float | None, every: Every | None) -> Pace:
    """Return the pace that a user asked for, checked."""
    if rate is not None and every is not None:
        raise AmbiguousPace(
            "a job takes rate= (share of calls) or every= (seconds), not both"
        )
    if rate is not None:
        return PerCall(checked_rate(rate))
    if every is not None:
        return PerTime(checked_interval(every))
    raise AmbiguousPace(
        "a job needs a pace: give rate= (share of calls, 0.0 to 1.0) or every="
        " (seconds)"
    )


def checked_interval(every: Every, what: str = "every=") -> float:
    """Return the seconds of an interval; *what* is the name of the argument.

    Raises:
        InvalidInterval: it is not above 0 seconds.
    """
    return checked_seconds(every, what, error=InvalidInterval)
