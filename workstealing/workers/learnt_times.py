"""How long tasks and exchanges take in this process, as far as it has learnt."""

from __future__ import annotations

from math import exp, inf

__all__ = ("LearntTimes",)

# What an exchange is expected to take before the first one.
_FIRST_EXCHANGE = 0.002
# After so many seconds, about a third of what was learnt is left.
_MEMORY_SECONDS = 15.0


class LearntTimes:
    """What to expect, in seconds.

    A task is expected to take as long as the longest did, an exchange as long as the
    average. Both fade. Otherwise nothing would fit after the machine or Redis was slow
    for a moment: no task would be tried, and no new times would be learnt.
    The averages of tasks, and of the bytes that they return, tell how many are worth
    taking at once.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[float, float]] = {}
        self._averages: dict[str, float] = {}
        self._exchange: tuple[float, float] | None = None
        self.size = 1.0
        """The bytes of an outcome, on average."""

    def exchanged(self, seconds: float, now: float) -> None:
        """Learn how long an exchange took."""
        self._exchange = (_nearer(self.exchange(now), seconds), now)

    def exchange(self, now: float) -> float:
        """Return what an exchange is expected to take."""
        known = self._exchange
        return _FIRST_EXCHANGE if known is None else _faded(known, now)

    def took(self, ability: str, seconds: float, now: float) -> None:
        """Learn how long a task took."""
        self._tasks[ability] = (max(seconds, self.task(ability, 0.0, now)), now)
        average = self._averages.get(ability, seconds)
        self._averages[ability] = _nearer(average, seconds)

    def task(self, ability: str, unknown: float, now: float) -> float:
        """Return what a task is expected to take; *unknown* if there was none yet."""
        known = self._tasks.get(ability)
        return unknown if known is None else _faded(known, now)

    def reported(self, size: int) -> None:
        """Learn how many bytes an outcome has."""
        self.size = max(1.0, _nearer(self.size, size))

    def average(self, ability: str) -> float:
        """Return what a task takes on average; `inf` if there was none yet."""
        return self._averages.get(ability, inf)


def _nearer(average: float, seconds: float) -> float:
    return average + 0.1 * (seconds - average)


def _faded(learnt: tuple[float, float], now: float) -> float:
    seconds, learnt_at = learnt
    return seconds * exp((learnt_at - now) / _MEMORY_SECONDS)
