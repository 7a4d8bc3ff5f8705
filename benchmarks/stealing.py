"""What stealing gains, and what the end of the deque has to do with it.

`python -m benchmarks.stealing [FILE.svg]` prints all figures, and draws them.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.measuring import Budget
from benchmarks.stealing_simulation import WORKLOADS, Strategy, simulate
from workstealing.pool.work_deques import WorkDeques

__all__ = ("measure",)

_WORKERS = (2, 4, 10, 30, 100, 300, 1000)
_STRATEGIES: tuple[Strategy, ...] = (
    "no stealing",
    "steal one",
    "steal half",
    "central queue",
)
_THIEVES = (1, 3, 7)
_LENGTHS = (1, 2, 4, 8, 16, 32)
_JOBS = 10_000
_ROUNDS = 5
_CLAIMED = 9.0


def measure() -> list[Budget]:
    """Measure what stealing must gain; simulated, so the same on each machine."""
    uneven, given = WORKLOADS["uneven lengths"], WORKLOADS["unevenly given"]
    one = simulate("steal one", uneven, 1000)
    none = simulate("no stealing", uneven, 1000)
    central = simulate("central queue", uneven, 1000)
    few, many = simulate("steal half", given, 1000), simulate("steal one", given, 1000)
    return [
        Budget(
            "uneven lengths, 1,000 workers: steal one / none", one.end / none.end, 0.7
        ),
        Budget("the same: steal one / central queue", one.end / central.end, 0.2),
        Budget(
            "unevenly given: steal half / one, steals", few.steals / many.steals, 0.5
        ),
    ]


def main() -> None:
    """Print all figures; draw them if a file is named."""
    print("Threads that met at one deque, per 1,000 jobs")
    locked = {number: _locked(number, lingers=True) for number in _THIEVES}
    for number, (back, front) in locked.items():
        as_it_is = "  ".join(f"{met:5.2f}" for met in _locked(number, lingers=False))
        slow = f"{back:6.1f}  {front:6.1f}  {front / back:.2f} x"
        print(f"  {number} thieves: back, front {as_it_is}; if each lingers {slow}")
    print("Two at one job, front / back, by how many jobs the deque has (simulated)")
    claims = {length: _claims(length) for length in _LENGTHS}
    for length, (back, front) in claims.items():
        ratio = f"{front / back:6.1f} x" if back else "   none at the back"
        print(f"  {length:>3} jobs: back {back:6.2f}  front {front:6.2f}  {ratio}")
    print("End of the last job / ideal, and steals per job (simulated)")
    for name, workload in WORKLOADS.items():
        for strategy in _STRATEGIES:
            outcomes = [simulate(strategy, workload, number) for number in _WORKERS]
            ends = "".join(f"{one.end / one.ideal:7.2f}" for one in outcomes)
            steals = outcomes[-1].steals / outcomes[-1].jobs
            print(f"  {name:<15} {strategy:<14}{ends}  {steals:.3f}")
    if len(sys.argv) > 1:
        _draw(Path(sys.argv[1]), locked, claims)


class _Items(deque[int]):
    """A deque whose thieves may steal at the front, and whose users may linger."""

    def __init__(self, *, is_turned: bool, lingers: bool) -> None:
        super().__init__()
        self._steal = super().popleft if is_turned else super().pop
        self._lingers = lingers

    def pop(self) -> int:  # type: ignore[override]
        self._linger()
        return self._steal()

    def popleft(self) -> int:
        self._linger()
        return super().popleft()

    def _linger(self) -> None:
        if self._lingers:
            # Lets other threads run: without a GIL they would run by themselves.
            time.sleep(0)


class _CountingLock:
    """A lock that counts how often a thread came while another held it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.met = 0

    def __enter__(self) -> None:
        is_met = self._lock.locked()
        self._lock.acquire()
        self.met += is_met

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _locked(thieves: int, *, lingers: bool) -> tuple[float, float]:
    """Count how often someone saw another at the deque: thieves behind, in front."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        rounds = [
            [
                _met(thieves, _Items(is_turned=is_turned, lingers=lingers))
                for is_turned in (False, True)
            ]
            for _ in range(_ROUNDS)
        ]
    finally:
        sys.setswitchinterval(before)
    back, front = zip(*rounds, strict=True)
    return statistics.median(back), statistics.median(front)


def _met(thieves: int, items: deque[int]) -> float:
    names = [f"thief {number}" for number in range(thieves)]
    deques: WorkDeques[int] = WorkDeques(["owner", *names])
    owned = deques._deques["owner"]
    owned.items = items
    lock = _CountingLock()
    owned.lock = lock  # type: ignore[assignment]
    for item in range(_JOBS):
        deques.push("owner", item)
    begun = threading.Barrier(thieves + 1)

    def own() -> None:
        begun.wait()
        while deques.take("owner") is not None:
            deques.done("owner")

    def steal(name: str) -> None:
        begun.wait()
        while deques.steal_from("owner", name) is not None:
            deques.done(name)

    threads = [threading.Thread(target=own)]
    threads += [threading.Thread(target=steal, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert deques.all_idle
    return lock.met / _JOBS * 1000


def _claims(length: int) -> tuple[float, float]:
    """Count how often owner and thief would be at the same job, if each had its end.

    The deque has *length* jobs on average: it grows and shrinks at random. Each round
    both reach for a job; per 1,000 rounds.
    """
    chance = Random(length)
    size, met_back, met_front, rounds = length, 0, 0, 200_000
    for _ in range(rounds):
        size += chance.choice((-1, 1))
        size = min(max(size, 0), 2 * length)
        if size:
            met_front += 1
            met_back += size == 1
    return met_back / rounds * 1000, met_front / rounds * 1000


def _draw(
    path: Path,
    locked: dict[int, tuple[float, float]],
    claims: dict[int, tuple[float, float]],
) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "workstealing"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(12, 7), layout="constrained")
    for axis, (name, workload) in zip(axes[0], WORKLOADS.items(), strict=True):
        for strategy in _STRATEGIES:
            outcomes = [simulate(strategy, workload, number) for number in _WORKERS]
            ends = [outcome.end / outcome.ideal for outcome in outcomes]
            axis.plot(_WORKERS, ends, marker="o", markersize=3, label=strategy)
        axis.set(xscale="log", yscale="log", title=name, xlabel="workers")
    axes[0][0].set_ylabel("last job ended / ideal")
    axes[0][0].legend()
    _bars(axes[1][0], list(map(str, locked)), list(locked.values()))
    axes[1][0].set(title="one lock: threads that met", xlabel="thieves")
    axes[1][0].set_ylabel("per 1,000 jobs")
    ratios = {n: front / back for n, (back, front) in claims.items() if back}
    axes[1][1].plot(list(ratios), list(ratios.values()), marker="o", markersize=3)
    axes[1][1].axhline(_CLAIMED, linestyle="--", color="gray", label="9 x")
    axes[1][1].set(title="no lock: same job, front / back", xlabel="jobs in the deque")
    axes[1][1].set(xscale="log", yscale="log")
    axes[1][1].legend()
    for strategy in _STRATEGIES[1:3]:
        outcomes = [
            simulate(strategy, WORKLOADS["unevenly given"], number)
            for number in _WORKERS
        ]
        steals = [outcome.steals / outcome.jobs for outcome in outcomes]
        axes[1][2].plot(_WORKERS, steals, marker="o", markersize=3, label=strategy)
    axes[1][2].set(xscale="log", title="unevenly given: steals per job")
    axes[1][2].set(xlabel="workers")
    axes[1][2].legend()
    figure.savefig(path, metadata={"Date": None})


def _bars(
    axis: object, names: list[str], values: Sequence[tuple[float, float]]
) -> None:
    places = range(len(names))
    bar = axis.bar  # type: ignore[attr-defined]
    bar([n - 0.2 for n in places], [back for back, _ in values], 0.4, label="back")
    bar([n + 0.2 for n in places], [front for _, front in values], 0.4, label="front")
    axis.set_xticks(list(places), names)  # type: ignore[attr-defined]
    axis.legend()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
