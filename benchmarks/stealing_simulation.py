"""Simulates workers that take, steal, or share one queue; time is counted in jobs.

A mean job lasts 1. Whoever comes to a deque occupies it for a hundredth of that, and
others wait: that is all that a central queue and a deque of one's own differ by.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

__all__ = ("WORKLOADS", "Outcome", "Strategy", "simulate")

Strategy = Literal["no stealing", "steal one", "steal half", "central queue"]
Deques = list["deque[float]"]

_ACCESS = 0.01
_JOBS_EACH = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a simulation went."""

    ideal: float
    """When the last job could have ended: all share the work, or the longest lasts."""
    end: float
    """When it did."""
    steals: int
    jobs: int


def simulate(
    strategy: Strategy, workload: Callable[[int, Random], Deques], workers: int
) -> Outcome:
    """Let workers do a workload; the same every time."""
    chance = Random(workers)
    deques = workload(workers, chance)
    lengths = [length for own in deques for length in own]
    ideal = max(sum(lengths) / workers, max(lengths))
    if strategy == "central queue":
        # In turn, as if they had been submitted one after the other.
        deques = [deque(_in_turn(deques))]
    free_at = [0.0] * len(deques)
    loaded = _Loaded(deques)
    ready = [(0.0, worker) for worker in range(workers)]
    end, steals = 0.0, 0
    while ready:
        now, worker = heapq.heappop(ready)
        own = 0 if strategy == "central queue" else worker
        at = own if deques[own] else -1
        if at < 0 and strategy in ("steal one", "steal half"):
            at = loaded.draw(chance)
        if at < 0:
            continue
        free_at[at] = max(now, free_at[at]) + _ACCESS
        if at == own:
            length = deques[at].popleft()
        else:
            steals += 1
            number = (len(deques[at]) + 1) // 2 if strategy == "steal half" else 1
            stolen = [deques[at].pop() for _ in range(number)]
            length = stolen.pop()
            deques[own].extend(reversed(stolen))
            loaded.look_at(own)
        loaded.look_at(at)
        ended_at = free_at[at] + length
        end = max(end, ended_at)
        heapq.heappush(ready, (ended_at, worker))
    return Outcome(ideal, end, steals, len(lengths))


class _Loaded:
    """Which deques have something, to draw one of them at once."""

    def __init__(self, deques: Deques) -> None:
        self._deques = deques
        self._names = [name for name, items in enumerate(deques) if items]
        self._places = {name: place for place, name in enumerate(self._names)}

    def draw(self, chance: Random) -> int:
        return chance.choice(self._names) if self._names else -1

    def look_at(self, name: int) -> None:
        if self._deques[name] and name not in self._places:
            self._places[name] = len(self._names)
            self._names.append(name)
        elif not self._deques[name] and name in self._places:
            place, last = self._places.pop(name), self._names.pop()
            if last != name:
                self._names[place] = last
                self._places[last] = place


def _even(workers: int, _: Random) -> Deques:
    return [deque([1.0] * _JOBS_EACH) for _ in range(workers)]


def _uneven_lengths(workers: int, chance: Random) -> Deques:
    """One job in ten lasts as long as all the nine others together."""

    def length() -> float:
        return 5.0 if chance.random() < 0.1 else 5 / 9

    return [deque(length() for _ in range(_JOBS_EACH)) for _ in range(workers)]


def _unevenly_given(workers: int, _: Random) -> Deques:
    """A tenth of the workers, one at least, was given everything."""
    rich = max(1, workers // 10)
    shares: Deques = [deque() for _ in range(workers)]
    for number in range(workers * _JOBS_EACH):
        shares[number % rich].append(1.0)
    return shares


def _in_turn(deques: Sequence[Sequence[float]]) -> list[float]:
    longest = max(map(len, deques))
    return [own[n] for n in range(longest) for own in deques if n < len(own)]


WORKLOADS: dict[str, Callable[[int, Random], Deques]] = {
    "even work": _even,
    "uneven lengths": _uneven_lengths,
    "unevenly given": _unevenly_given,
}
