"""Decides whether a drawn job may run now, and learns from how it went."""

from __future__ import annotations

from workstealing.chance import Chance
from workstealing.errors import ConfigurationError
from workstealing.recruiting.protection import (
    Breaker,
    Breakers,
    DebtBucket,
    GateKeeper,
    StoreGate,
    is_above_zero,
    is_absence,
)
from workstealing.recruiting.roster import Entry
from workstealing.recruiting.slicing import Slice, inside_slice
from workstealing.telemetry.events import BreakerClosed, BreakerOpened, Outcome

__all__ = ("Guard",)

# What a rested process may spend at once on top of its share: one default slice.
_SAVINGS = 0.05


class Guard:
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
        if deadline is not None and not is_above_zero(deadline):
            raise ConfigurationError(
                f"deadline must be above 0 seconds, not {deadline!r}"
            )
        if not isinstance(breaker, Breaker | None):
            raise ConfigurationError(f"breaker= takes a Breaker, not {breaker!r}")
        if not isinstance(gate, StoreGate | None):
            raise ConfigurationError(f"gate= takes a StoreGate, not {gate!r}")
        self._deadline = deadline
        self._chance = chance
        self._breakers = Breakers(breaker)
        self._bucket = DebtBucket(share, _SAVINGS, now)
        self._gate = None if gate is None else GateKeeper(gate)

    def refusal(self, entry: Entry, now: float, spare: float | None) -> Outcome | None:
        """Say why a drawn job may not run, or None if it may."""
        if spare is not None and not spare > 0.0:
            return Outcome.BUDGET
        if not self._bucket.admits(now):
            return Outcome.BUDGET
        if self._gate is not None and not self._gate.admits(self._chance):
            return Outcome.STORE
        return self.hindrance(entry, now)

    def hindrance(self, entry: Entry, now: float) -> Outcome | None:
        """Say why a job cannot run, even where there is time enough."""
        if entry.is_busy or inside_slice():
            return Outcome.BUSY
        admit = self._breakers.admit
        is_open = not (admit(entry.own_target, now) and admit(entry.target, now))
        return Outcome.OPEN if is_open else None

    def limit(self, spare: float | None) -> float | None:
        """Return the seconds that a slice may take."""
        if spare is None or self._deadline is None:
            return self._deadline if spare is None else spare
        return min(self._deadline, spare)

    def settle(self, ended: Slice) -> list[BreakerOpened | BreakerClosed]:
        """Charge a slice for its time, and judge its target."""
        self._bucket.spend(ended.seconds)
        own, shared = ended.entry.own_target, ended.entry.target
        if ended.outcome is Outcome.ERROR and ended.error is not None:
            # A job that is itself wrong must not close the target to its neighbours.
            target = shared if is_absence(ended.error) else own
            pause = self._breakers.failed(target, ended.ended_at)
            return [BreakerOpened(target, pause)] if pause else []
        if ended.outcome is Outcome.INTERRUPTED or not self._breakers.has_failures:
            return []
        closed = [t for t in (own, shared) if self._breakers.succeeded(t)]
        return [BreakerClosed(target) for target in closed]

    def forget(self, entry: Entry) -> None:
        """Let go of what is held against a job that is uninstalled."""
        self._breakers.succeeded(entry.own_target)

    def heard(self, rtt: float, now: float) -> None:
        """Pass a round trip of the caller on to the store gate; ignore nonsense."""
        if self._gate is not None and is_above_zero(rtt):
            self._gate.heard(rtt, now)

    def open_targets(self, now: float) -> dict[str, float]:
        """Return the seconds that each open target is still left alone."""
        return self._breakers.open_targets(now)

    def debt(self, now: float) -> float:
        """Return the seconds of side work that are still owed."""
        return self._bucket.debt(now)
