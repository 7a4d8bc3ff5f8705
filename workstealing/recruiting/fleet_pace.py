"""The pace of a job that all processes share: one slice every few seconds in the fleet.

A turn is taken for nearly that long and never given back early: that limits the rate,
with no scheduler and no leader. Who finds it taken learns when it is free, and tries
again a little later, at a time of its own. Without an answer nobody has a turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from workstealing.chance import Chance
from workstealing.clock import Clock
from workstealing.errors import ConfigurationError, Conflict
from workstealing.recruiting.job import PerTime

__all__ = ("FleetTurns", "PerFleet")

# Parts of the interval: the turn lasts for one, the first of those who wait tries
# within the other. One process is late by a twentieth, a thousand early by as much.
_TURN = 0.95
_JITTER = 0.1


class FleetTurns(Protocol):
    """Where the turns of a fleet are taken."""

    def take(self, job: str, seconds: float) -> Any:
        """Take the turn of a job; 0.0 if it is ours, else seconds until it is free.

        For jobs that are coroutine functions, it is one, too.
        """
        ...


@dataclass(slots=True)
class _NextTurn:
    """When this process may try again, by its own clock."""

    free_at: float = 0.0


@dataclass(frozen=True, slots=True)
class PerFleet(PerTime):
    """One slice per *every* seconds in all processes together, on average."""

    turns: FleetTurns
    clock: Clock
    _turn: _NextTurn = field(default_factory=_NextTurn, compare=False)

    def wait(self, chance: Chance) -> float:
        """Draw the seconds until this process tries to take the turn."""
        free_in = max(0.0, self._turn.free_at - self.clock.monotonic())
        return free_in + PerTime(_JITTER * self.every).wait(chance)

    def in_turn(
        self, job: str, recruited: Callable[[], Any], *, is_coroutine: bool
    ) -> Callable[[], Any]:
        """Return what runs a slice if it is the turn of this process."""
        if inspect.iscoroutinefunction(self.turns.take) is not is_coroutine:
            wanted = "a Fleet, not an AsyncFleet: so does each job of a Recruiter, and"
            wanted += " each plain function of an AsyncRecruiter"
            if is_coroutine:
                wanted = "an AsyncFleet, not a Fleet: so does each coroutine function"
            raise ConfigurationError(f"job {job!r} needs {wanted}")
        seconds = _TURN * self.every

        def note(free_in: float) -> None:
            self._turn.free_at = self.clock.monotonic() + (free_in or seconds)
            if free_in:
                # Not a slice that found nothing: most processes of a fleet end here.
                raise Conflict(f"another process has the turn of job {job!r}")

        def run() -> Any:
            note(self.turns.take(job, seconds))
            return recruited()

        async def run_async() -> Any:
            note(await self.turns.take(job, seconds))
            return await recruited()

        return run_async if is_coroutine else run
