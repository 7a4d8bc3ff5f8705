"""Five SIGKILLs at random moments: what is lost, what runs twice, how long it takes.

Nearly all of it is waiting for a timeout, so several libraries are killed at once, each
with a server of its own.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from benchmarks.peers.arena import Arena, LibraryFailed
from benchmarks.peers.catalogue import FaultSetup, Library
from benchmarks.peers.workloads import Figures

__all__ = ("killed",)

_KILLS = 5
_AT_ONCE = 6
_FEWEST_TASKS = 200
# So long it may take until enough tasks have run for the next kill.
_NEXT_KILL_SECONDS = 30.0
# A task that runs a second time does so a little later.
_REPEATS_SECONDS = 3.0


def killed(
    libraries: Sequence[Library],
    new_arena: Callable[[], Arena],
    scale: float,
) -> dict[str, Figures | Exception]:
    """Kill the workers of each library in each of its setups.

    The figures are by library; an exception stands where there are none.
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        runs: dict[str, dict[str, Future[Figures]]] = {
            library.name: {
                name: threads.submit(_kill_five, new_arena, library, setup, scale)
                for name, setup in library.faults.items()
            }
            for library in libraries
        }
    return {name: _together(setups) for name, setups in runs.items()}


def _together(setups: dict[str, Future[Figures]]) -> Figures | Exception:
    figures: Figures = {}
    for name, run in setups.items():
        error = run.exception()
        if isinstance(error, Exception):
            return error
        figures |= {f"{name}_{what}": value for what, value in run.result().items()}
    return figures


def _kill_five(
    new_arena: Callable[[], Arena], library: Library, setup: FaultSetup, scale: float
) -> Figures:
    count = max(_FEWEST_TASKS, round(setup.tasks * scale))
    # Alike in every run, and not in step with the tasks.
    chance = random.Random(library.name)
    with new_arena() as arena:
        arena.empty()
        arena.call(library, setup.settings, "submit", "nap", count)
        worker = arena.start(library, setup.settings)
        for kill in range(1, _KILLS + 1):
            _await_some(arena, count * kill // (_KILLS + 2))
            time.sleep(chance.uniform(0.0, 0.05))
            arena.kill(worker)
            worker = arena.start(library, setup.settings)
        last_kill_at = time.monotonic()
        patience = max(10.0, setup.patience * min(1.0, scale * 4))
        while time.monotonic() < last_kill_at + patience:
            if len({number for number, *_ in arena.records()}) == count:
                break
            time.sleep(0.2)
        time.sleep(_REPEATS_SECONDS)
        return _counted(arena.records(), count, last_kill_at)


def _await_some(arena: Arena, count: int) -> None:
    """Wait until so many have run; with many lost, so many may never run."""
    until = time.monotonic() + _NEXT_KILL_SECONDS
    while arena.count() < count and time.monotonic() < until:
        time.sleep(0.001)
    if not arena.count():
        raise LibraryFailed("no task was run before the first kill")


def _counted(
    ran: list[tuple[int, float, float]], count: int, last_kill_at: float
) -> Figures:
    times = Counter(number for number, *_ in ran)
    figures = {
        "tasks": float(count),
        "lost": float(count - len(times)),
        "repeated": float(sum(1 for n in times.values() if n > 1)),
    }
    if len(times) == count:
        first_end: dict[int, float] = {}
        for number, _, ended in ran:
            first_end.setdefault(number, ended)
        figures["seconds"] = max(0.0, max(first_end.values()) - last_kill_at)
    return figures
