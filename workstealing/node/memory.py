"""The state of a cluster in this process, on the deques of the pool."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.errors import UnknownWorker
from workstealing.node.state import Load, Stolen
from workstealing.pool.deques import Deques

__all__ = ("MemoryState",)


class MemoryState:
    """A `State` that ends with its process."""

    def __init__(self) -> None:
        self._deques: Deques[str] = Deques()
        self._held: dict[str, list[str]] = {}
        self._jobs: set[str] = set()
        self._is_initialised = False

    def initialise(self) -> None:
        """Remember that there was an `init`."""
        self._is_initialised = True

    def is_initialised(self) -> bool:
        """Tell whether there ever was an `init`."""
        return self._is_initialised

    def workers(self) -> list[str]:
        """Name all workers."""
        return list(self._held)

    def loaded(self) -> list[str]:
        """Name the workers that have something waiting."""
        return [worker for worker in self._held if self._deques.size(worker)]

    def loads(self, workers: Sequence[str]) -> dict[str, Load]:
        """Tell how much some workers have."""
        deques = self._deques
        return {
            worker: Load(deques.size(worker), deques.in_flight(worker))
            for worker in workers
        }

    def all_idle(self) -> bool:
        """Tell whether no job is anywhere, waiting or in flight."""
        return self._deques.all_idle

    def add(self, worker: str) -> None:
        """Take on a worker that is not there."""
        self._deques.add(worker)
        self._held[worker] = []

    def remove(self, worker: str) -> int:
        """Let a worker go; its jobs, also those in flight, go to others."""
        moved = self._deques.remove(worker)
        held = self._held.pop(worker)
        for job in held:
            self._deques.hand_back(worker, job)
        return moved + len(held)

    def push(self, worker: str | None, jobs: Sequence[str]) -> list[str]:
        """Put jobs at the back of a deque; return those that were not there yet."""
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

    def steal(self, victim: str, thief: str) -> Stolen | None:
        """Take the job at the back of another's deque; None if there is none."""
        loot = self._deques.steal_from(victim, thief)
        if loot is None:
            return None
        self._held[thief].append(loot.item)
        return Stolen(loot.item, loot.left)

    def held(self, worker: str) -> list[str]:
        """Name what a worker has in flight."""
        if worker not in self._held:
            raise UnknownWorker(f"there is no worker {worker!r}")
        return list(self._held[worker])

    def done(self, worker: str, job: str) -> bool:
        """Forget a job that a worker had in flight; False if it had not."""
        if job not in self.held(worker):
            return False
        self._deques.done(worker)
        self._held[worker].remove(job)
        self._jobs.remove(job)
        return True

    def hand_back(self, worker: str, job: str) -> bool:
        """Put a job in flight back to the front; False if the worker had it not."""
        if job not in self.held(worker):
            return False
        self._deques.hand_back(worker, job)
        self._held[worker].remove(job)
        return True
