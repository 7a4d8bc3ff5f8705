"""Chance, time and observers that a test controls.

They replace `Chance`, `Clock` and observers wherever the library takes one.
"""

from __future__ import annotations

from collections import deque
from typing import TypeVar

__all__ = (
    "ManualClock",
    "RecordingObserver",
    "ScriptedChance",
)


class ScriptedChance:
    """Returns *numbers* one by one, and fails the test if more are drawn."""

    def __init__(self, *numbers: float) -> None:
        for number in numbers:
            if not 0.0 <= number < 1.0:
                raise ValueError(
                    f"numbers must be at least 0.0 and below 1.0, got {number!r}"
                )
        self._length = len(numbers)
        self._numbers = deque(numbers)

    @property
    def left(self) -> int:
        """How many numbers were not drawn yet."""
        return len(self._numbers)

    def random(self) -> float:
        """Return the next number of the script."""
        if not self._numbers:
            raise AssertionError(
                f"all {self._length} scripted numbers were drawn: script one more"
            )
        return self._numbers.popleft()


class ManualClock:
    """A clock that stands still at *start* until it is advanced."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def monotonic(self) -> float:
        """Return the current time of the clock, in seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forward; a clock never goes back."""
        if seconds < 0:
            raise ValueError(
                f"seconds must be 0 or more, got {seconds!r}: a clock never goes back"
            )
        self._now += seconds


T = TypeVar("T")


class RecordingObserver:
    """An observer that keeps all events in order, in `events`."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def observe(self, event: object) -> None:
        """Remember one event."""
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]
