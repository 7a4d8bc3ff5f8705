"""Which outcomes somebody is likely to wait for who has not begun to.

Whoever waited for a task lately will wait for the next one too. After some submissions
without a wait that was wrong, and nothing more is expected until the next wait. So one
who never waits is told of a few tasks in vain, and no more.
"""

from __future__ import annotations

__all__ = ("Expecting",)

_SUBMISSIONS_PER_WAIT = 8
_MOST = 1000


class Expecting:
    """Outcomes that were told, or may be, before anybody waits for them."""

    __slots__ = ("_outcomes", "_trust")

    def __init__(self) -> None:
        self._trust = 0
        self._outcomes: dict[str, bytes | None] = {}

    def waits(self) -> None:
        """Somebody waits."""
        self._trust = _SUBMISSIONS_PER_WAIT

    def add(self, task_id: str) -> bool:
        """Expect the outcome of a task; tell whether that is worth it."""
        if self._trust <= 0:
            return False
        self._trust -= 1
        self._outcomes[task_id] = None
        if len(self._outcomes) > _MOST:
            del self._outcomes[next(iter(self._outcomes))]
        return True

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._outcomes

    def told(self, task_id: str, outcome: bytes) -> None:
        """Keep an outcome that was told before anybody waits for it."""
        if task_id in self._outcomes:
            self._outcomes[task_id] = outcome

    def take(self, task_id: str) -> bytes | None:
        """Expect it no longer; return its outcome if that was told already."""
        return self._outcomes.pop(task_id, None)
