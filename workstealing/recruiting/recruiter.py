"""The recruiter: a host offers a moment with `enlist()`, and gets a `Duty` back.

`enlist()` never raises into its host, never retries and never waits for another thread.
When no job is drawn, which is nearly always, it costs less than two empty method calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from workstealing.errors import ConfigurationError
from workstealing.recruiting.core import RecruiterCore
from workstealing.recruiting.job import Duty
from workstealing.recruiting.pace import Every
from workstealing.recruiting.slice import Slice
from workstealing.recruiting.ticker import Ticker
from workstealing.telemetry.events import Outcome

__all__ = ("Recruiter",)

P = ParamSpec("P")
T = TypeVar("T")


class Recruiter(RecruiterCore):
    """Recruits threads with a spare moment; see `RecruiterCore` for the arguments."""

    # The arguments are not keyword-only: that would cost a dismissed call a third more.
    def enlist(self, spare: float | None = None, rtt: float | None = None) -> Duty:
        """Offer a moment: mostly dismissed at once, now and then recruited.

        Returns `Duty.RECRUITED` if a job did some work now. `Duty.DISMISSED` is the
        normal case: no job was drawn, or the one that was had nothing to do, failed, or
        was held back to protect the host (`stats()` tells these apart).

        Args:
            spare: how many seconds the caller can spare, if less than the deadline.
            rtt: seconds that the caller's last round trip to the store took; the store
                gate goes by a sample of these.
        """
        for dismissed in self._stride:
            return dismissed
        return self._recruit(spare, rtt)

    def run_now(self, name: str | None = None) -> Outcome | None:
        """Run a slice now, of the named job or of the one drawn longest ago.

        For callers that have the time: no lottery, no budget. Returns how it ended, or
        why it was not begun; None if no job is installed.
        """
        self._run_setups()
        begun = self._slice_now(name)
        if isinstance(begun, Slice):
            self._run_slice(begun)
            return begun.outcome
        return begun

    def ticker(self, every: Every = 5.0) -> Ticker:
        """Return a daemon thread, to be started, that calls `run_now()` repeatedly.

        For hosts without traffic: jobs get their slices at night, too.
        """
        return Ticker(self.run_now, every)

    def enlists(self, function: Callable[P, T]) -> Callable[P, T]:
        """Enlist each time after the decorated function has returned."""
        if inspect.iscoroutinefunction(function):
            raise ConfigurationError(
                "a slice would block the event loop: use AsyncRecruiter.enlists"
            )

        @wraps(function)
        def enlisting(*args: P.args, **kwargs: P.kwargs) -> T:
            result = function(*args, **kwargs)
            self.enlist()
            return result

        return enlisting

    @contextmanager
    def enlisting(self) -> Iterator[None]:
        """Enlist after the block, unless it raises."""
        yield
        self.enlist()

    def hook(self, *_: object, **__: object) -> None:
        """Enlist, whatever a framework passes to its hooks."""
        self.enlist()

    def _recruit(self, spare: float | None, rtt: float | None) -> Duty:
        try:
            if self._setups.due_at is not None:
                self._run_setups()
            drawn = self._draw_slice(spare, rtt)
            return Duty.DISMISSED if drawn is None else self._run_slice(drawn)
        except Exception as error:  # noqa: BLE001 - nothing reaches the host
            self._fault(error)
            return Duty.DISMISSED

    def _run_slice(self, drawn: Slice) -> Duty:
        try:
            with drawn:
                while drawn.goes_on(drawn.job.recruited()):
                    pass
        finally:
            self._end_slice(drawn)
        return drawn.duty

    def _run_setups(self) -> None:
        functions = self._setups_due()
        if not functions:
            return
        try:
            for function in functions:
                with self._setting_up(function):
                    function(self)
        finally:
            self._end_setups()
