"""What a worker holds: tasks not begun, the one that runs, reports not delivered.

The thread that works and the one that beats both reach in. Each step is atomic, and
what one of them takes out to tell Redis about it is not told by the other. What is
taken out stays known until it is told, for Redis gives back what nobody knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from threading import Lock

from workstealing.tasks.attempt import Report, Taken

__all__ = ("Hands",)


class Hands:
    """The hands of one slot of a worker."""

    def __init__(self) -> None:
        self._waiting: deque[Taken] = deque()
        self._aside: tuple[str, ...] = ()
        self._mutex = Lock()
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

    def take_reports(self) -> list[Report]:
        """Take out what is to be delivered; `keep_reports` if it could not be."""
        with self._mutex:
            return self._all_reports()

    def keep_reports(self, reports: Sequence[Report]) -> None:
        """Hold reports whose delivery is in doubt."""
        with self._mutex:
            self.reports[:0] = reports

    def known(self) -> tuple[str, ...] | None:
        """What to name in an exchange; None if it is not worth it.

        It is after a lost reply. With empty hands it costs nothing, and clears up what
        nobody noticed: a client that repeats a command by itself loses a reply too.
        """
        with self._mutex:
            known = (*(task.id for task in self._waiting), *self._aside)
            if known and not self.is_unsure:
                return None
            self.is_unsure = False
            return known

    def put_down(self) -> list[Taken]:
        """Let go of all that is not begun, in its order."""
        with self._mutex:
            return self._all_waiting()

    def set_aside(self) -> tuple[list[Taken], list[Report]]:
        """Put down what is not begun and take out the reports; for the one who beats.

        Until `set_free` they are known.
        """
        with self._mutex:
            waiting, reports = self._all_waiting(), self._all_reports()
            self._aside = (
                *(task.id for task in waiting),
                *(report.id for report in reports),
            )
        return waiting, reports

    def set_free(self) -> None:
        """Redis was told about what was set aside, or that is in doubt."""
        with self._mutex:
            self._aside = ()

    def drop_all(self) -> None:
        """Let go of everything: it is another's by now."""
        with self._mutex:
            self._waiting.clear()
            self.reports.clear()
            self.is_unsure = False

    def _all_waiting(self) -> list[Taken]:
        taken: list[Taken] = []
        # The other end is taken from without the mutex, so it may be gone any moment.
        while self._waiting:
            try:
                taken.append(self._waiting.pop())
            except IndexError:
                break
        return taken[::-1]

    def _all_reports(self) -> list[Report]:
        number = len(self.reports)
        taken = self.reports[:number]
        del self.reports[:number]
        return taken
