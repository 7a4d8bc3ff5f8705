"""What a worker holds: tasks not begun, the one that runs, reports not delivered.

The thread that works and the one that beats both reach in. What is not begun is a deque
that one takes from the front and the other from the back, each step being atomic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from workstealing.queue.consuming import Report, Taken

__all__ = ("Hands",)


class Hands:
    """The hands of one slot of a worker."""

    def __init__(self) -> None:
        self._waiting: deque[Taken] = deque()
        self.reports: list[Report] = []
        self.begun = 0
        """How many tasks were ever begun: tells whether one has been running long."""
        self.is_unsure = False
        """A reply was lost: Redis may think that these hands hold more."""
        self.cancelled: set[str] = set()
        """Ids that were cancelled while they were held."""

    @property
    def waiting(self) -> int:
        """How many tasks are not begun."""
        return len(self._waiting)

    @property
    def known(self) -> tuple[str, ...] | None:
        """What to name after a lost reply; None while all is sure."""
        return tuple(task.id for task in self._waiting) if self.is_unsure else None

    def take(self, tasks: Iterable[Taken]) -> None:
        """Hold more tasks."""
        self._waiting.extend(tasks)

    def begin(self) -> Taken | None:
        """Take the next task to run."""
        try:
            task = self._waiting.popleft()
        except IndexError:
            return None
        self.begun += 1
        return task

    def put_down(self) -> list[Taken]:
        """Let go of all that is not begun, in its order."""
        put_down: list[Taken] = []
        while self._waiting:
            try:
                put_down.append(self._waiting.pop())
            except IndexError:
                break
        return put_down[::-1]

    def delivered(self, number: int) -> None:
        """Forget reports that Redis has."""
        del self.reports[:number]
        self.is_unsure = False
        self.cancelled.clear()

    def drop_all(self) -> None:
        """Let go of everything: it is another's by now."""
        self._waiting.clear()
        self.reports.clear()
        self.is_unsure = False
