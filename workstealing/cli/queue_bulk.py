"""`workstealing queue count | purge`, and how other commands choose tasks in bulk.

Tasks are chosen by `--task`, `--state` and `--older-than`. They are counted first, and
the user is asked before more than one is changed. A terminal shows a progress bar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich.progress import Progress

from workstealing.cli.consoles import can_be_redrawn, open_console
from workstealing.cli.options import (
    BadInput,
    chosen_queue,
    clear_errors,
    confirm,
    no_more_words,
    queue_options,
    with_options,
)
from workstealing.cli.unknown_queue import warn_of_unknown
from workstealing.client.bulk import DEAD_LETTERS, ENDED, BulkResult
from workstealing.client.bulk import OnProgress as Tell
from workstealing.client.task_queue import TaskQueue
from workstealing.inspecting.formatting import plural
from workstealing.tasks.outcome import UNFINISHED, State

__all__ = (
    "bulk_options",
    "change_in_bulk",
    "count_command",
    "purge_command",
    "taken_selection",
)

F = TypeVar("F", bound=Callable[..., Any])

_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def _selection_options(states: frozenset[State]) -> Callable[[F], F]:
    """Let a command take `--task`, `--state` and `--older-than`."""
    names = sorted(state.value for state in states)
    return with_options(
        click.option(
            "--task", metavar="NAME", help="Of this task: NAME or NAME@VERSION."
        ),
        click.option(
            "--state",
            "states",
            type=click.Choice(names),
            multiple=True,
            help="In this state; may be repeated.",
        ),
        click.option(
            "--older-than",
            metavar="AGE",
            help="Submitted so long ago: 90, 10m, 6h or 7d. Of a dead letter, given up;"
            " of an outcome, ended.",
        ),
    )


def bulk_options(states: frozenset[State], every: str) -> Callable[[F], F]:
    """Let a command that changes tasks choose them, or take *every* one, and ask."""
    return with_options(
        _selection_options(states),
        click.option("--all", "every", is_flag=True, help=every),
        click.option("--yes", is_flag=True, help="Do not ask."),
    )


def taken_selection(options: dict[str, Any]) -> dict[str, Any]:
    """Take these options out of those of a command; what was not given is left out."""
    task, states = options.pop("task"), options.pop("states")
    age = options.pop("older_than")
    selection = {"task": task, "state": states, "older_than": age and _seconds(age)}
    return {name: value for name, value in selection.items() if value not in (None, ())}


@click.command("count")
@queue_options()
@_selection_options(UNFINISHED | DEAD_LETTERS | ENDED)
@clear_errors()
def count_command(**options: Any) -> None:
    """Count tasks by name, state and age."""
    selection = taken_selection(options)
    queue, words = chosen_queue(**options)
    no_more_words(words)
    with _progress("counting") as tell:
        number = queue.count(**selection, on_progress=tell)
    click.echo(number)
    if not number:
        warn_of_unknown(queue)


@click.command("purge")
@queue_options()
@bulk_options(ENDED, "All outcomes.")
@clear_errors()
def purge_command(every: bool, yes: bool, **options: Any) -> None:
    """Forget the outcomes of tasks that are done or cancelled.

    Their ids are free again. Tasks that wait are for `queue cancel`, dead letters for
    `queue drop`.
    """
    selection = taken_selection(options)
    queue, words = chosen_queue(**options)
    no_more_words(words)
    if bool(selection) == every:
        raise BadInput("say which: --task, --state, --older-than, or --all")
    done = change_in_bulk(
        queue, queue.purge, selection, ENDED, yes=yes, verb="purge", noun="outcome"
    )
    click.echo(f"{done.changed:,} purged")


def change_in_bulk(
    queue: TaskQueue,
    change: Callable[..., BulkResult],
    selection: dict[str, Any],
    among: frozenset[State],
    *,
    yes: bool,
    verb: str,
    noun: str,
    most_unasked: int = 1,
) -> BulkResult:
    """Count what is chosen, ask if it is more than *most_unasked*, and change it."""
    if not yes:
        states = selection.get("state") or tuple(among)
        with _progress("counting") as tell:
            number = queue.count(**{**selection, "state": states}, on_progress=tell)
        if number > most_unasked:
            confirm(f"{verb} {plural(number, noun)}", yes=False)
    with _progress(verb) as tell:
        result = change(**selection, on_progress=tell)
    if not result.matched:
        warn_of_unknown(queue)
    return result


@contextmanager
def _progress(what: str) -> Iterator[Tell | None]:
    """Show a bar on a terminal while the block runs."""
    console = open_console(err=True)
    if not can_be_redrawn(console):
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda seen, total: bar.update(task, completed=seen, total=total)


def _seconds(age: str) -> float:
    match = _AGE.fullmatch(age)
    if match is None:
        raise BadInput(f"--older-than is seconds, or like 10m, 6h, 7d; not {age!r}")
    return float(match[1]) * _SECONDS[match[2]]
