"""The state of a cluster: its workers, and which job is where.

It has two implementations that behave alike, in this process (`MemoryState`, on the
deques of the pool) and in Redis (`SharedState`); one model tests both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from workstealing.errors import UnknownWorker
from workstealing.pool.work_deques import WorkDeques

__all__ = ("ClusterState", "MemoryState", "StolenJob", "WorkerLoad")


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


class MemoryState:
    """A `ClusterState` that ends with its process."""

    def __init__(self) -> None:
        self._deques: WorkDeques[str] = WorkDeques()
        self._held: dict[str, list[str]] = {}
        self._jobs: set[str] = set()
        self._is_initialised = False

    def initialise(self) -> None:
        """Remember that there was an `init`."""
        self._is_initialised = True

    def is_initialised(self) -> bool:
        """Return whether there ever was an `init`."""
        return self._is_initialised

    def workers(self) -> list[str]:
        """Return the names of all workers."""
        return list(self._held)

    def loaded(self) -> list[str]:
        """Return the workers that have jobs waiting."""
        return [worker for worker in self._held if self._deques.size(worker)]

    def loads(self, workers: Sequence[str]) -> dict[str, WorkerLoad]:
        """Return how many jobs some workers have."""
        deques = self._deques
        return {
            worker: WorkerLoad(deques.size(worker), deques.in_flight(worker))
            for worker in workers
        }

    def all_idle(self) -> bool:
        """Return whether no job is waiting or in flight anywhere."""
        return self._deques.all_idle

    def add(self, worker: str) -> None:
        """Add a worker that does not exist yet."""
        self._deques.add(worker)
        self._held[worker] = []

    def remove(self, worker: str) -> int:
        """Remove a worker; its jobs, including those in flight, go to others."""
        moved = self._deques.remove(worker)
        held = self._held.pop(worker)
        for job in held:
            self._deques.hand_back(worker, job)
        return moved + len(held)

    def push(self, worker: str | None, jobs: Sequence[str]) -> list[str]:
        """Put jobs at the back of a deque; return those that are new."""
        fresh = [job for job in dict.fromkeys(jobs) if job not in self._jobs]
        for job in fresh:
            if worker is None:
                self._deques.spread(job)
            else:
                self._deques.push(worker, job)
        self._jobs.update(fresh)
        return fresh

    def take(self, worker: str) -> str | None:
        """Take the job at the front of a worker's own deque."""
        job = self._deques.take(worker)
        if job is not None:
            self._held[worker].append(job)
        return job

    def steal(self, victim: str, thief: str) -> StolenJob | None:
        """Take the job at the back of a victim's deque; None if there is none."""
        stolen = self._deques.steal_from(victim, thief)
        if stolen is None:
            return None
        self._held[thief].append(stolen.item)
        return StolenJob(stolen.item, stolen.left)

    def held(self, worker: str) -> list[str]:
        """Return the jobs that a worker has in flight."""
        if worker not in self._held:
            raise UnknownWorker(f"there is no worker {worker!r}")
        return list(self._held[worker])

    def done(self, worker: str, job: str) -> bool:
        """Complete a job in flight; return False if the worker does not have it."""
        if job not in self.held(worker):
            return False
        self._deques.done(worker)
        self._held[worker].remove(job)
        self._jobs.remove(job)
        return True

    def hand_back(self, worker: str, job: str) -> bool:
        """Put a job in flight back to the front; False if it is not in flight."""
        if job not in self.held(worker):
            return False
        self._deques.hand_back(worker, job)
        self._held[worker].remove(job)
        return True
