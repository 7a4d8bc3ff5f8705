"""Whether a task that raised is tried again, and when; what it raises to say so itself.

The wait doubles with each attempt, up to a bound, and is drawn evenly from zero to
there ("full jitter"), so that tasks that failed together do not come back together.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, cast, get_args

from workstealing._checks import checked_seconds, checked_time, checked_whole
from workstealing.chance import Chance
from workstealing.errors import ConfigurationError, WorkStealingError

__all__ = (
    "OUTCOME_UNKNOWN",
    "GiveUp",
    "NoRetry",
    "Restart",
    "Retry",
    "RetryAfter",
    "RetryPolicy",
    "Snooze",
    "checked_restart",
    "stricter",
)


class Retry(WorkStealingError):
    """Raised by a task that wants to be tried again, `after` so many seconds.

    It counts as one of the `retries=` of the task, like an error: a task without
    retries is given up. `retry_on` and `give_up_on` do not matter to it. Without
    `after`, the wait is drawn as for an error.
    """

    def __init__(
        self, after: float | timedelta | None = None, reason: str = ""
    ) -> None:
        super().__init__(after, reason)
        self.after = (
            None if after is None else checked_seconds(after, "after", zero=True)
        )
        self.reason = reason

    def _text(self) -> str:
        when = "later" if self.after is None else f"in {self.after:g} s"
        return f"try again {when}" + (f": {self.reason}" if self.reason else "")


class Snooze(WorkStealingError):
    """Raised by a task to be run again later: it is too early, nothing went wrong.

    Unlike `Retry`, it counts neither as an attempt nor as one of the `retries=`. A task
    may snooze as often as it likes; the `deadline` of its caller ends that. One that is
    not to be repeated (`restart=`, `idempotent=False`) cannot snooze: it is given up.
    """

    def __init__(self, until: float | timedelta | datetime, reason: str = "") -> None:
        super().__init__(until, reason)
        if isinstance(until, datetime):
            self.until: float | datetime = checked_time(until, "until")
        else:
            self.until = checked_seconds(until, "until", zero=True)
        self.reason = reason

    def seconds(self, now: float) -> float:
        """Return how long it is to wait, *now* being a time since 1970."""
        if isinstance(self.until, datetime):
            return max(0.0, self.until.timestamp() - now)
        return self.until

    def _text(self) -> str:
        if isinstance(self.until, datetime):
            when = f"until {self.until.isoformat(' ', 'seconds')}"
        else:
            when = f"for {self.until:g} s"
        return f"snooze {when}" + (f": {self.reason}" if self.reason else "")


class GiveUp(WorkStealingError):
    """Raised by a task that is not to be tried again, whatever `retries=` says.

    It has failed then: its caller gets `TaskFailed` with the reason, and it is a dead
    letter that can be replayed.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Try again, not before so many seconds have passed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class NoRetry:
    """Do not try again."""

    reason: str


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a task is tried again, how long it waits, and after which errors.

    Given as `retries=` of a task. The wait before a retry is drawn evenly from zero to
    a bound that doubles with each attempt ("full jitter"), so that tasks that failed
    together do not come back together.
    """

    retries: int = 0
    """How often it is tried again after its first attempt."""
    initial_delay: float = 1.0
    """Seconds that it waits at most before the first retry."""
    max_delay: float = 300.0
    """Seconds that it waits at most before any retry."""
    retry_on: tuple[type[BaseException], ...] = (Exception,)
    """After which errors it is tried again."""
    give_up_on: tuple[type[BaseException], ...] = ()
    """After which errors it is not, whatever `retry_on` says."""

    def __post_init__(self) -> None:
        checked_whole(self.retries, "retries", 0)
        for name in ("initial_delay", "max_delay"):
            # A timedelta becomes seconds.
            seconds = checked_seconds(getattr(self, name), name)
            object.__setattr__(self, name, seconds)
        if self.initial_delay > self.max_delay:
            raise ConfigurationError(
                f"initial_delay ({self.initial_delay} s) must not be above max_delay"
                f" ({self.max_delay} s)"
            )
        _check_classes(self.retry_on, "retry_on")
        _check_classes(self.give_up_on, "give_up_on")

    def verdict(
        self, error: BaseException, attempt: int, chance: Chance
    ) -> RetryAfter | NoRetry:
        """Judge the error of an attempt; the first attempt is number 1."""
        if isinstance(error, GiveUp):
            return NoRetry("GiveUp was raised")
        if isinstance(error, Snooze):
            # The others never come here: to snooze is not to fail.
            return NoRetry("Snooze was raised by a task that must not be repeated")
        asked = isinstance(error, Retry)
        if not asked and isinstance(error, self.give_up_on):
            return NoRetry(f"{type(error).__qualname__} is not tried again")
        if not asked and not isinstance(error, self.retry_on):
            return NoRetry(f"{type(error).__qualname__} is not among retry_on")
        if attempt > self.retries:
            return NoRetry(self._exhausted(asked, attempt))
        if isinstance(error, Retry) and error.after is not None:
            return RetryAfter(error.after)
        return RetryAfter(chance.random() * self._longest_wait(attempt))

    def _exhausted(self, asked: bool, attempt: int) -> str:
        if asked and not self.retries:
            return "Retry was raised, but the task has retries=0"
        what = "Retry was raised" if asked else "failed"
        return f"{what} in attempt {attempt}, and the task has retries={self.retries}"

    def _longest_wait(self, attempt: int) -> float:
        # Beyond 2**1000 a float overflows; no wait is that long.
        doublings = min(attempt - 1, 1000)
        return min(self.max_delay, self.initial_delay * 2.0**doublings)


def _check_classes(classes: Any, what: str) -> None:
    if not isinstance(classes, tuple) or not all(
        isinstance(kind, type) and issubclass(kind, BaseException) for kind in classes
    ):
        raise ConfigurationError(
            f"{what} must be a tuple of exception classes, not {classes!r}"
        )


Restart: TypeAlias = Literal["always", "on-crash", "never"]

OUTCOME_UNKNOWN = "outcome unknown"
"""How the reason begins for which a task that is never run twice was given up."""

_KINDS = get_args(Restart)


def checked_restart(restart: Any, idempotent: bool, retries: int) -> Restart:
    """Return what `restart=` and `idempotent=` mean together."""
    if restart is None:
        restart = "always" if idempotent else "never"
    if restart not in _KINDS:
        raise ConfigurationError(
            f"restart must be one of {', '.join(_KINDS)}, not {restart!r}"
        )
    if not idempotent and restart != "never":
        raise ConfigurationError(
            f'a task that is not idempotent must not have restart="{restart}"'
        )
    if restart != "always" and retries:
        said = f'restart="{restart}"' if idempotent else "idempotent=False"
        raise ConfigurationError(
            f"a task with {retries} retries is tried again when it raised, which"
            f" {said} forbids: leave one of the two out"
        )
    return cast("Restart", restart)


def stricter(one: Restart, other: Restart) -> Restart:
    """Return the one that repeats less: neither side can loosen what the other says."""
    return max(one, other, key=_KINDS.index)
