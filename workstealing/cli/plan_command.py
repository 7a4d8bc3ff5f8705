"""`workstealing plan`: computes the rate of a job, and its cost for the host."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from workstealing.cli.consoles import open_console
from workstealing.cli.observed_plan_page import print_observed_plan
from workstealing.cli.options import BadInput, clear_errors, redis_option
from workstealing.cli.plan_plot import plot_plan
from workstealing.cli.tables import TextTable, print_page
from workstealing.errors import ConfigurationError, MissingExtra
from workstealing.inspecting.formatting import (
    duration,
    percent,
    percentile,
    significant,
)
from workstealing.recruiting.plan import Forecast, Plan, plan
from workstealing.recruiting.plan_formulas import DAY

__all__ = ("plan_command",)

# What a Recruiter allows by default.
_SHARE = 0.01
_DEADLINE = 0.05
_WITH_OBSERVED = ("observed", "url", "stale", "as_json")


@click.command("plan")
@click.option(
    "--calls-day",
    type=float,
    help="Enlist calls per second of all processes together, during the day.",
)
@click.option(
    "--calls-night",
    type=float,
    help="The same, in the quietest hours.",
)
@click.option(
    "--processes",
    type=int,
    help="Number of processes that make these calls.",
)
@click.option("--garbage", type=float, help="New items of garbage per second.")
@click.option("--batch", type=int, help="Items that one slice can take.")
@click.option(
    "--stale",
    type=float,
    help="Longest acceptable gap between slices, in seconds.",
)
@click.option(
    "--failure",
    type=float,
    default=0.01,
    show_default=True,
    help="Acceptable probability of a longer gap within the horizon.",
)
@click.option(
    "--horizon",
    type=float,
    default=DAY,
    show_default=True,
    help="Period of that probability, in seconds.",
)
@click.option(
    "--slice-seconds",
    type=float,
    default=0.005,
    show_default=True,
    help="Duration of a slice.",
)
@click.option(
    "--burst",
    type=int,
    default=10_000,
    show_default=True,
    help="Size of a burst, to compute how long it takes to drain.",
)
@click.option(
    "--calls-per-request",
    type=float,
    default=1.0,
    show_default=True,
    help="Enlist calls that one request of the host makes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.png",
    help="Plot the backlog over time, computed and simulated.",
)
@click.option(
    "--observed",
    is_flag=True,
    help="Use what recruiters have published in the last hour; of the other numbers,"
    " only --stale may be given.",
)
@redis_option("With --observed: where they publish.")
@click.pass_context
def plan_command(
    context: click.Context,
    /,
    as_json: bool,
    plot: Path | None,
    observed: bool,
    url: str | None,
    **numbers: Any,
) -> None:
    """Compute the rate that a job needs.

    It is the smallest rate that keeps gaps short and the backlog bounded in the
    quietest hours. The same work with every= instead of rate= is shown next to it.
    The first six numbers are required.

    With --observed it shows for each job of a fleet its present pace, what was measured
    of it, the pace that would be planned, and why.
    """
    if observed:
        _check_only_observed(context)
        with clear_errors():
            print_observed_plan(url, numbers["stale"], as_json=as_json)
        return
    if url is not None:
        raise BadInput("--redis needs --observed")
    for parameter in context.command.params:
        if parameter.name in numbers and numbers[parameter.name] is None:
            raise click.MissingParameter(ctx=context, param=parameter)
    try:
        made = plan(**numbers)
    except ConfigurationError as error:
        raise BadInput(_as_typed(str(error), numbers)) from error
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(made), indent=2))
    else:
        _print(made, numbers)
    if plot is not None:
        try:
            garbage, batch, burst = (numbers[n] for n in ("garbage", "batch", "burst"))
            plot_plan(made, plot, garbage=garbage, batch=batch, burst=burst)
        except (MissingExtra, OSError) as error:
            raise click.ClickException(str(error)) from error
        except ConfigurationError as error:
            raise BadInput(_as_typed(str(error), numbers)) from error


def _check_only_observed(context: click.Context) -> None:
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not ParameterSource.DEFAULT
        if is_given and parameter.name not in _WITH_OBSERVED:
            raise BadInput(
                f"{parameter.opts[0]} is not for --observed, which uses measured"
                " numbers"
            )


def _as_typed(message: str, numbers: dict[str, Any]) -> str:
    """Write the arguments of `plan` in a message as the options of this command."""
    # Not everywhere: "garbage" and "batch" are also plain words.
    named = rf"(^|Raise |longer than )({'|'.join(numbers)})\b"
    return re.sub(
        named, lambda found: found[1] + "--" + found[2].replace("_", "-"), message
    )


def _print(made: Plan, numbers: dict[str, Any]) -> None:
    rate, every = f"rate={made.rate:g}", f"every={made.every or 0:g}"
    columns = [
        (f"{rate}\nby day", made.day),
        (f"{rate}\nby night", made.night),
        (f"{every}\nby day", made.every_day),
        (f"{every}\nby night", made.every_night),
    ]
    known = [(title, load) for title, load in columns if load is not None]
    titles = [title for title, _ in known]
    table = TextTable(("", *titles), right=titles)
    for label, cell in _rows(numbers):
        table.add(label, *(cell(load) for _, load in known))
    advice = _advice(made, numbers["slice_seconds"])
    print_page([table, "", *advice, "", *_code(made)], open_console())


def _rows(numbers: dict[str, Any]) -> list[tuple[str, Callable[[Forecast], str]]]:
    stale, horizon = duration(numbers["stale"]), duration(numbers["horizon"])
    return [
        ("enlist calls per second", lambda load: significant(load.calls)),
        ("slices per second", lambda load: significant(load.slices)),
        ("slices that find work", lambda load: percent(load.backlog.root)),
        ("backlog, items", lambda load: significant(load.backlog.items)),
        ("mean age of garbage", lambda load: duration(load.backlog.age)),
        (f"older than {stale}", lambda load: percent(load.late)),
        (f"longest gap in {horizon}", lambda load: duration(load.longest_gap)),
        ("99 % of ticks within", lambda load: duration(load.tick_late)),
        (f"drain of {numbers['burst']:,}", lambda load: duration(load.drain.mean)),
        ("drain, give or take", lambda load: duration(load.drain.deviation)),
        ("share of each process", lambda load: percent(load.share)),
        ("latency untouched below", lambda load: percentile(load.untouched)),
        ("slices that overlap", lambda load: percent(load.overlap)),
    ]


def _advice(made: Plan, slice_seconds: float) -> list[str]:
    by_gap = made.rate_for_gap > made.rate_for_throughput
    other = made.rate_for_throughput if by_gap else made.rate_for_gap
    decisive, lesser = ("gap", "garbage") if by_gap else ("garbage", "gap")
    lines = [f"The {decisive} decides the rate; the {lesser} alone needs {other:.3g}."]
    if made.day.share > _SHARE:
        lines.append(
            f"By day the rate asks for {percent(made.day.share)} of each process;"
            f" a Recruiter's default share of {percent(_SHARE)} will cut it."
        )
    if slice_seconds > _DEADLINE:
        lines.append(
            f"A slice of {duration(slice_seconds)} is longer than the default deadline"
            f" of {duration(_DEADLINE)}: take smaller batches."
        )
    return lines


def _code(made: Plan) -> list[str]:
    lines = [f'recruiter.install(job, "name", rate={made.rate!r})']
    if made.every is not None:
        lines.append(f'recruiter.install(job, "name", every={made.every!r})  # or this')
    return lines
