"""Observers: objects that receive the events of recruiters and queues.

A recruiter calls its observers in the thread that did the work, so they must be quick;
those of a queue are called in a thread of their own (`task_observers.py`). What one
raises is logged, at most once a minute, and never reaches the host.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import ParamSpec, Protocol, TypeVar

from workstealing._printing import escaping_logger, on_one_line
from workstealing._stop_requests import is_stop_request
from workstealing.clock import Clock
from workstealing.telemetry.events import Event

__all__ = ("FanOut", "LoggingObserver", "Observer", "Throttle")

logger = escaping_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# By name: a host that only enlists need not import the events of tasks.
_LEVELS = {
    "BreakerOpened": logging.WARNING,
    "BreakerClosed": logging.INFO,
    "TaskRetried": logging.WARNING,
    "TaskGivenUp": logging.WARNING,
    "TaskParked": logging.WARNING,
    "TasksReassigned": logging.WARNING,
    "LeaseLost": logging.WARNING,
}
_QUIET_SECONDS = 60.0
_MOST_SUBJECTS = 1000


class Observer(Protocol):
    """Receives every event."""

    def observe(self, event: Event) -> None:
        """Handle one event, without blocking."""
        ...


class LoggingObserver:
    """Logs each event, with its fields in `extra`, prefixed with `ws_`.

    What happens all the time is logged as `DEBUG`; that a breaker opened, a lease was
    lost, or a task was retried, reassigned, parked or given up, as `WARNING`. Errors of
    jobs and tasks are logged by recruiters and workers, with or without this observer.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("workstealing.events")

    def observe(self, event: Event) -> None:
        """Log one event."""
        level = _LEVELS.get(type(event).__name__, logging.DEBUG)
        if not self._logger.isEnabledFor(level):
            return
        values = {field.name: getattr(event, field.name) for field in fields(event)}
        text = on_one_line(" ".join(f"{name}={values[name]}" for name in values))
        extra = {f"ws_{name}": value for name, value in values.items()}
        self._logger.log(level, "%s %s", type(event).__name__, text, extra=extra)


class FanOut:
    """Passes events on to several observers, whatever these raise."""

    def __init__(self, observers: Iterable[Observer], clock: Clock) -> None:
        self._observers = tuple(observers)
        self._clock = clock
        self._throttle = Throttle()

    def __bool__(self) -> bool:
        return bool(self._observers)

    def observe(self, event: Event) -> None:
        """Call every observer, even if one of them raises."""
        for observer in self._observers:
            try:
                observer.observe(event)
            except BaseException as error:
                # Telemetry never hurts the host.
                if is_stop_request(error):
                    raise
                self._log(f"observer {type(observer).__name__}", error)

    def guard(
        self,
        observer: object,
        method: Callable[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Call another method of an observer; None if it raises."""
        try:
            return method(*args, **kwargs)
        except BaseException as error:
            if is_stop_request(error):
                raise
            self._log(f"observer {type(observer).__name__}", error)
            return None

    def _log(self, subject: str, error: BaseException) -> None:
        try:
            self._throttle.report(logger, subject, error, self._clock.monotonic())
        except BaseException as nested:
            # A logging handler may raise, too, and there is nowhere left to report it.
            if is_stop_request(nested):
                raise


class Throttle:
    """Logs repeated failures: the first with its traceback, then one line a minute."""

    def __init__(self) -> None:
        self._past: dict[str, _Past] = {}

    def report(
        self, logger: logging.Logger, subject: str, error: BaseException, now: float
    ) -> None:
        """Log a failure with its traceback, or with a count, or only count it."""
        past = self._past.get(subject)
        if past is None or self._is_over(past, now):
            if len(self._past) >= _MOST_SUBJECTS:
                self._past.clear()
            self._past[subject] = _Past(now)
            logger.error("%s failed: %r", subject, error, exc_info=error)
        elif now - past.reported_at < _QUIET_SECONDS:
            past.unreported += 1
        else:
            times = past.unreported + 1
            self._past[subject] = _Past(now)
            logger.error(
                "%s failed %d more times, the last time with %r", subject, times, error
            )

    @staticmethod
    def _is_over(past: _Past, now: float) -> bool:
        """Return whether a minute has passed without a failure."""
        return now - past.reported_at >= _QUIET_SECONDS and not past.unreported


@dataclass(slots=True)
class _Past:
    reported_at: float
    unreported: int = 0
