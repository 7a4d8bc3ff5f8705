"""The part that both recruiters share: jobs, lottery, protections, statistics.

It begins and ends slices. `Recruiter` and `AsyncRecruiter` run them, each in its own
way. The lock is held for microseconds, and never while a job, a setup function or an
observer runs, so no caller waits for the work of another.

This is a base class, not a collaborator: a dismissed `enlist()` reads one attribute of
its recruiter, and reading it from a second object would cost 15 % more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import iscoroutinefunction
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from workstealing._forking import reset_in_children
from workstealing._printing import escaping_logger
from workstealing._stop_requests import is_stop_request
from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.errors import ConfigurationError
from workstealing.recruiting.fleet_pace import FleetTurns, PerFleet, asked_pace
from workstealing.recruiting.job import Every, PerCall
from workstealing.recruiting.job_sources import (
    Setup,
    Setups,
    in_setup,
    load_jobs,
    load_plugins,
    setting_up,
)
from workstealing.recruiting.lottery import Lottery
from workstealing.recruiting.protection import Breaker, SliceGuard, StoreGate
from workstealing.recruiting.roster import InstalledJob, Roster
from workstealing.recruiting.slice import Slice
from workstealing.recruiting.stats import RecruiterStats
from workstealing.telemetry.events import (
    Outcome,
    RateAdapted,
    SetupFailed,
    SliceRefused,
)
from workstealing.telemetry.observers import FanOut, Observer, Throttle

if TYPE_CHECKING:
    from workstealing.recruiting.adapting import Adapt, RateAdapter
    from workstealing.recruiting.hard_deadline import HardDeadline

__all__ = ("LEDGER_JOB", "RecruiterCore")

logger = escaping_logger(__name__)

Self = TypeVar("Self", bound="RecruiterCore")
Function = TypeVar("Function", bound=Callable[..., Any])
T = TypeVar("T")

LEDGER_JOB = "ledger"
"""The job that publishes what the others do."""

_DEFAULT_BREAKER = Breaker()
# With a store gate, at least every 64th call reports its round trip to it.
_LONGEST_STRIDE_WITH_GATE = 64


class RecruiterCore:
    """Installs jobs, draws which call works for which of them, and counts.

    `Recruiter` describes the arguments.
    """

    _takes_coroutines: ClassVar[bool] = False
    # Besides stop requests, what is raised to stop the host, never by a job.
    _passing: ClassVar[tuple[type[BaseException], ...]] = ()
    _masters: ClassVar[dict[type[RecruiterCore], RecruiterCore]] = {}

    def __init__(
        self,
        *,
        deadline: float | None = 0.05,
        hard_deadline: float | None = None,
        share: float | None = 0.01,
        breaker: Breaker | None = _DEFAULT_BREAKER,
        gate: StoreGate | None = None,
        adapt: Adapt | Mapping[str, Adapt] | None = None,
        observers: Iterable[Observer] = (),
        chance: Chance = SYSTEM_CHANCE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._hard_deadline: HardDeadline | None = None
        if hard_deadline is not None:
            if self._takes_coroutines:
                raise ConfigurationError(
                    "hard_deadline is for a Recruiter: an AsyncRecruiter goes on at its"
                    " deadline, whatever a job does"
                )
            self._hard_deadline = _interrupting(hard_deadline, deadline)
        self._clock = clock
        self._guard = SliceGuard(
            deadline=deadline,
            share=share,
            breaker=breaker,
            gate=gate,
            chance=chance,
            now=clock.monotonic(),
        )
        self._roster = Roster()
        longest_stride = _LONGEST_STRIDE_WITH_GATE if gate else None
        self._lottery = Lottery(self._roster, chance, longest_stride)
        self._adapter = None if adapt is None else _adapter(adapt)
        self._setups = Setups()
        self._observers = FanOut(observers, clock)
        self._is_observed = bool(self._observers)
        self._throttle = Throttle()
        # Re-entrant: a signal handler or a finalizer may enlist at any point.
        self._lock = RLock()
        self._reported_calls = 0
        self._faults = 0
        # What `enlist()` steps through; `_move` replaces it.
        self._stride = self._lottery.stride
        reset_in_children(self, RecruiterCore._reset_after_fork)

    @classmethod
    def master(cls: type[Self]) -> Self:
        """Return the recruiter of this process, made with defaults when first used."""
        # One operation of a dictionary: no lock that a forked child could inherit.
        masters = RecruiterCore._masters
        if cls not in masters:
            masters.setdefault(cls, cls())
        return cast("Self", masters[cls])

    def install(
        self,
        job: Any,
        name: str,
        *,
        rate: float | None = None,
        every: Every | None = None,
        of: FleetTurns | None = None,
        target: str | None = None,
    ) -> None:
        """Install a job, from the next call on.

        Args:
            job: a function, or an object with `recruited()`.
            name: what logs, metrics and `stats()` call it.
            rate: its share of all `enlist()` calls, 0.0 to 1.0.
            every: or else seconds between two slices, on average.
            of: a `Fleet`, if *every* is about all processes together; else it is about
                each of them.
            target: what it depends on; jobs of one target share a breaker. By default
                the job's own `target`, or its name.

        Raises:
            ConfigurationError: or a subclass that names what is wrong.
        """
        installed = InstalledJob.of(
            job,
            name,
            asked_pace(rate, every, of, self._clock),
            target,
            by_setup=in_setup(),
            takes_coroutines=self._takes_coroutines,
        )
        with self._lock:
            if self._adapter is not None:
                self._adapter.check(name, installed.pace)
            self._roster.add(installed)
            self._lottery.schedule(installed, self._clock.monotonic())
            self._redraw()

    def job(
        self,
        function: None = None,
        /,
        *,
        rate: float | None = None,
        every: Every | None = None,
        of: FleetTurns | None = None,
        name: str | None = None,
        target: str | None = None,
    ) -> Callable[[Function], Function]:
        """Install the decorated function, under *name* or its own name."""
        if function is not None:
            raise ConfigurationError(
                "@recruiter.job needs parentheses and a pace: write"
                " @recruiter.job(rate=0.001) or @recruiter.job(every=30.0)"
            )

        def install(function: Function) -> Function:
            own_name = name or str(getattr(function, "__name__", ""))
            self.install(
                function, own_name, rate=rate, every=every, of=of, target=target
            )
            return function

        return install

    def uninstall(self, name: str) -> None:
        """Uninstall a job; a slice in flight ends as usual."""
        with self._lock:
            self._guard.forget(self._roster[name])
            self._roster.remove(name)
            if self._adapter is not None:
                self._adapter.forget(name)
            self._redraw()

    def set_rate(
        self,
        name: str,
        rate: float | None = None,
        *,
        every: Every | None = None,
        of: FleetTurns | None = None,
    ) -> None:
        """Change how often a job is wanted, from the next call on."""
        new = asked_pace(rate, every, of, self._clock)
        with self._lock:
            if self._adapter is not None:
                self._adapter.check(name, new)
                self._adapter.forget(name)
            self._roster.set_pace(name, new)
            self._lottery.schedule(self._roster[name], self._clock.monotonic())
            self._redraw()

    def setup(self, function: Function) -> Function:
        """Run the decorated function once per process, before the first lottery.

        It is passed the recruiter. If it raises, that is logged, what it installed is
        uninstalled, and it is called again later.
        """
        if iscoroutinefunction(function) and not self._takes_coroutines:
            raise ConfigurationError(
                "a Recruiter cannot await a setup: use a plain function, or an"
                " AsyncRecruiter"
            )
        with self._lock:
            self._setups.add(function, self._clock.monotonic())
            self._redraw()
        return function

    def load(self, *modules: str) -> None:
        """Let each module, package or `module:function` install its jobs.

        A module does so by a function `install_jobs(recruiter)`.
        """
        load_jobs(self, modules)

    def load_plugins(self) -> None:
        """Let installed packages install theirs, by the group `workstealing.jobs`."""
        load_plugins(self)

    def stats(self) -> RecruiterStats:
        """Return what was counted in this process so far."""
        now = self._clock.monotonic()
        with self._lock:
            return RecruiterStats(
                calls=self._lottery.calls,
                jobs={job.name: job.stats(now) for job in self._roster},
                open_targets=self._guard.open_targets(now),
                debt=self._guard.debt(now),
                setup_failures=self._setups.failures,
                faults=self._faults,
            )

    def publish(self, redis: Any = None, *, every: Every = 10.0) -> None:
        """Publish what is counted to the ledger of the fleet, as a job `ledger`.

        The dashboard and Prometheus show it, per job and host, for an hour.

        Args:
            redis: a redis-py client of the kind that fits the recruiter, a URL, or
                None for the configured server.
            every: seconds per process between two slices, on average.
        """
        # By its name: side work needs no Redis, unless somebody asks for it.
        module = import_module("workstealing.jobs.stats_publisher")
        name = "AsyncStatsPublisher" if self._takes_coroutines else "StatsPublisher"
        publisher = getattr(module, name)(redis, self.stats)
        self.install(publisher, LEDGER_JOB, every=every)

    def would_dismiss(self) -> bool:
        """Dismiss this call if no job is drawn for it; if False, call `enlist()` next.

        For hosts that know early that a moment may come and would have to prepare for
        it: nearly always, this spares them that. If it turns out that there is no
        moment after all, they call `skip()` instead of `enlist()`.
        """
        for _ in self._stride:
            return True
        return False

    def skip(self) -> None:
        """Give a draw up: the host that was not dismissed has no moment after all.

        Otherwise the next call would certainly be drawn, and hosts that do have a
        moment would work more often than their rates.
        """
        try:
            with self._lock:
                if not self._setups.in_progress:
                    now = self._clock.monotonic()
                    self._move(self._lottery.skip, now, self._setups.due_at)
        except BaseException as error:  # noqa: BLE001 - a stop request passes
            self._end_fault(error)

    def _draw_slice(self, spare: float | None, rtt: float | None) -> Slice | None:
        """End a stride; begin a slice if this call is drawn and its job may run."""
        with self._lock:
            now = self._clock.monotonic()
            if rtt is not None:
                self._guard.note_round_trip(rtt, now)
            job = self._move(self._lottery.next_job, now, self._setups.due_at)
            if job is None:
                return None
            job.drawn_at = now
            refusal = self._guard.refusal(job, now, spare)
            if refusal is None:
                return self._begin(job, now, spare)
            job.counts.add(refusal)
            calls = self._unreported_calls()
        if self._is_observed:
            self._observers.observe(SliceRefused(job.name, refusal, calls))
        return None

    def _slice_now(self, name: str | None) -> Slice | Outcome | None:
        """Begin a slice of the named job, or of the one that was drawn longest ago.

        Lottery, budget and store gate are set aside: the caller has the time. Returns
        why there is none, or None if there is no job.
        """
        with self._lock:
            now = self._clock.monotonic()
            job = self._roster[name] if name else self._lottery.longest_waiting()
            if job is None:
                return None
            job.drawn_at = now
            self._lottery.schedule(job, now)
            obstacle = self._guard.obstacle(job, now)
            if obstacle is None:
                return self._begin(job, now, None)
            job.counts.add(obstacle)
            return obstacle

    def _begin(self, job: InstalledJob, now: float, spare: float | None) -> Slice:
        limit = self._guard.limit(spare)
        begun = Slice(job, self._clock, now, limit, self._passing)
        # Last: what fails before it would leave the job busy for ever.
        job.begin_slice()
        return begun

    def _end_slice(self, ended: Slice) -> None:
        """Count a slice, charge it for its time, and report it."""
        job = ended.job
        with self._lock:
            job.end_slice(ended)
            if isinstance(job.pace, PerFleet):
                # It knows by now when the next turn is.
                self._lottery.schedule(job, self._clock.monotonic())
            changes = self._guard.settle(ended)
            adapted = self._adapted(job) if self._adapter is not None else None
            calls = self._unreported_calls() if self._is_observed else 0
        if ended.outcome is Outcome.ERROR and ended.error is not None:
            self._log(f"job {job.name!r}", ended.error)
        if self._is_observed:
            for change in changes:
                self._observers.observe(change)
            self._observers.observe(ended.event(calls))
        if adapted is not None:
            self._report(adapted)

    def _adapted(self, job: InstalledJob) -> RateAdapted | None:
        """Change the rate of a job, if its slices speak for it."""
        assert self._adapter is not None
        if job not in self._roster:
            return None
        room = self._roster.room(job.name)
        change = self._adapter.change(job, room, self._clock.monotonic())
        if change is not None:
            self._roster.set_pace(job.name, PerCall(change.after))
            self._redraw()
        return change

    def _report(self, change: RateAdapted) -> None:
        words = "the rate of job %r went from %.3g to %.3g: %s"
        numbers = (change.job, change.before, change.after, change.why)
        self._write(logger.info, words, *numbers)
        if self._is_observed:
            self._observers.observe(change)

    def _setups_due(self) -> list[Setup]:
        """Return the setup functions to run now, before any lottery.

        Other callers need not wait for them: they are dismissed until `_end_setups()`.
        """
        with self._lock:
            functions = self._setups.begin(self._clock.monotonic())
            if functions:
                self._redraw()
        return functions

    @contextmanager
    def _setting_up(self, function: Setup) -> Iterator[None]:
        """Keep all that one setup function installs, or, if it raises, nothing."""
        before = {job.name for job in self._roster}
        try:
            with setting_up():
                yield
        except BaseException as error:
            with self._lock:
                self._setups.failures += 1
                for job in self._roster:
                    if job.by_setup and job.name not in before:
                        self._roster.remove(job.name)
            if self._is_for_host(error):
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

    def _redraw(self) -> None:
        is_paused = self._setups.in_progress
        self._move(self._lottery.pause if is_paused else self._lottery.refresh)

    def _move(self, move: Callable[..., T], *times: float | None) -> T:
        """Let the lottery move on, and `enlist()` step through the stride it has then.

        `enlist()` reads the stride from here: going by the lottery would be a second
        attribute to look up for every dismissed call.
        """
        result = move(*times)
        self._stride = self._lottery.stride
        return result

    def _unreported_calls(self) -> int:
        calls = self._lottery.calls
        unreported = calls - self._reported_calls
        self._reported_calls = calls
        return unreported

    def _is_for_host(self, error: BaseException) -> bool:
        return isinstance(error, self._passing) or is_stop_request(error)

    def _end_fault(self, error: BaseException) -> None:
        """Count and log an error that the host must not see; raise a stop request."""
        if self._is_for_host(error):
            raise error
        self._faults += 1
        self._log("enlist()", error)

    def _log(self, subject: str, error: BaseException) -> None:
        now = self._clock.monotonic()
        self._write(self._throttle.report, logger, subject, error, now)

    def _write(self, log: Callable[..., object], *words: object) -> None:
        try:
            log(*words)
        except BaseException as nested:
            if self._is_for_host(nested):
                raise
            # A logging handler failed.
            self._faults += 1

    def _reset_after_fork(self) -> None:
        """Forget, in a forked child, what belongs to the parent process."""
        self._lock = RLock()
        now = self._clock.monotonic()
        has_setups = self._setups.reset(now)
        for job in self._roster:
            job.forget_parent()
            self._lottery.schedule(job, now)
            if job.by_setup and has_setups:
                self._roster.remove(job.name)
        self._lottery.forget_calls()
        self._reported_calls = 0
        self._redraw()


def _interrupting(after: float, deadline: float | None) -> HardDeadline:
    # Few want it, and what reads bytecode takes a while to import.
    from workstealing.recruiting.hard_deadline import HardDeadline

    return HardDeadline(after, deadline)


def _adapter(adapt: Adapt | Mapping[str, Adapt]) -> RateAdapter:
    # Few want it, and the formulas of plans take a while to import.
    from workstealing.recruiting.adapting import RateAdapter

    return RateAdapter(adapt)
