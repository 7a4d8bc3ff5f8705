"""When a pool grows and shrinks: decisions only, no threads.

It grows by a step when work has waited too long, and then not again until the newcomers
had as long to show their worth. It shrinks when a worker has rested long enough, and
never right after it grew: so it does not flap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import TIMEOUT_MAX

from workstealing.errors import ConfigurationError

__all__ = ("Autoscale", "Scaler", "checked_number", "checked_seconds")


@dataclass(frozen=True, slots=True)
class Autoscale:
    """How a pool adapts the number of its workers.

    Args:
        wait: seconds that work may wait before workers are added.
        step: how many are added at once.
        most: how many there may be.
        idle: seconds after which a worker without work leaves, down to the number
            that the pool was made with or scaled to.
    """

    wait: float = 0.5
    step: int = 2
    most: int = 32
    idle: float = 5.0

    def __post_init__(self) -> None:
        checked_number(self.step, "step")
        checked_number(self.most, "most")
        for name in ("wait", "idle"):
            if not checked_seconds(getattr(self, name), name):
                raise ConfigurationError(
                    f"{name} is a positive number of seconds, not"
                    f" {getattr(self, name)!r}"
                )


class Scaler:
    """Applies one `Autoscale` to one pool, told of the time by its caller."""

    def __init__(self, rule: Autoscale) -> None:
        self.rule = rule
        self._grown_at = -math.inf

    def growth(self, now: float, oldest_at: float, total: int) -> int:
        """How many workers to add, for work that has waited since *oldest_at*."""
        if now < self._due(oldest_at):
            return 0
        number = max(0, min(self.rule.step, self.rule.most - total))
        if number:
            self._grown_at = now
        return number

    def look_again_in(self, now: float, oldest_at: float) -> float:
        """In how many seconds the same work may be a reason to grow."""
        due = self._due(oldest_at)
        return due - now if due > now else self.rule.wait

    def may_leave(self, now: float, total: int, least: int) -> bool:
        """Whether one that has rested for `idle` seconds is not needed."""
        return total > least and now - self._grown_at >= self.rule.idle

    def _due(self, oldest_at: float) -> float:
        return max(oldest_at, self._grown_at) + self.rule.wait


def checked_number(number: object, name: str) -> int:
    """Return a whole number of at least one, or raise what is wrong with it."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ConfigurationError(
            f"{name} is a whole number of at least 1, not {number!r}"
        )
    return number


def checked_seconds(seconds: object, name: str) -> float | None:
    """Return seconds of at least zero, or None, or raise what is wrong with them."""
    if seconds is None:
        return None
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 <= seconds <= TIMEOUT_MAX
    ):
        raise ConfigurationError(
            f"{name} is a number of seconds from 0 to {TIMEOUT_MAX:.0f}, not"
            f" {seconds!r}"
        )
    return seconds
