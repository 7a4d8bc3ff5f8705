"""The recruiter: a host offers a moment with `enlist()`, and gets a `Duty` back.

`enlist()` never raises into its host, whatever a job raises, never retries and never
waits for another thread. Only what asks the host itself to stop passes through it.
When no job is drawn, which is nearly always, it costs less than two empty method calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from threading import Event, Lock, Thread, current_thread
from typing import ParamSpec, TypeVar

from workstealing._forking import reset_in_children
from workstealing._printing import escaping_logger
from workstealing.errors import ConfigurationError
from workstealing.recruiting.core import RecruiterCore
from workstealing.recruiting.job import Duty, Every, checked_interval
from workstealing.recruiting.slice import Slice
from workstealing.telemetry.events import Outcome

__all__ = ("Recruiter", "Ticker")

logger = escaping_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Recruiter(RecruiterCore):
    """Recruits threads with a spare moment.

    Args:
        deadline: seconds that a slice may take; None calls a job once per slice.
        hard_deadline: seconds after which a job that still runs is interrupted by
            `SliceOverdue`, wherever that leaves no lock behind; `Recruiter` only.
        share: the part of wall time that side work may take in this process.
        breaker: how long a failing target is left alone.
        gate: do less while the store is slow, going by `enlist(rtt=…)`.
        adapt: let rates follow what slices find, within these bounds: for all jobs with
            `rate=`, or by their names.
        observers: get an event for every slice.
        chance: where randomness comes from.
        clock: where time comes from.

    None switches a protection off.
    """

    # The arguments are not keyword-only: that would cost a dismissed call a third more.
    def enlist(self, spare: float | None = None, rtt: float | None = None) -> Duty:
        """Offer a moment: mostly dismissed at once, now and then recruited.

        Returns `Duty.RECRUITED` if a job did some work now. `Duty.DISMISSED` is the
        normal case: no job was drawn, or the one that was had nothing to do, failed, or
        was held back to protect the host (`stats()` has a count of each).

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
                f"{function!r} is a coroutine function, and a slice would block the"
                " event loop: use AsyncRecruiter.enlists"
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
        except BaseException as error:  # noqa: BLE001 - a stop request passes
            self._end_fault(error)
            return Duty.DISMISSED

    def _run_slice(self, drawn: Slice) -> Duty:
        try:
            with drawn:
                if self._hard_deadline is None:
                    _work(drawn)
                else:
                    self._hard_deadline.call(partial(_work, drawn))
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


def _work(drawn: Slice) -> None:
    while drawn.goes_on(drawn.job.recruited()):
        pass


class Ticker:
    """A daemon thread that runs a slice every few seconds, for hosts without traffic.

    Start and stop are safe at any time and in any order. A forked child has no ticker:
    start one there, for instance in a setup function.
    """

    def __init__(self, run_now: Callable[[], object], every: Every) -> None:
        self._run_now = run_now
        self._every = checked_interval(every)
        self._stopping = Event()
        self._thread: Thread | None = None
        self._use_own_lock()
        reset_in_children(self, Ticker._use_own_lock)

    def _use_own_lock(self) -> None:
        self._starting = Lock()

    @property
    def is_running(self) -> bool:
        """Whether the thread runs, in this process."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> Ticker:
        """Start the thread, unless it runs."""
        with self._starting:
            if not self.is_running or self._stopping.is_set():
                self._stopping = Event()
                self._thread = Thread(
                    target=self._run,
                    args=(self._stopping,),
                    name="workstealing-ticker",
                    daemon=True,
                )
                self._thread.start()
        return self

    def stop(self, timeout: float | None = 5.0) -> None:
        """End the thread after the slice in flight, and wait for that."""
        self._stopping.set()
        thread = self._thread
        # A job may stop the ticker that it runs on, which cannot wait for itself.
        if thread is not None and thread is not current_thread() and self.is_running:
            thread.join(timeout)

    def __enter__(self) -> Ticker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, stopping: Event) -> None:
        while not stopping.wait(self._every):
            try:
                self._run_now()
            except BaseException:
                # No request to stop, from a signal for instance, arrives here.
                # A user's filter may raise, too.
                with suppress(BaseException):
                    logger.exception(
                        "a slice of side work failed; the ticker continues"
                    )
