"""Lets the workers of a cluster work in simulated time, which takes no real time.

Each worker takes from the front of its own deque; when that is empty it steals the last
job of a random worker that has one; when no worker has one, it stays idle, since no new
jobs come. The same seed and the same jobs give the same result.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from workstealing.chance import Chance
from workstealing.errors import UnknownWorker
from workstealing.node.cluster_state import ClusterState

__all__ = ("SimulationTally", "lengths", "simulate")

_SHORTEST_MS, _LONGEST_MS = 20.0, 400.0
_RATIO = math.log(_LONGEST_MS / _SHORTEST_MS)


@dataclass(slots=True)
class SimulationTally:
    """What a worker did."""

    completed: int = 0
    stolen: int = 0
    """Jobs that it stole from others."""
    busy_ms: float = 0.0


def lengths(seed: int) -> Callable[[str], float]:
    """Return how long each job lasts, in ms: drawn by the seed and the job's name.

    From 20 to 400 ms, with a median of 90.
    """

    def length(job: str) -> float:
        # Not for security; and the same job lasts as long on each node.
        drawn = Random(f"{seed}/{job}").random()  # noqa: S311
        return _SHORTEST_MS * math.exp(drawn * _RATIO)

    return length


def simulate(
    state: ClusterState,
    duration_ms: float,
    length: Callable[[str], float],
    chance: Chance,
    *,
    is_stealing: bool = True,
) -> dict[str, SimulationTally]:
    """Work for some simulated time; return what each worker did.

    A job that has not ended by then is handed back to the front, and starts over next
    time. A worker that has a job of a client in flight is busy with that.
    """
    return _Simulation(state, duration_ms, length, chance, is_stealing).run()


class _Simulation:
    def __init__(
        self,
        state: ClusterState,
        duration_ms: float,
        length: Callable[[str], float],
        chance: Chance,
        is_stealing: bool,
    ) -> None:
        self._state = state
        self._end_ms = duration_ms
        self._length = length
        self._chance = chance
        self._is_stealing = is_stealing
        # When a job ends, a unique number, the worker, the job.
        self._running: list[tuple[float, int, str, str]] = []
        self._tallies: dict[str, SimulationTally] = {}

    def run(self) -> dict[str, SimulationTally]:
        loads = self._state.loads(self._state.workers())
        self._tallies = {worker: SimulationTally() for worker in loads}
        for worker, load in loads.items():
            self._tallies[worker].busy_ms = self._end_ms if load.in_flight else 0.0
        free = [(0.0, name) for name, load in loads.items() if not load.in_flight]
        number = 0
        while free:
            for now, worker in free:
                job = self._next(worker) if now < self._end_ms else None
                if job is not None:
                    number += 1
                    ends = now + self._length(job)
                    heapq.heappush(self._running, (ends, number, worker, job))
                    busy_ms = min(ends, self._end_ms) - now
                    self._tallies[worker].busy_ms += busy_ms
            free = []
            if self._running and self._running[0][0] <= self._end_ms:
                now, _, worker, job = heapq.heappop(self._running)
                self._complete(worker, job)
                free = [(now, worker)]
        for _, _, worker, job in self._running:
            self._hand_back(worker, job)
        return self._tallies

    # Another node may remove a worker meanwhile: then its jobs go to others.

    def _next(self, worker: str) -> str | None:
        try:
            return self._state.take(worker) or self._steal(worker)
        except UnknownWorker:
            return None

    def _steal(self, thief: str) -> str | None:
        victims = self._state.loaded() if self._is_stealing else []
        while victims:
            victim = victims.pop(int(self._chance.random() * len(victims)))
            stolen = self._state.steal(victim, thief)
            if stolen is not None:
                self._tallies[thief].stolen += 1
                return stolen.job
        return None

    def _complete(self, worker: str, job: str) -> None:
        try:
            self._tallies[worker].completed += self._state.done(worker, job)
        except UnknownWorker:
            return

    def _hand_back(self, worker: str, job: str) -> None:
        try:
            self._state.hand_back(worker, job)
        except UnknownWorker:
            return
