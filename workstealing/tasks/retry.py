"""Whether a failed task is tried again, and when.

The wait doubles with each attempt, up to a bound, and is drawn evenly from zero to
there ("full jitter"), so that tasks that failed together do not come back together.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from workstealing.chance import Chance
from workstealing.errors import ConfigurationError, WorkStealingError
from workstealing.tasks.checking import checked_seconds, checked_whole

__all__ = ("GiveUp", "Retry", "RetryAfter", "RetryPolicy")


class Retry(WorkStealingError):
    """Raised by a task that wants to be tried again, `after` so many seconds.

    It takes one of the retries, like an error; without `after` the wait is drawn as
    for an error.
    """

    def __init__(
        self, after: float | timedelta | None = None, reason: str = ""
    ) -> None:
        super().__init__(after, reason)
        self.after = (
            None if after is None else checked_seconds(after, "after", zero=True)
        )
        self.reason = reason

    def __str__(self) -> str:
        when = "later" if self.after is None else f"in {self.after:g} s"
        return f"try again {when}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Try again, not before so many seconds have passed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Do not try again."""

    reason: str


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a task is tried again, how long it waits, and after which errors.

    `give_up_on` wins over `retry_on`. The first wait is at most `first` seconds, no
    wait is longer than `most`.
    """

    retries: int = 0
    first: float = 1.0
    most: float = 300.0
    retry_on: tuple[type[BaseException], ...] = (Exception,)
    give_up_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        checked_whole(self.retries, "retries", 0)
        checked_seconds(self.first, "first")
        checked_seconds(self.most, "most")
        if self.first > self.most:
            raise ConfigurationError(
                f"first ({self.first} s) must not be above most ({self.most} s)"
            )
        _check_classes(self.retry_on, "retry_on")
        _check_classes(self.give_up_on, "give_up_on")

    def verdict(
        self, error: BaseException, attempt: int, chance: Chance
    ) -> RetryAfter | GiveUp:
        """Judge the error of an attempt; the first attempt is number 1."""
        asked = isinstance(error, Retry)
        if not asked and isinstance(error, self.give_up_on):
            return GiveUp(f"{type(error).__qualname__} is not tried again")
        if not asked and not isinstance(error, self.retry_on):
            return GiveUp(f"{type(error).__qualname__} is not among retry_on")
        if attempt > self.retries:
            return GiveUp(
                f"failed at attempt {attempt}, with {self.retries} retries allowed"
            )
        if isinstance(error, Retry) and error.after is not None:
            return RetryAfter(error.after)
        return RetryAfter(chance.random() * self._longest_wait(attempt))

    def _longest_wait(self, attempt: int) -> float:
        # Beyond 2**1000 a float overflows; no wait is that long.
        return min(self.most, self.first * 2.0 ** min(attempt - 1, 1000))


def _check_classes(classes: Any, what: str) -> None:
    if not isinstance(classes, tuple) or not all(
        isinstance(kind, type) and issubclass(kind, BaseException) for kind in classes
    ):
        raise ConfigurationError(
            f"{what} must be a tuple of exception classes, not {classes!r}"
        )
