"""The measures that are shown: their words, their unit, and which way is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.peers.catalogue import RAW, Library
from benchmarks.peers.results import Results

__all__ = ("MEASURES", "Measure", "best_peer", "shown")


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a library, as it is written in tables and sentences."""

    name: str
    words: str
    unit: str = ""
    is_more_better: bool = False

    def with_unit(self, value: float) -> str:
        """Return a figure as a sentence has it."""
        space = "" if self.unit.startswith("/") else " "
        return f"{shown(value)}{space}{self.unit}".rstrip()


MEASURES = {
    one.name: one
    for one in (
        Measure("drained_per_s", "tasks drained by one process", "/s", True),
        Measure("threads_drained_per_s", "drained by 4 threads", "/s", True),
        Measure("cpu_tasks_per_s", "tasks of 2 ms CPU, two processes", "/s", True),
        Measure("submitted_per_s", "tasks submitted one by one", "/s", True),
        Measure("bulk_per_s", "tasks submitted in bulk", "/s", True),
        Measure("trip_p50_ms", "round trip of one task, p50", "ms"),
        Measure("trip_p99_ms", "round trip of one task, p99", "ms"),
        Measure("idle_trip_p50_ms", "round trip after 1 s of silence, p50", "ms"),
        Measure("trip_commands", "commands of Redis per round trip"),
        Measure("start_s", "start of a worker to its first task", "s"),
        Measure("burst_cpu_us", "CPU of Redis per task of 5 ms", "µs"),
        Measure("burst_commands", "commands of Redis per task of 5 ms"),
        Measure("idle_commands_per_s", "commands of an idle worker", "/s"),
        Measure("waiting_bytes", "memory of a waiting task", "B"),
        Measure("finished_bytes", "memory of a finished task", "B"),
        Measure("uneven_of_ideal", "uneven tasks in four slots", "× ideal"),
    )
}


def shown(value: float | None) -> str:
    """Return a figure with as many digits as it deserves."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def best_peer(
    results: Results, measure: Measure, libraries: Sequence[Library]
) -> tuple[Library, float] | None:
    """Return the best of the libraries, the raw loop apart; None if there is none."""
    measured = [
        (library, value)
        for library in libraries
        if library.name != RAW
        and (value := results.value(library.name, measure.name)) is not None
    ]
    if not measured:
        return None
    best = max if measure.is_more_better else min
    return best(measured, key=lambda pair: pair[1])
