"""The installed jobs and their rates, and the lottery among them.

The lottery does not toss a coin per call. It draws how many calls are dismissed before
the next recruit (geometric in the total rate R), and then which job it is, by its share
of R. Both draws together give each job exactly its rate.
"""

from __future__ import annotations

import inspect
import math
import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from threading import Event
from typing import Any

from workstealing.chance import Chance
from workstealing.errors import (
    ConfigurationError,
    DuplicateJob,
    NotAJob,
    RateExceeded,
    UnknownJob,
)
from workstealing.recruiting.job import Duty
from workstealing.recruiting.pacing import Pace, PerCall, PerTime
from workstealing.recruiting.stats import JobStats, Tally

__all__ = ("Entry", "Recruited", "Roster", "checked_name", "slice_of")

# Floats that should add up to 1.0 often add up to a little more.
_TOLERANCE = 1e-9
# Longer than any process lives; the smallest rates would draw infinity.
_LONGEST_GAP = 2.0**62
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}")

Recruited = Callable[[], "Duty | Awaitable[Duty | None] | None"]


@dataclass(slots=True, eq=False)
class Entry:
    """One installed job and what is known of it in this process."""

    name: str
    recruited: Recruited
    is_coroutine: bool
    pace: Pace
    target: str
    by_setup: bool
    """Installed by a setup function, which will install it again after a fork."""
    own_target: str = ""
    """What fails when the job itself is wrong, not what it depends on."""
    due_at: float = math.inf
    drawn_at: float = -math.inf
    running: bool = False
    thread_done: Event | None = None
    """Set when a plain function that an event loop sent to a thread has returned."""
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.own_target = f"job:{self.name}"

    @property
    def is_busy(self) -> bool:
        """Whether a slice is in flight, or a thread that its host gave up on."""
        done = self.thread_done
        return self.running or (done is not None and not done.is_set())

    def stats(self, now: float) -> JobStats:
        """Freeze what was counted."""
        rate = self.pace.rate if isinstance(self.pace, PerCall) else None
        every = self.pace.every if isinstance(self.pace, PerTime) else None
        return self.tally.snapshot(rate, every, now)


class Roster:
    """Jobs by name; the lottery is made anew when a rate changes."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.refresh()

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(sorted(self._entries)) or "none"
            raise UnknownJob(
                f"no job {name!r} is installed; there is: {known}"
            ) from None

    def add(self, entry: Entry) -> None:
        """Put a job on the roster."""
        if entry.name in self._entries:
            raise DuplicateJob(
                f"a job {entry.name!r} is installed already: use another name,"
                " or uninstall() it first"
            )
        self._check_total(entry.name, entry.pace)
        self._entries[entry.name] = entry
        self.refresh()

    def remove(self, name: str) -> None:
        """Strike a job off the roster."""
        del self._entries[self[name].name]
        self.refresh()

    def set_pace(self, name: str, pace: Pace) -> None:
        """Change how often a job is wanted."""
        entry = self[name]
        self._check_total(name, pace)
        entry.pace = pace
        entry.due_at = math.inf
        self.refresh()

    def gap(self, chance: Chance) -> int:
        """Draw how many calls to dismiss before the next recruit."""
        if self._total >= 1.0:
            return 0
        gap = math.log1p(-chance.random()) / math.log1p(-self._total)
        return int(min(gap, _LONGEST_GAP))

    def pick(self, chance: Chance) -> Entry:
        """Draw the job of a recruit, by its share of the total rate."""
        number = chance.random() * self._total
        index = bisect_right(self._cumulative, number)
        return self._drawable[min(index, len(self._drawable) - 1)]

    def refresh(self) -> None:
        """Make the lottery anew from the installed jobs."""
        entries = self._entries.values()
        self._timed = tuple(e for e in entries if isinstance(e.pace, PerTime))
        # A job of rate 0 has no place in the lottery, not even at a boundary.
        drawable = [(e, e.pace.rate) for e in entries if isinstance(e.pace, PerCall)]
        drawable = [(entry, rate) for entry, rate in drawable if rate > 0.0]
        self._drawable = tuple(entry for entry, _ in drawable)
        self._cumulative = tuple(accumulate(rate for _, rate in drawable))
        self._total = min(1.0, math.fsum(rate for _, rate in drawable))

    @property
    def has_rates(self) -> bool:
        """Whether any job has a rate above 0."""
        return self._total > 0.0

    @property
    def timed(self) -> tuple[Entry, ...]:
        """The jobs with an interval."""
        return self._timed

    def _check_total(self, name: str, pace: Pace) -> None:
        if not isinstance(pace, PerCall):
            return
        others = [
            entry.pace.rate
            for entry in self._entries.values()
            if entry.name != name and isinstance(entry.pace, PerCall)
        ]
        total = math.fsum((*others, pace.rate))
        if total > 1.0 + _TOLERANCE:
            raise RateExceeded(
                f"with {name!r} at {pace.rate} the rates add up to {total:.6g}, above"
                " 1.0: lower a rate, or use every= for jobs that need no share of calls"
            )


def slice_of(job: Any) -> tuple[Recruited, bool]:
    """Return what to call for one slice, and whether it is a coroutine function."""
    recruited = getattr(job, "recruited", None)
    if callable(recruited) and not isinstance(job, type):
        return recruited, _is_coroutine_function(recruited)
    if callable(job) and not isinstance(job, type):
        return job, _is_coroutine_function(job)
    raise NotAJob(
        f"{job!r} is not a job: pass a function, or an object with recruited()"
    )


def checked_name(name: str) -> str:
    """Refuse a name that logs and metrics could not carry."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"a job's name has letters, digits, _ . : / and -, not {name!r}"
        )
    return name


def _is_coroutine_function(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - its kind, not its presence
    )
