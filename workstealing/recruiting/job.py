"""What side work is: a `Job`, and the `Duty` that it returns."""

from __future__ import annotations

from collections.abc import Awaitable
from enum import IntEnum
from typing import Protocol, runtime_checkable

__all__ = ("AsyncJob", "Duty", "Job")


class Duty(IntEnum):
    """Whether a moment was used: returned by a job, and by `enlist()`.

    A *job* returns what it did: `DISMISSED` says "I had nothing to do". `enlist()`
    returns what the caller's moment was used for: `DISMISSED` says "no work was done".
    That is the normal case, since most calls are not drawn. It is also returned if a
    job was drawn and had nothing to do, raised, or was refused to protect the host;
    `stats()` and telemetry tell these apart, as `Outcome`. `enlist()` never returns
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
