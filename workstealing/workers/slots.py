"""What the slots of a team have in common, be they threads or coroutines."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from workstealing.tasks.attempt import Attempt
from workstealing.workers.overseer import Slot
from workstealing.workers.team import Team

__all__ = ("Slots",)


class _LeavingSlot(Slot, Protocol):
    is_gone: bool


S = TypeVar("S", bound=_LeavingSlot)


class Slots(Generic[S]):
    """Those of a team, and those that leave when what they run has ended."""

    def __init__(self) -> None:
        self._slots: list[S] = []
        self._leaving: list[S] = []
        self._team: Team

    def join(self, team: Team) -> None:
        """Be told whose tasks to run."""
        self._team = team

    def attempts(self) -> list[Attempt]:
        """Return what runs now."""
        return [slot.attempt for slot in self.everyone() if slot.attempt is not None]

    def everyone(self) -> tuple[S, ...]:
        """Return all slots, those that leave too; for those who watch."""
        return (*self._slots, *self._leavers())

    def _leavers(self) -> list[S]:
        # One that has just begun something runs nothing yet, and is not gone.
        return [slot for slot in self._leaving if not slot.is_gone]
