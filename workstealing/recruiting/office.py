"""What both recruiters share: who is drawn, what is allowed, how it went.

An office runs no job. Its lock is held for microseconds, never while a job, a setup
function or an observer runs, so nobody waits for another's work.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, ClassVar

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.errors import ConfigurationError, CoroutineJob
from workstealing.recruiting.forking import started_anew_in_children
from workstealing.recruiting.guard import Guard
from workstealing.recruiting.lottery import Lottery
from workstealing.recruiting.pacing import Every, pace
from workstealing.recruiting.protection import Breaker, StoreGate
from workstealing.recruiting.roster import Entry, Roster, checked_name, slice_of
from workstealing.recruiting.setups import Setup, Setups, in_setup, setting_up
from workstealing.recruiting.slicing import Slice
from workstealing.recruiting.stats import RecruiterStats, Tally
from workstealing.telemetry.events import (
    Outcome,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)
from workstealing.telemetry.observer import FanOut, Observer
from workstealing.telemetry.throttle import Throttle

__all__ = ("Office",)

logger = logging.getLogger(__name__)

_DEFAULT_BREAKER = Breaker()
# Where a store gate listens, it hears a caller's round trip at least this often.
_LONGEST_DEAF_STRIDE = 64


class Office:
    """Installs jobs, draws recruits, keeps the books.

    Args:
        deadline: seconds that a slice may take; None calls a job once per slice.
        share: the part of wall time that side work may take in this process.
        breaker: how long a failing target is left alone.
        gate: step back while the store is slow, as told by `enlist(rtt=…)`.
        observers: are told of every slice.
        chance: where randomness comes from.
        clock: where time comes from.

    None switches a protection off.
    """

    _takes_coroutines: ClassVar[bool] = False

    def __init__(
        self,
        *,
        deadline: float | None = 0.05,
        share: float | None = 0.01,
        breaker: Breaker | None = _DEFAULT_BREAKER,
        gate: StoreGate | None = None,
        observers: Iterable[Observer] = (),
        chance: Chance = SYSTEM_CHANCE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock = clock
        self._guard = Guard(
            deadline=deadline,
            share=share,
            breaker=breaker,
            gate=gate,
            chance=chance,
            now=clock.monotonic(),
        )
        self._roster = Roster()
        longest = _LONGEST_DEAF_STRIDE if gate else None
        self._lottery = Lottery(self._roster, chance, longest)
        self._setups = Setups()
        self._observers = FanOut(observers, clock)
        self._throttle = Throttle()
        # Re-entrant: a signal handler or a finalizer may enlist at any point.
        self._lock = RLock()
        self._reported_calls = 0
        self._faults = 0
        self._stride = self._lottery.stride
        started_anew_in_children(self)

    def install(
        self,
        job: Any,
        name: str,
        *,
        rate: float | None = None,
        every: Every | None = None,
        target: str | None = None,
    ) -> None:
        """Put a job on the roster.

        Args:
            job: a function, or an object with `recruited()`.
            name: how logs, metrics and `stats()` call it.
            rate: its share of all `enlist()` calls, 0.0 to 1.0.
            every: or else seconds per process between two slices, on average.
            target: what it depends on; jobs of one target share a breaker. By default
                the job's own `target`, or its name.

        Raises:
            ConfigurationError: one of its subclasses says what is wrong.
        """
        recruited, is_coroutine = slice_of(job)
        if is_coroutine and not self._takes_coroutines:
            raise CoroutineJob(
                f"job {name!r} is a coroutine function, which a Recruiter cannot await:"
                " install it on an AsyncRecruiter"
            )
        entry = Entry(
            checked_name(name),
            recruited,
            is_coroutine,
            pace(rate, every),
            _target_of(job, name) if target is None else _checked_target(target),
            by_setup=in_setup(),
        )
        with self._lock:
            self._roster.add(entry)
            self._lottery.schedule(entry, self._clock.monotonic())
            self._redraw()

    def uninstall(self, name: str) -> None:
        """Strike a job off the roster; a slice in flight ends as usual."""
        with self._lock:
            self._guard.forget(self._roster[name])
            self._roster.remove(name)
            self._redraw()

    def set_rate(
        self, name: str, rate: float | None = None, *, every: Every | None = None
    ) -> None:
        """Change how often a job is wanted, from the next call on."""
        with self._lock:
            self._roster.set_pace(name, pace(rate, every))
            self._lottery.schedule(self._roster[name], self._clock.monotonic())
            self._redraw()

    def stats(self) -> RecruiterStats:
        """Return what was counted in this process so far."""
        now = self._clock.monotonic()
        with self._lock:
            return RecruiterStats(
                calls=self._lottery.calls,
                jobs={entry.name: entry.stats(now) for entry in self._roster},
                open_targets=self._guard.open_targets(now),
                debt=self._guard.debt(now),
                setup_failures=self._setups.failures,
                faults=self._faults,
            )

    def close(self, ended: Slice) -> None:
        """Take note of how a slice ended; called by the slice itself."""
        entry = ended.entry
        with self._lock:
            entry.running = False
            entry.tally.note(ended)
            changes = self._guard.settle(ended)
            calls = self._unreported_calls() if self._observers else 0
        if ended.outcome is Outcome.ERROR and ended.error is not None:
            self._log(f"job {entry.name!r}", ended.error)
        if self._observers:
            for change in changes:
                self._observers.observe(change)
            self._observers.observe(
                SliceEnded(
                    job=entry.name,
                    outcome=ended.outcome,
                    seconds=ended.seconds,
                    rounds=ended.rounds,
                    overran=ended.overran,
                    error=ended.error,
                    calls=calls,
                )
            )

    def forgo(self) -> None:
        """Let a draw lapse: the host that was not dismissed has no moment after all.

        Or else the next one would be drawn for sure, and those that have one more often
        than their rate says.
        """
        try:
            with self._lock:
                if self._lottery.is_drawn and not self._setups.in_progress:
                    self._lottery.discard()
                    self._lottery.draw(self._clock.monotonic(), self._setups.due_at)
                    self._stride = self._lottery.stride
        except Exception as error:  # noqa: BLE001 - nothing reaches the host
            self._fault(error)

    def start_anew(self) -> None:
        """Forget what belongs to the parent process; called in a forked child."""
        self._lock = RLock()
        now = self._clock.monotonic()
        has_setups = self._setups.start_anew(now)
        for entry in self._roster:
            entry.running = False
            entry.thread_done = None
            entry.tally = Tally()
            self._lottery.schedule(entry, now)
            if entry.by_setup and has_setups:
                self._roster.remove(entry.name)
        # Another thread may have been changing it when the process forked.
        self._roster.refresh()
        self._lottery.forget_calls()
        self._reported_calls = 0
        self._redraw()

    def _admit(self, spare: float | None, rtt: float | None) -> Slice | None:
        """End a stride, and begin a slice if this call was drawn and may work."""
        with self._lock:
            now = self._clock.monotonic()
            if rtt is not None:
                self._guard.heard(rtt, now)
            if not self._lottery.is_drawn:
                self._lottery.draw(now, self._setups.due_at)
                self._stride = self._lottery.stride
            for _ in self._stride:
                return None  # a new draw, perhaps by another thread: dismissed by that
            entry = self._lottery.end_stride(now, self._setups.due_at)
            self._stride = self._lottery.stride
            if entry is None:
                return None
            entry.drawn_at = now
            refusal = self._guard.refusal(entry, now, spare)
            if refusal is None:
                return self._begin(entry, now, spare)
            entry.tally.count(refusal)
            calls = self._unreported_calls()
        if self._observers:
            self._observers.observe(SliceRefused(entry.name, refusal, calls))
        return None

    def _call_up(self, name: str | None) -> Slice | Outcome | None:
        """Begin a slice of one job, or of the one that waited longest.

        Lottery and budget are set aside: whoever calls up has the time.
        """
        with self._lock:
            now = self._clock.monotonic()
            entry = self._roster[name] if name else self._lottery.longest_waiting()
            if entry is None:
                return None
            entry.drawn_at = now
            self._lottery.schedule(entry, now)
            hindrance = self._guard.hindrance(entry, now)
            if hindrance is None:
                return self._begin(entry, now, None)
            entry.tally.count(hindrance)
            return hindrance

    def _begin(self, entry: Entry, now: float, spare: float | None) -> Slice:
        entry.running = True
        return Slice(self, entry, self._clock, now, self._guard.limit(spare))

    def _redraw(self) -> None:
        if self._setups.in_progress:
            self._lottery.pause()
        else:
            self._lottery.discard()
        self._stride = self._lottery.stride

    def _unreported_calls(self) -> int:
        calls = self._lottery.calls
        unreported = calls - self._reported_calls
        self._reported_calls = calls
        return unreported

    def _fault(self, error: Exception) -> None:
        """Survive an error of our own."""
        self._faults += 1
        self._log("enlist()", error)

    def _log(self, subject: str, error: Exception) -> None:
        try:
            self._throttle.report(logger, subject, error, self._clock.monotonic())
        except Exception:  # noqa: BLE001 - a logging handler failed; it is counted
            self._faults += 1

    def _add_setup(self, function: Setup) -> None:
        with self._lock:
            self._setups.add(function, self._clock.monotonic())
            self._redraw()

    @property
    def _has_setups(self) -> bool:
        return self._setups.due_at is not None

    def _begin_setups(self) -> list[Setup]:
        """Return the setup functions that must run now, before any lottery."""
        with self._lock:
            functions = self._setups.begin(self._clock.monotonic())
            if functions:
                # The others need not wait for it: they are dismissed meanwhile.
                self._redraw()
        return functions

    @contextmanager
    def _setting_up(self, function: Setup) -> Iterator[None]:
        """Run one setup function: all that it installs, or nothing."""
        before = {entry.name for entry in self._roster}
        try:
            with setting_up():
                yield
        except BaseException as error:
            with self._lock:
                self._setups.failures += 1
                for entry in self._roster:
                    if entry.by_setup and entry.name not in before:
                        self._roster.remove(entry.name)
            if not isinstance(error, Exception):
                raise
            name = getattr(function, "__qualname__", repr(function))
            self._log(f"setup {name}", error)
            self._observers.observe(
                SetupFailed(name, error, self._setups.retry_seconds)
            )
        else:
            with self._lock:
                self._setups.done(function)

    def _end_setups(self) -> None:
        with self._lock:
            self._setups.end(self._clock.monotonic())
            self._redraw()


def _target_of(job: object, name: str) -> str:
    own = getattr(job, "target", None)
    return own if isinstance(own, str) and own else name


def _checked_target(target: object) -> str:
    if not isinstance(target, str):
        raise ConfigurationError(f"a target is named by a string, not {target!r}")
    return target
