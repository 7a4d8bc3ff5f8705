"""Plots a plan: the backlog over time, computed and simulated."""

from __future__ import annotations

import math
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from workstealing.errors import ConfigurationError, MissingExtra
from workstealing.inspecting.formatting import duration, significant
from workstealing.recruiting.plan import Forecast, Plan
from workstealing.recruiting.plan_formulas import visits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ("plot_plan",)

_SEED = 2019
_MOST_SLICES = 500_000
_MOST_POINTS = 2000
_SIMULATED, _COMPUTED = "#2a6f97", "#d1495b"


def plot_plan(
    made: Plan, file: Path, *, garbage: float, batch: int, burst: int
) -> None:
    """Write a PNG with the backlog after a burst and in rest, by day and by night.

    Raises:
        MissingExtra: matplotlib is not installed.
        ConfigurationError: the burst is too large to be simulated.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot") from error
    figure = Figure(figsize=(11, 7.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 2)
    for column, load, when in ((0, made.day, "By day"), (1, made.night, "By night")):
        plot = _ForecastPlot(load, made.rate, garbage, batch)
        calls, slices = significant(load.calls), significant(load.slices)
        title = f"{when}: {calls} calls/s, {slices} slices/s"
        panels[0, column].set_title(title, loc="left", fontsize=11)
        plot.burst(panels[0, column], burst)
        plot.rest(panels[1, column])
    panels[0, 0].set_ylabel(f"items after a burst of {burst:,}")
    panels[1, 0].set_ylabel("items at rest")
    figure.suptitle(f"Backlog over time, rate={made.rate:g}", fontsize=13)
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    figure.savefig(file, format="png")


class _ForecastPlot:
    """The two panels of one load."""

    def __init__(self, load: Forecast, rate: float, garbage: float, batch: int) -> None:
        self._load = load
        self._rate = rate
        self._garbage = garbage
        self._batch = batch

    def burst(self, axes: Axes, burst: int) -> None:
        """Plot how a burst is worked off."""
        load, steady = self._load, self._load.backlog.items
        end = max(1.4 * load.drain.mean + 3 * load.drain.deviation, 50 / load.slices)
        spare = load.slices * self._batch - self._garbage
        wandering = self._garbage + load.slices * self._batch**2
        times = [end * step / 400 for step in range(401)]
        lines = [(burst - spare * t, 2 * math.sqrt(wandering * t)) for t in times]
        self._draw_formula(
            axes,
            times,
            [max(steady, mean - spread) for mean, spread in lines],
            [max(steady, mean) for mean, _ in lines],
            [max(steady, mean + spread) for mean, spread in lines],
        )
        self._draw_simulation(axes, end, burst)
        note = f"drained after {duration(load.drain.mean)}, on average"
        axes.annotate(note, (0.97, 0.92), xycoords="axes fraction", ha="right")

    def rest(self, axes: Axes) -> None:
        """Plot the steady backlog."""
        backlog = self._load.backlog
        end = 100 / self._load.slices
        highest = math.log(0.05) / math.log(backlog.root) if backlog.root else 0.0
        mean = backlog.items
        self._draw_formula(axes, [0, end], [0, 0], [mean, mean], [highest, highest])
        self._draw_simulation(axes, end, round(mean))
        note = (
            f"mean {significant(mean)}, 95 % of the time below {significant(highest)}"
        )
        axes.annotate(note, (0.97, 0.92), xycoords="axes fraction", ha="right")
        axes.set_ylim(top=axes.get_ylim()[1] * 1.15)

    def _draw_formula(
        self,
        axes: Axes,
        times: list[float],
        low: list[float],
        mean: list[float],
        high: list[float],
    ) -> None:
        axes.fill_between(
            times,
            low,
            high,
            color=_COMPUTED,
            alpha=0.15,
            linewidth=0,
            label="formula, where 95 % is expected",
        )
        axes.plot(times, mean, color=_COMPUTED, linewidth=2, label="formula, mean")

    def _draw_simulation(self, axes: Axes, end: float, burst: int) -> None:
        load = self._load
        if load.slices * end > _MOST_SLICES:
            raise ConfigurationError(
                f"burst is too large to simulate: it takes {load.slices * end:.2g}"
                f" slices, and at most {_MOST_SLICES:,} are simulated"
            )
        # A fixed seed: the same plan gives the same picture.
        simulated = visits(
            Random(_SEED),  # noqa: S311
            calls=load.calls,
            rate=self._rate,
            garbage=self._garbage,
            batch=self._batch,
            burst=burst,
        )
        points = [(0.0, burst)]
        for visit in takewhile(lambda visit: visit.time < end, simulated):
            points += [(visit.time, visit.found), (visit.time, visit.left)]
        # An odd step keeps both sides of the sawtooth.
        step = len(points) // _MOST_POINTS * 2 + 1
        axes.plot(
            [time for time, _ in points[::step]],
            [items for _, items in points[::step]],
            color=_SIMULATED,
            linewidth=1,
            label="simulation",
        )
        _style_axes(axes, end)


def _style_axes(axes: Axes, end: float) -> None:
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    unit, length = next(
        (unit, length)
        for unit, length in (("hours", 3600), ("minutes", 60), ("seconds", 1))
        if end > 3 * length or length == 1
    )
    axes.set_xlim(0, end)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(unit)
    axes.xaxis.set_major_locator(MultipleLocator(length * _round_step(end / length)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / length:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)


def _round_step(width: float) -> float:
    """Return a step of 1, 2 or 5 with zeros that fits four to ten times."""
    size = 10.0 ** math.floor(math.log10(width))
    return next(size * step for step in (0.1, 0.2, 0.5, 1) if width <= 10 * size * step)
