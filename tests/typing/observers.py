"""What an observer is given; checked, never run."""

from __future__ import annotations

from workstealing import TaskQueue
from workstealing.telemetry import BreakerOpened, Event, TaskEnded


class Noting:
    def observe(self, event: Event) -> None:
        event.no_such_attribute  # type: ignore[union-attr] # noqa: B018
        if isinstance(event, BreakerOpened):
            self.note(event.target)
        if isinstance(event, TaskEnded):
            self.note(event.task)
            self.note(event.attempt)  # type: ignore[arg-type]

    def note(self, text: str) -> None: ...


queue = TaskQueue("q", observers=[Noting()])
