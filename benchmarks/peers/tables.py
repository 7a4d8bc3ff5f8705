"""The figures of a run as Markdown: tables, and sentences on where a peer is better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill

from benchmarks.peers.catalogue import LIBRARIES, OURS, RAW, Library
from benchmarks.peers.measures import MEASURES, best_peer, shown
from benchmarks.peers.results import Results

__all__ = ("comparison", "conditions", "summary")

_LINE = 120
# A lead of less than this is noise, on a machine that does nothing else.
_TIE = 1.15

_TABLES = (
    (
        "**Many tasks**, per second",
        {
            "drained by one process": ("drained_per_s",),
            "by 4 threads": ("threads_drained_per_s",),
            "submitted one by one": ("submitted_per_s",),
            "in bulk": ("bulk_per_s",),
            "2 ms CPU each, two processes": ("cpu_tasks_per_s",),
        },
    ),
    (
        "**One task**: from its submission to its result",
        {
            "busy, ms, p50 · p99": ("trip_p50_ms", "trip_p99_ms"),
            "after 1 s of silence, ms, p50": ("idle_trip_p50_ms",),
            "commands of Redis": ("trip_commands",),
            "start of a worker to its first task, s": ("start_s",),
        },
    ),
    (
        "**What it costs Redis, and how evenly it is shared**",
        {
            "tasks of 5 ms: CPU, µs": ("burst_cpu_us",),
            "commands": ("burst_commands",),
            "idle worker, commands/s": ("idle_commands_per_s",),
            "bytes waiting · finished": ("waiting_bytes", "finished_bytes"),
            "uneven tasks, × ideal": ("uneven_of_ideal",),
        },
    ),
)


def summary(results: Results) -> str:
    """Return the few lines for the README: conditions, and a short table."""
    names = ("drained_per_s", "submitted_per_s", "bulk_per_s", "trip_p50_ms")
    libraries = _measured(results)
    heads = [MEASURES[name].words for name in names]
    units = [MEASURES[name].unit for name in names]
    rows = [
        [
            _title(library, results),
            *(shown(results.value(library.name, name)) for name in names),
            _lost(results, library, "default"),
        ]
        for library in libraries
    ]
    head = [f"{words}, {unit}" for words, unit in zip(heads, units, strict=True)]
    table = _table(["", *head, "lost after five SIGKILLs"], rows)
    return f"{conditions(results)}\n\n{table}"


def comparison(results: Results) -> str:
    """Return all tables, where a peer is better, and how each was set up."""
    libraries = _measured(results)
    parts = [conditions(results)]
    for title, columns in _TABLES:
        rows = [
            [_title(library, results), *_cells(results, library, columns.values())]
            for library in libraries
        ]
        parts.append(f"{title}:\n\n{_table(['', *columns], rows)}")
    parts += [_killed(results, libraries), _where_peers_win(results, libraries)]
    setups = [
        [_title(one, results), f"[{one.words}]({one.page})", one.bulk or "none"]
        for one in libraries
    ]
    parts.append(
        "**How each was set up**; the link is its documentation of these settings:\n\n"
        + _table(["", "worker", "bulk"], setups, texts=3)
    )
    if results.failures:
        parts.append(_failed(results))
    return "\n\n".join(parts)


def conditions(results: Results) -> str:
    """Return one sentence on when and where it was measured."""
    kind = "A quick trial, not a measurement," if results.is_quick else "Measured"
    return fill(
        f"{kind} on {results.date} by `make bench-peers`: {results.server} without"
        f" persistence, Python {results.python}, {results.machine}; medians of"
        f" {results.rounds} alternating rounds, no-op tasks unless said otherwise,"
        " results kept.",
        _LINE,
    )


def _measured(results: Results) -> list[Library]:
    return [library for library in LIBRARIES if library.name in results.versions]


def _cells(
    results: Results, library: Library, columns: Iterable[Sequence[str]]
) -> list[str]:
    return [
        " · ".join(shown(results.value(library.name, name)) for name in names)
        for names in columns
    ]


def _killed(results: Results, libraries: Sequence[Library]) -> str:
    rows = []
    for library in libraries:
        for name, setup in library.faults.items():
            tasks = results.value(library.name, f"{name}_tasks")
            if tasks is None:
                continue
            seconds = results.value(library.name, f"{name}_seconds")
            rows.append(
                [
                    _title(library, results),
                    f"{name} ({setup.words})",
                    f"{_lost(results, library, name)} of {tasks:,.0f}",
                    _whole(results.value(library.name, f"{name}_repeated")),
                    f"not within {setup.patience:.0f}"
                    if seconds is None
                    else f"{seconds:.0f}",
                ]
            )
    return (
        "**Killed workers**: five SIGKILLs at random moments, tasks of 5 ms, a new"
        " worker after each:\n\n"
        + _table(
            ["", "settings", "not run again", "run twice", "s until all had run"],
            rows,
            texts=2,
        )
    )


def _lost(results: Results, library: Library, setup: str) -> str:
    return _whole(results.value(library.name, f"{setup}_lost"))


def _whole(value: float | None) -> str:
    """Return a count; kills are few, and none of them is half."""
    return "–" if value is None else f"{value:,.0f}"


def _where_peers_win(results: Results, libraries: Sequence[Library]) -> str:
    """Say where another library is better, since a table can be read past."""
    lines = []
    for measure in MEASURES.values():
        ours = results.value(OURS, measure.name)
        best = best_peer(results, measure, libraries)
        if ours is None or best is None or best[0].name == OURS:
            continue
        library, value = best
        lead = value / ours if measure.is_more_better else ours / max(value, 1e-9)
        if lead >= _TIE:
            lines.append(
                f"- {measure.words}: {library.title} {measure.with_unit(value)},"
                f" here {measure.with_unit(ours)}"
            )
    safe = [
        library.title
        for library in libraries
        if library.name not in (OURS, RAW)
        and results.value(library.name, "default_lost") == 0
    ]
    if safe:
        lines.append(
            f"- killed workers: with nothing set, {' and '.join(safe)} lost nothing"
            " either"
        )
    if not lines:
        return "No other library was better in any of these by more than 15 %."
    return "**Where another library is better** by more than 15 %:\n\n" + "\n".join(
        lines
    )


def _failed(results: Results) -> str:
    lines = [
        f"- {library}, {workload}: {why.splitlines()[0] if why else 'no message'}"
        for workload, by_library in results.failures.items()
        for library, why in by_library.items()
    ]
    return "**Not measured**:\n\n" + "\n".join(lines)


def _title(library: Library, results: Results) -> str:
    if library.name == RAW:
        return library.title
    version = results.versions[library.name][library.packages[0]]
    shortened = ".".join(version.split(".")[:2])
    title = f"{library.title} {shortened}"
    return f"**{title}**" if library.name == OURS else title


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """Return a table; all columns but the first *texts* are figures."""
    lines = [heads, ["---"] * texts + ["--:"] * (len(heads) - texts), *rows]
    return "\n".join(
        f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines
    )
