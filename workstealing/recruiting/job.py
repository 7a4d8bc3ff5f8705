"""What side work is: a `Job`, and the `Duty` that one slice of it reports."""

from __future__ import annotations

from collections.abc import Awaitable
from enum import IntEnum
from typing import Protocol, runtime_checkable

__all__ = ("AsyncJob", "Duty", "Job")


class Duty(IntEnum):
    """What became of an enlisted moment."""

    DISMISSED = 0
    """Not chosen, or chosen and found nothing to do."""
    RECRUITED = 1
    """Chosen, and worked."""
    MORE = 2
    """Worked, and there is more: call again while the slice's time lasts."""


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
