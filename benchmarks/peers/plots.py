"""Which figures are drawn, and how a page shows them in light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.bar_chart import DARK, LIGHT, Bar, bar_chart
from benchmarks.peers.catalogue import LIBRARIES, OURS, RAW, Library
from benchmarks.peers.measures import shown
from benchmarks.peers.results import Results

__all__ = ("PLOTS", "Plot", "picture", "write_plots")


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture: its file, its words, and one measure or two."""

    name: str
    title: str
    legend: str
    measures: tuple[str, ...]
    is_more_better: bool = False


PLOTS = (
    Plot(
        "peers-drain",
        "No-op tasks per second, one worker process",
        "More is better.",
        ("drained_per_s",),
        is_more_better=True,
    ),
    Plot(
        "peers-round-trip",
        "One task, from its submission to its result, ms",
        "Median, less is better. Filled: busy. Hollow: after a second of silence.",
        ("trip_p50_ms", "idle_trip_p50_ms"),
    ),
    Plot(
        "peers-redis",
        "CPU time of Redis per task of 5 ms, µs",
        "Tasks arrive four at a time. Less is better.",
        ("burst_cpu_us",),
    ),
    Plot(
        "peers-memory",
        "Memory of Redis per task, bytes",
        "Less is better. Filled: a waiting task. Hollow: a finished one.",
        ("waiting_bytes", "finished_bytes"),
    ),
    Plot(
        "peers-kills",
        "Tasks that were not run again after five SIGKILLs",
        "Default settings, of 2,000 tasks (RQ: of 400). Less is better.",
        ("default_lost",),
    ),
)


def write_plots(results: Results, folder: Path) -> list[Plot]:
    """Draw what was measured, in light and dark; return what was drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for plot in PLOTS:
        bars = _bars(results, plot)
        if not bars:
            continue
        for theme in (LIGHT, DARK):
            chart = bar_chart(plot.title, plot.legend, bars, theme)
            path = folder / f"{plot.name}-{theme.name}.svg"
            path.write_text(chart, encoding="utf-8")
        drawn.append(plot)
    return drawn


def picture(plot: Plot, folder: str) -> str:
    """Return the HTML that shows a plot in the colours that a reader prefers."""
    return (
        "<picture>"
        '<source media="(prefers-color-scheme: dark)"'
        f' srcset="{folder}/{plot.name}-dark.svg">'
        f'<img alt="{plot.title}" src="{folder}/{plot.name}-light.svg">'
        "</picture>"
    )


def _bars(results: Results, plot: Plot) -> list[Bar]:
    """Return a row per library, best first."""
    bars = []
    for library in LIBRARIES:
        values = [results.value(library.name, name) for name in plot.measures]
        found = tuple(value for value in values if value is not None)
        if len(found) == len(plot.measures):
            is_whole = plot.name == "peers-kills"
            words = tuple(f"{n:,.0f}" if is_whole else shown(n) for n in found)
            bars.append(Bar(_label(library), found, words, library.name == OURS))
    return sorted(bars, key=lambda bar: bar.values[0], reverse=plot.is_more_better)


def _label(library: Library) -> str:
    return "raw Redis loop" if library.name == RAW else library.title
