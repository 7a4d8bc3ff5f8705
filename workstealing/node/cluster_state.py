"""The state of a cluster: its workers, and which job is where.

It has two implementations that behave alike, in this process (`MemoryState`) and in
Redis (`SharedState`); one model tests both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ("ClusterState", "StolenJob", "WorkerLoad")


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """How many jobs a worker has."""

    waiting: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class StolenJob:
    """A job that was stolen; it is in flight with the thief."""

    job: str
    left: int
    """How many jobs the victim still has."""


class ClusterState(Protocol):
    """Workers and jobs, by their names; the name of a job is unique until it is done.

    A job waits in one deque, or is in flight with one worker, until it is `done`. If
    there are no workers, it waits for one. All methods that take the name of a worker
    raise `UnknownWorker` if there is none of that name.
    """

    def initialise(self) -> None:
        """Remember that there was an `init`."""
        ...

    def is_initialised(self) -> bool:
        """Return whether there ever was an `init`."""
        ...

    def workers(self) -> list[str]:
        """Return the names of all workers."""
        ...

    def loaded(self) -> list[str]:
        """Return the workers that have jobs waiting."""
        ...

    def loads(self, workers: Sequence[str]) -> dict[str, WorkerLoad]:
        """Return how many jobs some workers have."""
        ...

    def all_idle(self) -> bool:
        """Return whether no job is waiting or in flight anywhere."""
        ...

    def add(self, worker: str) -> None:
        """Add a worker that does not exist yet."""
        ...

    def remove(self, worker: str) -> int:
        """Remove a worker; its jobs, including those in flight, go to others."""
        ...

    def push(self, worker: str | None, jobs: Sequence[str]) -> list[str]:
        """Put jobs at the back of a deque; return those that are new.

        With None, if there is no worker, they wait for the first one.
        """
        ...

    def take(self, worker: str) -> str | None:
        """Take the job at the front of a worker's own deque."""
        ...

    def steal(self, victim: str, thief: str) -> StolenJob | None:
        """Take the job at the back of a victim's deque; None if there is none."""
        ...

    def held(self, worker: str) -> list[str]:
        """Return the jobs that a worker has in flight."""
        ...

    def done(self, worker: str, job: str) -> bool:
        """Complete a job in flight; return False if the worker does not have it."""
        ...

    def hand_back(self, worker: str, job: str) -> bool:
        """Put a job in flight back to the front; False if it is not in flight."""
        ...
