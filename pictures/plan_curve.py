"""What `workstealing plan` computes: a burst is worked off, by day and by night."""

from __future__ import annotations

from itertools import takewhile
from random import Random

from pictures.canvas import Canvas, Theme
from workstealing.inspecting.formatting import duration
from workstealing.recruiting.plan import Forecast, plan
from workstealing.recruiting.plan_formulas import visits

__all__ = ("draw",)

# The shop of docs/choosing-a-rate.md.
_CALLS = (1000.0, 50.0)
_PROCESSES, _GARBAGE, _BATCH, _STALE = 50, 2.0, 20, 600.0
_BURST = 10_000
_SEED = 2019
_POINTS = 240
_LEFT, _WIDTH, _HEIGHT = 64, 470, 120


def draw(theme: Theme) -> str:
    """Two panels: computed as a line, simulated as steps."""
    day, night = _CALLS
    made = plan(
        calls_day=day,
        calls_night=night,
        processes=_PROCESSES,
        garbage=_GARBAGE,
        batch=_BATCH,
        stale=_STALE,
    )
    canvas = Canvas(
        theme,
        560,
        410,
        f"A backlog of 10,000 items at rate={made.rate:g}: by day it is worked off in"
        f" {duration(made.day.drain.mean)}, by night in"
        f" {duration(made.night.drain.mean)}; a simulation follows the formula.",
    )
    canvas.text(
        14,
        20,
        f"a burst of {_BURST:,} items, rate={made.rate:g}",
        anchor="start",
        bold=True,
    )
    panels = (("by day", made.day, 50), ("by night", made.night, 226))
    for words, load, top in panels:
        _panel(canvas, words, load, made.rate, top)
    canvas.line((64, 392), (94, 392), theme.accent)
    canvas.text(102, 392, "formula", anchor="start", size=14, colour=theme.accent)
    canvas.line((190, 392), (220, 392), theme.good)
    canvas.text(228, 392, "simulation", anchor="start", size=14, colour=theme.good)
    return str(canvas)


def _panel(canvas: Canvas, words: str, load: Forecast, rate: float, top: int) -> None:
    theme = canvas.theme
    end = 1.25 * load.drain.mean
    bottom = top + _HEIGHT
    canvas.line((_LEFT, bottom), (_LEFT + _WIDTH, bottom))
    canvas.line((_LEFT, top), (_LEFT, bottom))
    for items in (0, 5_000, 10_000):
        y = bottom - _HEIGHT * items / _BURST
        canvas.text(_LEFT - 8, y, f"{items:,}", anchor="end", size=13)
    for share in (0, 0.4, 0.8):
        x = _LEFT + _WIDTH * share
        label = duration(end * share) if share else "0"
        canvas.text(x, bottom + 16, label, size=13, colour=theme.quiet)

    def at(time: float, items: float) -> tuple[float, float]:
        x = _LEFT + _WIDTH * time / end
        return x, bottom - _HEIGHT * min(1.0, items / _BURST)

    spare = load.slices * _BATCH - _GARBAGE
    steady = load.backlog.items
    drained = (_BURST - steady) / spare
    simulated = visits(
        Random(_SEED),  # noqa: S311 - the same picture each time
        calls=load.calls,
        rate=rate,
        garbage=_GARBAGE,
        batch=_BATCH,
        burst=_BURST,
    )
    points = [(0.0, float(_BURST))]
    points += (
        (one.time, one.left) for one in takewhile(lambda v: v.time < end, simulated)
    )
    step = max(1, len(points) // _POINTS)
    canvas.curve([at(*point) for point in points[::step]], theme.good, width=1.4)
    computed = [(0.0, _BURST), (drained, steady), (end, steady)]
    canvas.curve([at(*point) for point in computed], theme.accent, width=2.2)
    canvas.text(
        _LEFT + _WIDTH,
        top + 14,
        f"{words}: drained after {duration(load.drain.mean)}, on average",
        anchor="end",
        size=15,
    )
