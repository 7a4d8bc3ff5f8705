"""The installed jobs, by name, and what is known of each in this process."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

from workstealing._checks import checked_job_name
from workstealing.errors import (
    ConfigurationError,
    CoroutineJob,
    DuplicateJob,
    NotAJob,
    RateExceeded,
    UnknownJob,
)
from workstealing.recruiting.fleet_pace import PerFleet
from workstealing.recruiting.job import Duty, Pace, PerCall, PerTime
from workstealing.recruiting.stats import JobCounts, JobStats

if TYPE_CHECKING:
    from workstealing.recruiting.slice import Slice

__all__ = ("InstalledJob", "Recruited", "Roster", "slice_of")

# Floats that should add up to 1.0 often add up to a little more.
_TOLERANCE = 1e-9

Recruited = Callable[[], "Duty | Awaitable[Duty | None] | None"]


@dataclass(slots=True, eq=False)
class InstalledJob:
    """A job with its name and pace, and its state in this process."""

    name: str
    job: Recruited
    is_coroutine: bool
    pace: Pace
    target: str
    """What it depends on; jobs of one target share a breaker."""
    by_setup: bool
    """Installed by a setup function, which will install it again after a fork."""
    recruited: Recruited = field(init=False)
    """What runs a slice, if it is the turn of this process."""
    own_target: str = field(init=False)
    """What fails when the job itself is wrong, not what it depends on."""
    due_at: float = field(init=False, default=math.inf)
    drawn_at: float = field(init=False, default=-math.inf)
    counts: JobCounts = field(init=False, default_factory=JobCounts)
    _has_slice: bool = field(init=False, default=False)
    _apart_done: Event | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.own_target = f"job:{self.name}"
        self.set_pace(self.pace)

    @classmethod
    def of(
        cls,
        job: Any,
        name: str,
        pace: Pace,
        target: str | None,
        *,
        by_setup: bool,
        takes_coroutines: bool,
    ) -> InstalledJob:
        """Check what a user wants to install."""
        recruited, is_coroutine = slice_of(job)
        if is_coroutine and not takes_coroutines:
            raise CoroutineJob(
                f"job {name!r} is a coroutine function, which a Recruiter cannot await:"
                " install it on an AsyncRecruiter"
            )
        if target is not None and not isinstance(target, str):
            raise ConfigurationError(f"target must be a string, not {target!r}")
        if target is None:
            own = getattr(job, "target", None)
            target = own if isinstance(own, str) and own else name
        return cls(
            checked_job_name(name), recruited, is_coroutine, pace, target, by_setup
        )

    def set_pace(self, pace: Pace) -> None:
        """Change how often it is wanted."""
        recruited = self.job
        if isinstance(pace, PerFleet):
            recruited = pace.in_turn(
                self.name, self.job, is_coroutine=self.is_coroutine
            )
        self.pace, self.recruited = pace, recruited

    @property
    def targets(self) -> tuple[str, ...]:
        """What a slice depends on: its target, and the server of its turns."""
        pace = self.pace
        if isinstance(pace, PerFleet) and pace.server not in ("", self.target):
            return (self.target, pace.server)
        return (self.target,)

    @property
    def reached(self) -> str:
        """Which of its targets the last slice got to."""
        if isinstance(self.pace, PerFleet) and not self.pace.has_turn:
            return self.targets[-1]
        return self.target

    @property
    def is_busy(self) -> bool:
        """Whether a slice is in flight, or was left behind by its event loop."""
        done = self._apart_done
        return self._has_slice or (done is not None and not done.is_set())

    def begin_slice(self) -> None:
        """Note that a slice is in flight."""
        self._has_slice = True

    def begin_apart(self) -> Event:
        """Note that a thread or task runs the job; it sets the event when it is done.

        An event loop may leave it behind, and even end before it does.
        """
        done = self._apart_done = Event()
        return done

    def end_slice(self, ended: Slice) -> None:
        """Count a slice that has ended."""
        self._has_slice = False
        self.counts.add_slice(ended)

    def forget_parent(self) -> None:
        """Forget, in a forked child, what runs and was counted in the parent."""
        self._has_slice = False
        self._apart_done = None
        self.counts = JobCounts()

    def stats(self, now: float) -> JobStats:
        """Return a snapshot of what was counted."""
        rate = self.pace.rate if isinstance(self.pace, PerCall) else None
        every = self.pace.every if isinstance(self.pace, PerTime) else None
        of_fleet = isinstance(self.pace, PerFleet)
        return self.counts.snapshot(rate, every, now, of_fleet=of_fleet)


class Roster:
    """Installed jobs by name; their rates never add up to more than 1.0."""

    def __init__(self) -> None:
        self._jobs: dict[str, InstalledJob] = {}

    def __iter__(self) -> Iterator[InstalledJob]:
        # A copy: jobs come and go while others look.
        return iter(tuple(self._jobs.values()))

    def __getitem__(self, name: str) -> InstalledJob:
        try:
            return self._jobs[name]
        except KeyError:
            known = ", ".join(sorted(self._jobs)) or "none"
            raise UnknownJob(
                f"no job named {name!r} is installed; installed are: {known}"
            ) from None

    def add(self, job: InstalledJob) -> None:
        """Add a job; see `Recruiter.install` for what it raises."""
        if job.name in self._jobs:
            raise DuplicateJob(
                f"a job named {job.name!r} is already installed: use another name, or"
                " uninstall() it first"
            )
        self._check_total(job.name, job.pace)
        self._jobs[job.name] = job

    def remove(self, name: str) -> None:
        """Remove a job."""
        del self._jobs[self[name].name]

    def set_pace(self, name: str, pace: Pace) -> None:
        """Change how often a job is wanted."""
        job = self[name]
        self._check_total(name, pace)
        job.set_pace(pace)
        job.due_at = math.inf

    def room(self, name: str) -> float:
        """Return the rate that the other jobs leave to one."""
        return max(0.0, 1.0 - math.fsum(self._other_rates(name)))

    def _check_total(self, name: str, pace: Pace) -> None:
        if not isinstance(pace, PerCall):
            return
        total = math.fsum((*self._other_rates(name), pace.rate))
        if total > 1.0 + _TOLERANCE:
            raise RateExceeded(
                f"with {name!r} at {pace.rate} the rates add up to {total:.6g}, above"
                " 1.0: lower a rate, or use every= for jobs that need no share of calls"
            )

    def _other_rates(self, name: str) -> list[float]:
        return [
            job.pace.rate
            for job in self._jobs.values()
            if job.name != name and isinstance(job.pace, PerCall)
        ]


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


def _is_coroutine_function(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - its kind, not its presence
    )
