"""The figures of a run: raw, as they were measured, with date, versions and machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ("Results", "begin", "load", "save")


@dataclass(slots=True)
class Results:
    """What a run found.

    Args:
        versions: by library, then by package.
        figures: by workload, then by library: one entry per round.
        failures: why a library has no figures, by workload; "install" is one of them.
    """

    date: str
    machine: str
    python: str
    server: str
    rounds: int
    is_quick: bool
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    figures: dict[str, dict[str, list[dict[str, float]]]] = field(default_factory=dict)
    failures: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, workload: str, library: str, figures: Mapping[str, float]) -> None:
        """Note the figures of one round."""
        by_library = self.figures.setdefault(workload, {})
        by_library.setdefault(library, []).append(dict(figures))

    def fail(self, workload: str, library: str, why: str) -> None:
        """Note why there are no figures."""
        self.failures.setdefault(workload, {})[library] = why

    def value(self, library: str, measure: str) -> float | None:
        """Return the median over the rounds; None if it was not measured."""
        for by_library in self.figures.values():
            rounds = by_library.get(library, [])
            found = [figures[measure] for figures in rounds if measure in figures]
            if found:
                return statistics.median(found)
        return None


def begin(server: str, rounds: int, is_quick: bool) -> Results:
    """Return what a run has found that begins now, on this machine: nothing yet."""
    return Results(
        date=time.strftime("%Y-%m-%d"),
        machine=f"{os.cpu_count()} cores, {_processor()}, {platform.system()}",
        python=platform.python_version(),
        server=server,
        rounds=rounds,
        is_quick=is_quick,
    )


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def save(results: Results, path: Path) -> None:
    """Write the figures as JSON; a reader never finds half of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(asdict(results), indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def load(path: Path) -> Results:
    """Read figures that were saved."""
    return Results(**json.loads(path.read_text(encoding="utf-8")))
