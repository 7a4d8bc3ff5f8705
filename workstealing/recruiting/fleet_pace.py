"""The pace of a job that all processes share: one slice every few seconds in the fleet.

A process that takes the turn holds it for nearly the whole interval, and never gives it
back early: that limits the rate, with no scheduler and no leader. A process that finds
the turn taken learns when it will be free, and tries again shortly after, at a moment
that it draws. While Redis does not answer, no process has the turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from workstealing.chance import Chance
from workstealing.clock import Clock
from workstealing.errors import AmbiguousPace, ConfigurationError, Conflict
from workstealing.recruiting.job import Every, Pace, PerTime, pace

__all__ = ("FleetTurns", "PerFleet", "asked_pace")

# As parts of the interval. A turn lasts for _TURN; then each process waits for _JITTER
# on average before it tries. So a single process is late by a twentieth, and a thousand
# processes, the first of which tries at once, are early by as much.
_TURN = 0.95
_JITTER = 0.1


def asked_pace(
    rate: float | None, every: Every | None, of: FleetTurns | None, clock: Clock
) -> Pace:
    """Return the pace that a user asked for, of each process or of a fleet, checked."""
    asked = pace(rate, every)
    if of is None:
        return asked
    if isinstance(of, type) or not callable(getattr(of, "take", None)):
        raise ConfigurationError(
            f"of must be a Fleet, such as Fleet('redis://…'), not {of!r}"
        )
    if not isinstance(asked, PerTime):
        raise AmbiguousPace(
            "of= goes with every= (seconds), not with rate=, which is a share of the"
            " calls of each process"
        )
    return PerFleet(asked.every, of, clock)


class FleetTurns(Protocol):
    """Where the turns of a fleet are taken.

    An attribute `target`, if there is one, names the server for the breakers.
    """

    def take(self, job: str, seconds: float) -> Any:
        """Take the turn of a job; 0.0 if it is ours, else seconds until it is free.

        For jobs that are coroutine functions, it is one, too.
        """
        ...


@dataclass(slots=True)
class _Turn:
    """The turn of a job, as this process knows it."""

    free_at: float = 0.0
    """When it may try again, by its own clock."""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class PerFleet(PerTime):
    """One slice per *every* seconds in all processes together, on average."""

    turns: FleetTurns
    clock: Clock
    _turn: _Turn = field(default_factory=_Turn, compare=False)

    def wait(self, chance: Chance) -> float:
        """Draw the seconds until this process tries to take the turn."""
        free_in = max(0.0, self._turn.free_at - self.clock.monotonic())
        return free_in + PerTime(_JITTER * self.every).wait(chance)

    @property
    def has_turn(self) -> bool:
        """Whether the last slice had the turn, and so ran the job."""
        return self._turn.is_ours

    @property
    def server(self) -> str:
        """The target that turns depend on; empty while it is unknown."""
        return str(getattr(self.turns, "target", ""))

    def in_turn(
        self, job: str, recruited: Callable[[], Any], *, is_coroutine: bool
    ) -> Callable[[], Any]:
        """Return what runs a slice if it is the turn of this process."""
        if inspect.iscoroutinefunction(self.turns.take) is not is_coroutine:
            raise ConfigurationError(
                f"job {job!r} is a coroutine function: give it an AsyncFleet, not a"
                " Fleet"
                if is_coroutine
                else f"job {job!r} is not a coroutine function: give it a Fleet, not an"
                " AsyncFleet"
            )
        seconds = _TURN * self.every

        def note(free_in: float) -> None:
            self._turn.free_at = self.clock.monotonic() + (free_in or seconds)
            self._turn.is_ours = not free_in
            if free_in:
                # Not a slice that found nothing: most processes of a fleet end here.
                raise Conflict(f"another process has the turn of job {job!r}")

        def run() -> Any:
            self._turn.is_ours = False
            note(self.turns.take(job, seconds))
            return recruited()

        async def run_async() -> Any:
            self._turn.is_ours = False
            note(await self.turns.take(job, seconds))
            return await recruited()

        return run_async if is_coroutine else run
