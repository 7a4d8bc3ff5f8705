"""`workstealing rehearse`: finds out whether a task may be killed and run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from workstealing._checks import did_you_mean
from workstealing._printing import on_one_line
from workstealing.cli.colours import ALARM, GOOD, HEADING, QUIET
from workstealing.cli.consoles import open_console, say, wrapped
from workstealing.cli.options import (
    BadInput,
    clear_errors,
    imported_any_queue,
    imported_object,
)
from workstealing.rehearsing.rehearsal import StoryVerdict
from workstealing.rehearsing.rehearse_task import (
    POINTS,
    STORY_SECONDS,
    RehearsalOptions,
    drawn_seed,
    rehearse_task,
)
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.registry import Registry
from workstealing.workers.queue_location import QueueLocation

__all__ = ("rehearse_command",)

_COLOURS = {"passed": GOOD, "failed": ALARM, "skipped": QUIET}
_FUNCTION = "MODULE:FUNCTION"
_INDENT = " " * 8


@click.command("rehearse")
@click.argument("where", metavar="APP:QUEUE")
@click.option("--task", "name", metavar="NAME", required=True, help="The task.")
@click.option(
    "--payload",
    default="{}",
    metavar="JSON",
    help="The task's arguments, as a JSON object.  [default: {}]",
)
@click.option(
    "--before",
    metavar=_FUNCTION,
    help="Called before each story, to restore the same start.",
)
@click.option(
    "--after",
    metavar=_FUNCTION,
    help="Called after each story; what it returns is compared.",
)
@click.option(
    "--key",
    metavar=_FUNCTION,
    help="Called with a result; returns the part to compare.  [default: all of it]",
)
@click.option("--seed", type=int, help="Repeat a rehearsal by its seed.")
@click.option(
    "--points",
    type=int,
    default=POINTS,
    show_default=True,
    metavar="N",
    help="How many steps to draw for each kind of story.",
)
@click.option(
    "--timeout",
    type=float,
    default=STORY_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long a story may take.",
)
@clear_errors()
def rehearse_command(
    where: str,
    name: str,
    payload: str,
    before: str | None,
    after: str | None,
    key: str | None,
    seed: int | None,
    points: int,
    timeout: float,
) -> None:
    """Run a task as production will: killed, repeated, cut off.

    The task is killed at its saves and at random steps, loses its lease and its report,
    and is run twice, in a row and at once. It runs in separate processes, and its queue
    is on a separate server. Everything else that it does is real: rehearse it where you
    test it.

    Its result, the tasks that it submits, and what --after returns are compared with
    those of an undisturbed run. Exits with 0 if all stories passed, else with 1.
    """
    queue = imported_any_queue(where)
    definition = _found(queue.registry, name)
    options = RehearsalOptions(
        drawn_seed() if seed is None else seed,
        _function(before, "--before"),
        _function(after, "--after"),
        _function(key, "--key"),
        points,
        timeout,
    )
    arguments = definition.signature.encode((), _arguments(payload))
    module, _, attribute = where.partition(":")
    console = open_console()
    title = f"Rehearsing {definition.name} with seed {options.seed}"
    console.print(Text(on_one_line(title), HEADING))
    rehearsal = rehearse_task(
        QueueLocation(module, attribute),
        definition,
        arguments,
        options,
        on_verdict=lambda verdict: _print(console, verdict),
    )
    for explanation in rehearsal.explanations:
        say(f"\n{explanation}")
    say(f"\n{rehearsal.summary}")
    if after is None:
        say(
            "Only its result and the tasks that it submits were compared. To compare"
            " what else it leaves behind, give --after, and --before to make every"
            " story begin alike."
        )
    if not rehearsal.passed:
        raise SystemExit(1)


def _print(console: Console, verdict: StoryVerdict) -> None:
    headline, *problems = str(verdict).split("\n")
    status, rest = headline[: len(_INDENT)], on_one_line(headline[len(_INDENT) :])
    width = console.width if console.is_terminal else len(headline)
    first, *more = wrapped(rest, width - len(_INDENT))
    text = Text.assemble((status, _COLOURS[verdict.status]), first)
    console.print(text, soft_wrap=True)
    for line in (*(_INDENT + one for one in more), *problems):
        say(line)


def _found(registry: Registry, name: str) -> TaskDefinition:
    """Return the newest version of a task, by its whole name or the end of it."""
    every = {one.name for one in registry}
    names = [one for one in every if name in (one, one.rpartition(".")[2])]
    if len(names) > 1 and name not in names:
        raise BadInput(f"several tasks are called {name}: {', '.join(sorted(names))}")
    if not names:
        near = did_you_mean(name, [*every, *(one.rpartition(".")[2] for one in every)])
        hint = f" Did you mean {near}?" if near else ""
        known = ", ".join(sorted(every)) or "none"
        raise BadInput(f"there is no task {name}.{hint} Known tasks: {known}")
    exact = name if name in names else names[0]
    return max(
        (one for one in registry if one.name == exact), key=lambda one: one.version
    )


def _arguments(payload: str) -> dict[str, Any]:
    try:
        arguments = json.loads(payload)
    except ValueError as error:
        raise BadInput(f"--payload is not valid JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise BadInput(f"--payload must be a JSON object, got {payload}")
    return arguments


def _function(where: str | None, option: str) -> Callable[..., Any] | None:
    """Return what is called; if it raises, that is told as a mistake of its option."""
    if where is None:
        return None
    function: Any = imported_object(where, f"{_FUNCTION}, like app:reset", object)
    if not callable(function):
        raise BadInput(f"{option} {where} is not a function")

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise BadInput(
                f"{option} {where} raised {type(error).__name__}: {error}"
            ) from error

    return call
