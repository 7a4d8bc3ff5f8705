"""Protects the host from its side work; all of it local to the process.

`SliceGuard` decides whether a drawn job may run, and for how long, and judges each
slice afterwards. It goes by four things:

- the deadline of a slice, and the seconds that the caller can spare;
- a debt bucket, which bounds the share of wall time that side work takes;
- a breaker per target, which leaves a failing target alone;
- a store gate, which lets fewer slices run while the store is slow.

Nothing here does I/O or reads a clock: the caller passes the time, and holds a lock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from workstealing._checks import checked_number, checked_seconds, checked_share
from workstealing.chance import Chance
from workstealing.errors import ConfigurationError
from workstealing.recruiting.roster import InstalledJob
from workstealing.recruiting.slice import Slice, inside_slice
from workstealing.telemetry.events import BreakerClosed, BreakerOpened, Outcome

__all__ = (
    "Breaker",
    "Breakers",
    "DebtBucket",
    "SliceGuard",
    "StoreGate",
    "is_outage",
)

# What a rested process may spend at once on top of its share: one default slice.
_SAVINGS = 0.05


@dataclass(frozen=True, slots=True)
class Breaker:
    """How long a failing target is left alone: *first* seconds, doubling to *most*."""

    first: float = 1.0
    most: float = 10.0

    def __post_init__(self) -> None:
        first = checked_seconds(self.first, "first")
        if checked_seconds(self.most, "most") < first:
            raise ConfigurationError(
                f"most must be >= first ({self.first!r}), not {self.most!r}"
            )

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after a number of failures in a row."""
        return min(self.most, self.first * 2.0 ** min(failures - 1, 60))


@dataclass(frozen=True, slots=True)
class StoreGate:
    """Run fewer slices while the store answers more slowly than it used to.

    Callers report what a round trip took by `enlist(rtt=…)`. Above *tolerance* times
    the base, which is the best of the last *memory* seconds, fewer slices are admitted,
    down to the share *least*; below, more again. If the store was slow all the time in
    which the base was learnt, the gate does not notice that it is.
    """

    tolerance: float = 2.0
    least: float = 0.01
    memory: float = 600.0

    def __post_init__(self) -> None:
        if checked_number(self.tolerance, "tolerance") <= 1.0:
            raise ConfigurationError(
                f"tolerance must be above 1.0, not {self.tolerance!r}"
            )
        checked_share(self.least, "least")
        checked_seconds(self.memory, "memory")


class SliceGuard:
    """All protections of one recruiter. Its caller holds a lock."""

    def __init__(
        self,
        *,
        deadline: float | None,
        share: float | None,
        breaker: Breaker | None,
        gate: StoreGate | None,
        chance: Chance,
        now: float,
    ) -> None:
        if not isinstance(breaker, Breaker | None):
            raise ConfigurationError(
                f"breaker must be a Breaker or None, not {breaker!r}"
            )
        if not isinstance(gate, StoreGate | None):
            raise ConfigurationError(f"gate must be a StoreGate or None, not {gate!r}")
        self._deadline = (
            None if deadline is None else checked_seconds(deadline, "deadline")
        )
        self._bucket = DebtBucket(share, _SAVINGS, now)
        self._breakers = Breakers(breaker)
        self._gate = None if gate is None else _GateState(gate, chance)

    def refusal(
        self, job: InstalledJob, now: float, spare: float | None
    ) -> Outcome | None:
        """Return why a drawn job may not run; None if it may."""
        if spare is not None and not spare > 0.0:
            return Outcome.BUDGET
        if not self._bucket.admits(now):
            return Outcome.BUDGET
        if self._gate is not None and not self._gate.admits():
            return Outcome.STORE
        return self.obstacle(job, now)

    def obstacle(self, job: InstalledJob, now: float) -> Outcome | None:
        """Return why a job cannot run, however much time there is."""
        if job.is_busy or inside_slice():
            return Outcome.BUSY
        breakers = self._breakers
        if breakers.has_failures and not all(
            breakers.admit(target, now) for target in (job.own_target, *job.targets)
        ):
            return Outcome.OPEN
        return None

    def limit(self, spare: float | None) -> float | None:
        """Return the seconds that a slice may take."""
        if spare is None or self._deadline is None:
            return self._deadline if spare is None else spare
        return min(self._deadline, spare)

    def settle(self, ended: Slice) -> list[BreakerOpened | BreakerClosed]:
        """Charge a slice for its time; open or close breakers by how it ended."""
        self._bucket.spend(ended.seconds)
        job, reached = ended.job, ended.job.reached
        changes: list[BreakerOpened | BreakerClosed] = []
        if ended.outcome is Outcome.ERROR and ended.error is not None:
            # A job that is itself wrong must not stop the others of its target.
            target = reached if is_outage(ended.error) else job.own_target
            pause = self._breakers.failed(target, ended.ended_at)
            changes += [BreakerOpened(target, pause)] if pause else []
            # If it had its turn, the server of the turns has answered.
            answered = job.targets[1:] if reached == job.target else ()
        elif ended.outcome is Outcome.INTERRUPTED or not self._breakers.has_failures:
            return []
        elif reached == job.target:
            answered = (job.own_target, *job.targets)
        else:
            # Without its turn, a job has not shown that it works.
            answered = (reached,)
        closed = [target for target in answered if self._breakers.succeeded(target)]
        return [*changes, *map(BreakerClosed, closed)]

    def forget(self, job: InstalledJob) -> None:
        """Forget the failures of a job that is uninstalled."""
        self._breakers.succeeded(job.own_target)

    def note_round_trip(self, rtt: float, now: float) -> None:
        """Pass a round trip of the caller on to the store gate; ignore nonsense."""
        is_number = isinstance(rtt, int | float)
        if self._gate is not None and is_number and 0.0 < rtt < math.inf:
            self._gate.note(rtt, now)

    def open_targets(self, now: float) -> dict[str, float]:
        """Return the seconds that each open target is still left alone."""
        return self._breakers.open_targets(now)

    def debt(self, now: float) -> float:
        """Return the seconds of side work that are still owed."""
        return self._bucket.debt(now)


class DebtBucket:
    """Side work takes at most *share* of wall time.

    A slice may run while there is no debt, and afterwards owes what it took; the debt
    is paid off by time passing. What is saved up is bounded, so a long rest does not
    buy a long burst.
    """

    def __init__(self, share: float | None, savings: float, now: float) -> None:
        self._share = None if share is None else checked_share(share, "share")
        self._savings = savings
        self._tokens = savings
        self._filled_at = now

    def admits(self, now: float) -> bool:
        """Return whether there is no debt."""
        if self._share is None:
            return True
        self._fill(self._share, now)
        return self._tokens > 0.0

    def spend(self, seconds: float) -> None:
        """Charge the time that a slice took."""
        if self._share is not None:
            self._tokens -= seconds

    def debt(self, now: float) -> float:
        """Return the seconds of side work that are still owed."""
        if self._share is None:
            return 0.0
        self._fill(self._share, now)
        return max(0.0, -self._tokens)

    def _fill(self, share: float, now: float) -> None:
        self._tokens = min(
            self._savings, self._tokens + share * (now - self._filled_at)
        )
        self._filled_at = now


class Breakers:
    """The breaker of each target, in this process."""

    def __init__(self, breaker: Breaker | None) -> None:
        self._breaker = breaker
        self._failures: dict[str, int] = {}
        self._open_until: dict[str, float] = {}

    @property
    def has_failures(self) -> bool:
        """Whether any target has failed and not answered since."""
        return bool(self._failures)

    def admit(self, target: str, now: float) -> bool:
        """Return whether a target may be tried; a failed one gets one try at a time."""
        if self._breaker is None or target not in self._failures:
            return True
        if now < self._open_until[target]:
            return False
        # Calls that come while this try is in flight are refused as if it had failed.
        self._open_until[target] = now + self._breaker.pause(self._failures[target] + 1)
        return True

    def failed(self, target: str, now: float) -> float:
        """Open the breaker; return for how many seconds, 0 when switched off."""
        if self._breaker is None:
            return 0.0
        failures = self._failures.get(target, 0) + 1
        pause = self._breaker.pause(failures)
        self._failures[target] = failures
        self._open_until[target] = now + pause
        return pause

    def succeeded(self, target: str) -> bool:
        """Close the breaker; return whether the target had failed before."""
        self._open_until.pop(target, None)
        return self._failures.pop(target, None) is not None

    def open_targets(self, now: float) -> dict[str, float]:
        """Return the seconds that each open target is still left alone."""
        return {
            target: until - now
            for target, until in self._open_until.items()
            if until > now
        }


class _GateState:
    """The share of slices that a store gate admits: a third less, or a step more."""

    _SLOWER = 0.7
    _FASTER = 0.03

    def __init__(self, gate: StoreGate, chance: Chance) -> None:
        self._gate = gate
        self._chance = chance
        self._admitted = 1.0
        self._base = math.inf
        self._older_base = math.inf
        self._turn_at = -math.inf

    def note(self, rtt: float, now: float) -> None:
        """Learn from one round trip."""
        if now >= self._turn_at:
            self._older_base, self._base = self._base, math.inf
            self._turn_at = now + self._gate.memory / 2.0
        self._base = min(self._base, rtt)
        if rtt > self._gate.tolerance * min(self._base, self._older_base):
            self._admitted = max(self._gate.least, self._admitted * self._SLOWER)
        else:
            self._admitted = min(1.0, self._admitted + self._FASTER)

    def admits(self) -> bool:
        """Draw whether a slice may run now."""
        return self._admitted >= 1.0 or self._chance.random() < self._admitted


def is_outage(error: BaseException) -> bool:
    """Return whether an error means that a target is away, not that a job is wrong.

    Clients name these errors alike but share no class, so the names decide.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint(("ConnectionError", "TimeoutError", "RedisUnavailable"))
