"""Remembers what was done from a dashboard, by whom, and what came of it.

The last five hundred acts are shown; each is logged too, as a line of the logger
`workstealing.dashboard`, which a process manager keeps for longer.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from workstealing._printing import escaping_logger

__all__ = ("Act", "ActLog")

logger = escaping_logger("workstealing.dashboard")

_KEPT = 500


@dataclass(frozen=True, slots=True)
class Act:
    """Something that was done."""

    number: int
    at_ms: int
    who: str
    """The address that it came from."""
    action: str
    queue: str
    run: str
    subject: str
    """A task, a name, a schedule, or which tasks; empty for the whole queue."""
    result: str


class ActLog:
    """The last acts of this process, the latest first."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._acts: deque[Act] = deque(maxlen=_KEPT)
        self._now = now
        self._number = 0

    def note(
        self, who: str, action: str, queue: str, run: str, subject: str, result: str
    ) -> None:
        """Remember an act."""
        self._number += 1
        at_ms = round(self._now() * 1000)
        act = Act(self._number, at_ms, who, action, queue, run, subject, result)
        self._acts.appendleft(act)
        logger.info(
            "%s: %s %s of %s/%s: %s", who, action, subject or "all", queue, run, result
        )

    def acts(self) -> tuple[Act, ...]:
        """Return the acts, the latest first."""
        return tuple(self._acts)
