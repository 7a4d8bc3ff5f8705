"""What keeps side work from hurting its host; all of it local to the process.

The debt bucket bounds the share of time, the breaker leaves a failing target alone, and
the store gate steps back while the store is slow. None of them does I/O or reads a
clock: they are told the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from workstealing.chance import Chance
from workstealing.errors import ConfigurationError

__all__ = (
    "Breaker",
    "Breakers",
    "DebtBucket",
    "GateKeeper",
    "StoreGate",
    "is_above_zero",
    "is_absence",
)


@dataclass(frozen=True, slots=True)
class Breaker:
    """How long a failing target is left alone: *first* seconds, doubling to *most*."""

    first: float = 1.0
    most: float = 10.0

    def __post_init__(self) -> None:
        times = (self.first, self.most)
        if not (all(map(is_above_zero, times)) and self.first <= self.most):
            raise ConfigurationError(
                f"a breaker needs 0 < first <= most seconds, not {self.first} and"
                f" {self.most}"
            )

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        return min(self.most, self.first * 2.0 ** min(failures - 1, 60))


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
        """Tell whether the target may be tried; a failed one gets one try at a time."""
        if self._breaker is None or target not in self._failures:
            return True
        if now < self._open_until[target]:
            return False
        # Whoever comes while this try is in flight is refused as if it had failed.
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
        """Close the breaker; tell whether the target had failed before."""
        self._open_until.pop(target, None)
        return self._failures.pop(target, None) is not None

    def open_targets(self, now: float) -> dict[str, float]:
        """Return the seconds that each open target is still left alone."""
        return {
            target: until - now
            for target, until in self._open_until.items()
            if until > now
        }


class DebtBucket:
    """Side work takes at most *share* of wall time.

    A slice may run while there is no debt, and afterwards owes what it took; the debt
    is paid off by time passing. What is saved up is bounded, so a long rest does not
    buy a long burst.
    """

    def __init__(self, share: float | None, savings: float, now: float) -> None:
        if share is not None and not (is_above_zero(share) and share <= 1.0):
            raise ConfigurationError(f"share must be above 0.0, up to 1.0, not {share}")
        self._share = share
        self._savings = savings
        self._tokens = savings
        self._filled_at = now

    def admits(self, now: float) -> bool:
        """Tell whether there is no debt."""
        if self._share is None:
            return True
        self._fill(self._share, now)
        return self._tokens > 0.0

    def spend(self, seconds: float) -> None:
        """Owe what a slice took."""
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


@dataclass(frozen=True, slots=True)
class StoreGate:
    """Step back while the store answers more slowly than it used to.

    Callers tell what a round trip took by `enlist(rtt=…)`. Above *tolerance* times the
    base, the best of the last *memory* seconds, fewer slices are admitted; below, more
    again. A base that was learnt under congestion is blind to it.
    """

    tolerance: float = 2.0
    least: float = 0.01
    memory: float = 600.0

    def __post_init__(self) -> None:
        if not (self.tolerance > 1.0 and 0.0 < self.least <= 1.0 and self.memory > 0.0):
            raise ConfigurationError(
                "a store gate needs tolerance > 1, 0 < least <= 1 and memory > 0"
            )


class GateKeeper:
    """The state of a store gate: slow down by a third, recover step by step."""

    _SLOWER = 0.7
    _FASTER = 0.03

    def __init__(self, gate: StoreGate) -> None:
        self._gate = gate
        self._open = 1.0
        self._base = math.inf
        self._older_base = math.inf
        self._turn_at = -math.inf

    def heard(self, rtt: float, now: float) -> None:
        """Learn from one round trip."""
        if now >= self._turn_at:
            self._older_base, self._base = self._base, math.inf
            self._turn_at = now + self._gate.memory / 2.0
        self._base = min(self._base, rtt)
        if rtt > self._gate.tolerance * min(self._base, self._older_base):
            self._open = max(self._gate.least, self._open * self._SLOWER)
        else:
            self._open = min(1.0, self._open + self._FASTER)

    def admits(self, chance: Chance) -> bool:
        """Tell by lot whether a slice may run now."""
        return self._open >= 1.0 or chance.random() < self._open


def is_absence(error: BaseException) -> bool:
    """Tell whether an error means that a target is away, not that a job is wrong.

    Clients name these errors alike but share no class, so the names decide.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint(("ConnectionError", "TimeoutError", "RedisUnavailable"))


def is_above_zero(number: object) -> bool:
    """Tell whether it is a number of seconds, or a share, that makes sense."""
    return isinstance(number, int | float) and 0.0 < number < math.inf
