"""What is measured of each library, one function per workload.

A workload returns figures by name, or None if it does not apply to a library. Sizes are
those of a full run times *scale*.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.arena import Arena, Snapshot, StartedWorker
from benchmarks.peers.catalogue import Library
from benchmarks.peers.task_bodies import uneven_seconds

__all__ = ("KILLS", "WORKLOADS", "Figures", "Workload")

Figures = dict[str, float]

# Measured by kills.py, since it is mostly waiting and many can wait at once.
KILLS = "kills"

_PATIENCE = 180.0
_SETTLING_SECONDS = 2.0
_SUBMITTED = 2_000
_TRIPS = 300
_IDLE_TRIPS = 5
_BURSTS, _BURST_SIZE, _BURST_EVERY = 100, 4, 0.04
_IDLE_SECONDS = 5.0
_UNEVEN_TASKS = 1_000
_SLOTS = 4
_BURN_TASKS = 2_000
_BURN_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload; *most_rounds* bounds those that give the same figure every time."""

    name: str
    measure: Callable[[Arena, Library, float], Figures | None]
    most_rounds: int | None = None


def _submit(arena: Arena, library: Library, scale: float) -> Figures:
    """Submit one by one, nobody works."""
    count = _scaled(_SUBMITTED, scale)
    arena.empty()
    before = arena.snapshot()
    found = arena.call(library, library.settings, "submit", "noop", count)
    after = arena.snapshot()
    return {
        "submitted_per_s": found["timed"] / found["seconds"],
        "submit_commands": (after.commands - before.commands) / count,
    }


def _drain(arena: Arena, library: Library, scale: float) -> Figures:
    """Fill the queue, then start a worker: also bulk, memory and start."""
    count = _scaled(library.tasks, scale)
    arena.empty()
    empty_bytes = arena.memory()
    filled = _fill(arena, library, "noop", count)
    waiting_bytes, before = arena.memory(), arena.snapshot()
    worker = arena.start(library, library.settings)
    arena.await_tasks(count, _PATIENCE)
    # Its last results are still on their way.
    time.sleep(0.5)
    after = arena.snapshot()
    arena.kill(worker)
    finished_bytes = arena.memory()
    figures = {
        "drained_per_s": _rate(arena),
        "start_s": min(began for _, began, _ in arena.records()) - worker.started_at,
        "drain_commands": (after.commands - before.commands) / count,
        "drain_round_trips": (after.reads - before.reads) / count,
        "waiting_bytes": (waiting_bytes - empty_bytes) / count,
        "finished_bytes": (finished_bytes - empty_bytes) / count,
    }
    if library.bulk is not None:
        figures["bulk_per_s"] = filled["timed"] / filled["seconds"]
    return figures


def _threads(arena: Arena, library: Library, scale: float) -> Figures | None:
    """Drain with four threads in one process."""
    if library.threads is None:
        return None
    count = _scaled(library.tasks, scale)
    arena.empty()
    _fill(arena, library, "noop", count)
    worker = arena.start(library, library.threads)
    arena.await_tasks(count, _PATIENCE)
    arena.kill(worker)
    return {"threads_drained_per_s": _rate(arena)}


def _round_trip(arena: Arena, library: Library, scale: float) -> Figures:
    """Submit one task and wait for its result: busy, and after a second of silence."""
    settings = {**library.settings, **library.waiting}
    arena.empty()
    worker = arena.start(library, settings)
    time.sleep(_SETTLING_SECONDS)
    # The first call ends only when a worker is there: it is not counted.
    arena.call(library, settings, "round_trips", 1, 0)
    before = arena.snapshot()
    busy = arena.call(library, settings, "round_trips", _scaled(_TRIPS, scale), 0)
    after = arena.snapshot()
    idle = arena.call(library, settings, "round_trips", _scaled(_IDLE_TRIPS, scale), 1)
    arena.kill(worker)
    seconds = sorted(busy["seconds"])
    trips = len(seconds) + busy["warm_ups"]
    return {
        "trip_p50_ms": statistics.median(seconds) * 1000,
        "trip_p99_ms": seconds[int(len(seconds) * 0.99)] * 1000,
        "trip_commands": (after.commands - before.commands) / trips,
        "idle_trip_p50_ms": statistics.median(idle["seconds"]) * 1000,
    }


def _bursts(arena: Arena, library: Library, scale: float) -> Figures:
    """Feed tasks of 5 ms, four at a time: what the server does for each."""
    bursts = _scaled(_BURSTS, scale)
    arena.empty()
    worker = arena.start(library, library.settings)
    time.sleep(_SETTLING_SECONDS)
    before = arena.snapshot()
    arena.call(library, library.settings, "bursts", bursts, _BURST_SIZE, _BURST_EVERY)
    arena.await_tasks(bursts * _BURST_SIZE, _PATIENCE)
    after = arena.snapshot()
    arena.kill(worker)
    return _per_task(before, after, bursts * _BURST_SIZE)


def _idle(arena: Arena, library: Library, scale: float) -> Figures:
    """Count the commands of a worker that has nothing to do."""
    arena.empty()
    arena.call(library, library.settings, "submit", "noop", 1)
    worker = arena.start(library, library.settings)
    arena.await_tasks(1, _PATIENCE)
    time.sleep(_SETTLING_SECONDS)
    before, began_at = arena.snapshot(), time.monotonic()
    time.sleep(max(1.0, _IDLE_SECONDS * scale))
    after, seconds = arena.snapshot(), time.monotonic() - began_at
    arena.kill(worker)
    return {"idle_commands_per_s": (after.commands - before.commands) / seconds}


def _uneven(arena: Arena, library: Library, scale: float) -> Figures:
    """Run short and long tasks in four slots, against the best that is possible."""
    count = _scaled(_UNEVEN_TASKS, scale)
    settings = library.settings if library.slots is None else library.slots
    processes = _SLOTS if library.slots is None else _SLOTS // 2
    arena.empty()
    workers = [arena.start(library, settings) for _ in range(processes)]
    # All slots are there before the first task: a late process would look like a queue
    # that is badly shared.
    time.sleep(_SETTLING_SECONDS)
    _fill(arena, library, "uneven", count)
    arena.await_tasks(count, _PATIENCE)
    _kill_each(arena, workers)
    ran = arena.records()
    seconds = max(ended for *_, ended in ran) - min(began for _, began, _ in ran)
    ideal = sum(map(uneven_seconds, range(count))) / _SLOTS
    return {"uneven_of_ideal": seconds / ideal}


def _cpu(arena: Arena, library: Library, scale: float) -> Figures:
    """Run tasks that compute for 2 ms in two processes."""
    count = _scaled(_BURN_TASKS, scale)
    arena.empty()
    _fill(arena, library, "burn", count)
    workers = [arena.start(library, library.settings) for _ in range(_BURN_PROCESSES)]
    arena.await_tasks(count, _PATIENCE)
    _kill_each(arena, workers)
    # The middle half: one process begins before the other.
    ended = sorted(ended_at for *_, ended_at in arena.records())
    first, last = count // 4, count * 3 // 4
    return {"cpu_tasks_per_s": (last - first) / (ended[last] - ended[first])}


def _rate(arena: Arena) -> float:
    """Return tasks per second, from the start of the first to that of the last."""
    began = [began_at for _, began_at, _ in arena.records()]
    return (len(began) - 1) / (max(began) - min(began))


def _kill_each(arena: Arena, workers: list[StartedWorker]) -> None:
    for worker in workers:
        arena.kill(worker)


def _fill(arena: Arena, library: Library, task: str, count: int) -> dict[str, Any]:
    how = ("--bulk",) if library.bulk is not None else ()
    return arena.call(library, library.settings, "submit", task, count, *how)


def _per_task(before: Snapshot, after: Snapshot, count: int) -> Figures:
    cpu = after.cpu_seconds - before.cpu_seconds
    return {
        "burst_cpu_us": cpu / count * 1e6,
        "burst_commands": (after.commands - before.commands) / count,
    }


def _scaled(size: int, scale: float) -> int:
    return max(2, round(size * scale))


WORKLOADS = (
    Workload("submit", _submit),
    Workload("drain", _drain),
    Workload("threads", _threads),
    Workload("round_trip", _round_trip),
    Workload("bursts", _bursts),
    Workload("idle", _idle, most_rounds=1),
    Workload("uneven", _uneven),
    Workload("cpu", _cpu),
)
