"""The recruiter: a host offers a moment with `enlist()`, and gets a `Duty` back.

`enlist()` never raises into its host, never retries, and waits for nobody. When nobody
is drawn, which is nearly always, it costs about as much as an empty method call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from workstealing.errors import ConfigurationError
from workstealing.recruiting.face import RecruiterFace
from workstealing.recruiting.job import Duty
from workstealing.recruiting.pacing import Every
from workstealing.recruiting.patrol import Patrol
from workstealing.recruiting.slicing import Slice
from workstealing.telemetry.events import Outcome

__all__ = ("Recruiter",)

P = ParamSpec("P")
T = TypeVar("T")


class Recruiter(RecruiterFace):
    """Recruits threads with a spare moment; see `Office` for the arguments."""

    # The arguments are not keyword-only: that would cost a dismissed call a third more.
    def enlist(self, spare: float | None = None, rtt: float | None = None) -> Duty:
        """Offer a moment: mostly dismissed at once, now and then recruited.

        Args:
            spare: how many seconds the caller can spare, if less than the deadline.
            rtt: seconds of a round trip to the store that the caller just saw; the
                store gate listens to a sample of these.
        """
        for dismissed in self._stride:
            return dismissed
        return self._draw(spare, rtt)

    def muster(self, name: str | None = None) -> Outcome | None:
        """Do a slice of one job, or of the one that has waited longest.

        For callers who have the time: no lottery, no budget. None without jobs.
        """
        self._set_up()
        called = self._call_up(name)
        if isinstance(called, Slice):
            self._work(called)
            return called.outcome
        return called

    def patrol(self, every: Every = 5.0) -> Patrol:
        """Return a daemon thread, to be started, that musters every few seconds.

        For hosts without traffic: nothing starves at night.
        """
        return Patrol(self.muster, every)

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

    def _draw(self, spare: float | None, rtt: float | None) -> Duty:
        try:
            if self._has_setups:
                self._set_up()
            drawn = self._admit(spare, rtt)
            return Duty.DISMISSED if drawn is None else self._work(drawn)
        except Exception as error:  # noqa: BLE001 - nothing reaches the host
            self._fault(error)
            return Duty.DISMISSED

    def _work(self, drawn: Slice) -> Duty:
        with drawn:
            while drawn.goes_on(drawn.entry.recruited()):
                pass
        return drawn.duty

    def _set_up(self) -> None:
        functions = self._begin_setups()
        if not functions:
            return
        try:
            for function in functions:
                with self._setting_up(function):
                    function(self)
        finally:
            self._end_setups()
