"""An observer that remembers what it was told."""

from __future__ import annotations

from typing import TypeVar

__all__ = ("RecordingObserver",)

T = TypeVar("T")


class RecordingObserver:
    """Keeps all events in order, in `events`."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def observe(self, event: object) -> None:
        """Remember one event."""
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]
