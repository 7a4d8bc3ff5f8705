"""`python -m benchmarks.peers`: measure the libraries, write figures, tables and plots.

A complete run replaces the figures in README.md and docs/comparison.md; a shorter one
leaves them alone, and puts its own into build/peers.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.arena import Arena, LibraryFailed, server_for_peers
from benchmarks.peers.catalogue import LIBRARIES, OURS, Library, names_of
from benchmarks.peers.environments import NotInstalled, install
from benchmarks.peers.kills import killed
from benchmarks.peers.pages import write_pages, write_report
from benchmarks.peers.results import Results, begin, load, save
from benchmarks.peers.workloads import KILLS, WORKLOADS, Workload

__all__ = ()

_ROOT = Path(__file__).parents[2]
_STORED = _ROOT / "benchmarks" / "peers" / "results.json"
_SHORT_RUNS = _ROOT / "build" / "peers"
_ROUNDS = 3
_QUICK = 0.04
_WORKLOAD_NAMES = (*(workload.name for workload in WORKLOADS), KILLS)


def main() -> int:
    """Measure what is asked for."""
    arguments = _arguments()
    began_at = time.monotonic()
    if arguments.pages:
        if not _STORED.exists():
            _say(f"there are no figures in {_STORED}: run make bench-peers first")
            return 1
        write_pages(load(_STORED), _ROOT)
        return 0
    wanted = [one for one in LIBRARIES if one.name in arguments.only]
    scale = _QUICK if arguments.quick else 1.0
    server = server_for_peers()
    with Arena(_ROOT, server) as arena:
        results = begin(arena.server_version, arguments.rounds, arguments.quick)
        _say(f"{results.server}, Python {results.python}, {results.machine}")
        libraries = _installed(wanted, arena, results)
        for workload in WORKLOADS:
            if workload.name in arguments.workloads:
                _measure(workload, libraries, arena, results, scale)
                # Whoever interrupts it keeps what was measured so far.
                save(results, _SHORT_RUNS / "results.json")
    if KILLS in arguments.workloads:
        _kill(libraries, server, results, scale)
    is_complete = (
        arguments.only == names_of(LIBRARIES)
        and arguments.workloads == _WORKLOAD_NAMES
        and arguments.rounds >= _ROUNDS
        and not arguments.quick
    )
    if is_complete:
        save(results, _STORED)
        write_pages(results, _ROOT)
        _say(f"{_STORED}, README.md and docs/comparison.md are up to date")
    else:
        save(results, _SHORT_RUNS / "results.json")
        write_report(results, _SHORT_RUNS)
        _say(f"not a complete run: tables and plots are in {_SHORT_RUNS}")
    _say(f"{(time.monotonic() - began_at) / 60:.0f} minutes")
    # A peer that fails is named in the tables; it does not fail the benchmark.
    return 1 if any(OURS in failed for failed in results.failures.values()) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument(
        "--only", metavar="LIBRARY,…", help=", ".join(names_of(LIBRARIES))
    )
    parser.add_argument(
        "--workloads", metavar="WORKLOAD,…", help=", ".join(_WORKLOAD_NAMES)
    )
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument(
        "--quick", action="store_true", help="few tasks: to try it, not to measure"
    )
    parser.add_argument(
        "--pages", action="store_true", help="only write the pages, from stored figures"
    )
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        arguments.only = _chosen("library", arguments.only, names_of(LIBRARIES))
        arguments.workloads = _chosen("workload", arguments.workloads, _WORKLOAD_NAMES)
    except ValueError as error:
        parser.error(str(error))
    return arguments


def _chosen(what: str, given: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return known
    names = {name.strip() for name in given.split(",") if name.strip()}
    unknown = sorted(names - set(known))
    if unknown or not names:
        raise ValueError(
            f"no {what} is called {', '.join(unknown) or repr(given)};"
            f" there are {', '.join(known)}"
        )
    return tuple(name for name in known if name in names)


def _installed(
    wanted: Sequence[Library], arena: Arena, results: Results
) -> list[Library]:
    libraries = []
    for library in wanted:
        try:
            install(_ROOT, library)
            versions = arena.call(library, {}, "versions", *library.packages)
        except (NotInstalled, LibraryFailed) as error:
            _say(f"skipped: {error}")
            results.fail("install", library.name, str(error))
            continue
        results.versions[library.name] = versions
        libraries.append(library)
    return libraries


def _measure(
    workload: Workload,
    libraries: Sequence[Library],
    arena: Arena,
    results: Results,
    scale: float,
) -> None:
    """Let the libraries take turns, so that a slow minute of the machine hits all."""
    for turn in range(min(results.rounds, workload.most_rounds or results.rounds)):
        for library in libraries:
            try:
                figures = workload.measure(arena, library, scale)
            except Exception as error:  # noqa: BLE001 - the others are measured still
                results.fail(workload.name, library.name, str(error))
                _say(f"{workload.name} of {library.name} failed: {error}")
                arena.kill_all()
                continue
            if figures is not None:
                results.add(workload.name, library.name, figures)
                shown = ", ".join(f"{n} {v:.4g}" for n, v in figures.items())
                _say(f"{workload.name} {turn + 1} {library.name}: {shown}")


def _kill(
    libraries: Sequence[Library], server: Path, results: Results, scale: float
) -> None:
    found = killed(libraries, lambda: Arena(_ROOT, server), scale)
    for library, figures in found.items():
        if isinstance(figures, Exception):
            results.fail(KILLS, library, str(figures))
            _say(f"{KILLS} of {library} failed: {figures}")
        else:
            results.add(KILLS, library, figures)
            shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
            _say(f"{KILLS} {library}: {shown}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
