"""What a cluster must keep: who is there, and which job is where.

Two things keep it, in this process (`memory`) or in Redis (`shared`). They are told
apart by nothing but who else sees them; one model tests both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ("Load", "State", "Stolen")


@dataclass(frozen=True, slots=True)
class Load:
    """How much a worker has."""

    waiting: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class Stolen:
    """What a thief got; the job is in flight with it."""

    job: str
    left: int
    """How many jobs the victim still has."""


class State(Protocol):
    """Jobs are known by a text that is theirs alone while they are there.

    A job waits in one deque, or is in flight with one worker, until it is `done`. With
    no worker at all it waits for one to come. All methods that name a worker raise
    `UnknownWorker` if there is none of that name.
    """

    def initialise(self) -> None:
        """Remember that there was an `init`."""
        ...

    def is_initialised(self) -> bool:
        """Tell whether there ever was an `init`."""
        ...

    def workers(self) -> list[str]:
        """Name all workers."""
        ...

    def loaded(self) -> list[str]:
        """Name the workers that have something waiting."""
        ...

    def loads(self, workers: Sequence[str]) -> dict[str, Load]:
        """Tell how much some workers have."""
        ...

    def all_idle(self) -> bool:
        """Tell whether no job is anywhere, waiting or in flight."""
        ...

    def add(self, worker: str) -> None:
        """Take on a worker that is not there."""
        ...

    def remove(self, worker: str) -> int:
        """Let a worker go; its jobs, also those in flight, go to others."""
        ...

    def push(self, worker: str | None, jobs: Sequence[str]) -> list[str]:
        """Put jobs at the back of a deque; return those that were not there yet.

        With None, where there is no worker, they wait for the first that comes.
        """
        ...

    def take(self, worker: str) -> str | None:
        """Take the job at the front of a worker's own deque."""
        ...

    def steal(self, victim: str, thief: str) -> Stolen | None:
        """Take the job at the back of another's deque; None if there is none."""
        ...

    def held(self, worker: str) -> list[str]:
        """Name what a worker has in flight."""
        ...

    def done(self, worker: str, job: str) -> bool:
        """Forget a job that a worker had in flight; False if it had not."""
        ...

    def hand_back(self, worker: str, job: str) -> bool:
        """Put a job in flight back to the front; False if the worker had it not."""
        ...
