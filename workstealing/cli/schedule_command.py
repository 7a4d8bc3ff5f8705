"""`workstealing schedule ls | pause | resume | run | rm`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from workstealing.cli.consoles import open_console, say
from workstealing.cli.options import (
    BadInput,
    chosen_queue,
    clear_errors,
    json_option,
    no_more_words,
    queue_options,
    single_word,
)
from workstealing.cli.tables import TextTable, print_page
from workstealing.cli.unknown_queue import (
    looking_it_up,
    no_such_queue,
    warn_of_unknown,
)
from workstealing.client.schedule_handle import ScheduleHandle
from workstealing.client.schedule_state import ScheduleState
from workstealing.errors import ScheduleNotFound
from workstealing.inspecting.schedule_rows import SCHEDULE_TITLES, schedule_row

__all__ = ("schedule_command",)


@click.group("schedule")
def schedule_command() -> None:
    """List, pause, resume, run or remove schedules.

    Name the queue by APP:QUEUE (a TaskQueue in a module), or by --queue NAME, which
    imports no code.
    """


@schedule_command.command("ls")
@queue_options()
@json_option
@clear_errors()
def _ls(as_json: bool, **where: Any) -> None:
    """List the schedules: when they tick, the next tick and the last."""
    queue, words = chosen_queue(**where)
    no_more_words(words)
    schedules = queue.schedules()
    if not schedules:
        say(no_such_queue(queue) or "no schedules", err=True)
    if as_json:
        click.echo(json.dumps([_as_json(one) for one in schedules]))
    if as_json or not schedules:
        return
    now_ms = time.time_ns() // 1_000_000
    table = TextTable(SCHEDULE_TITLES, right=("fired", "passed"), prose=("note",))
    for one in schedules:
        table.add(*schedule_row(one, now_ms).values())
    print_page([table], open_console())


@schedule_command.command("pause")
@queue_options("NAME...")
@clear_errors()
def _pause(**where: Any) -> None:
    """Pause schedules, in all processes, until they are resumed."""
    _for_each(where, lambda one: "paused" if one.pause() else "was paused before")


@schedule_command.command("resume")
@queue_options("NAME...")
@clear_errors()
def _resume(**where: Any) -> None:
    """Resume schedules from their next tick.

    A schedule that `schedule rm` has removed comes back when a worker or a recruit
    starts whose code declares it, unless a newer release is at work by then. Exits
    with 1 if one was not paused.
    """

    def resume(one: ScheduleHandle) -> str:
        if not one.resume():
            raise click.ClickException(f"{one.name} is not paused")
        try:
            one.state()
        except ScheduleNotFound:
            return (
                "it was removed, and does not tick yet: it comes back when a worker or"
                " a recruit starts whose code declares it, unless a newer release is at"
                " work by then"
            )
        return "resumed"

    _for_each(where, resume)


@schedule_command.command("run")
@queue_options("NAME")
@clear_errors()
def _run(**where: Any) -> None:
    """Submit the task of a schedule now, and print its id.

    Its ticks stay as they are. If another task has the same unique key, print the id of
    that one, with a warning.
    """
    queue, words = chosen_queue(**where)
    name = single_word(words, "the name of one schedule")
    with looking_it_up(queue):
        handle = queue.schedule_handle(name).run()
    if not handle.is_new:
        click.echo(
            f"Warning: nothing was added: task {handle.id} has the same unique key",
            err=True,
        )
    click.echo(handle.id)


@schedule_command.command("rm")
@queue_options("NAME...")
@clear_errors()
def _rm(**where: Any) -> None:
    """Remove schedules, and keep the present code from restoring them.

    A newer release that still declares them restores them; `schedule resume` lets the
    present one do so, too.
    """

    def remove(one: ScheduleHandle) -> str:
        if not one.remove():
            raise ScheduleNotFound(one.name)
        return "removed"

    _for_each(where, remove)


def _for_each(where: dict[str, Any], act: Callable[[ScheduleHandle], str]) -> None:
    queue, words = chosen_queue(**where)
    if not words:
        raise BadInput("give the name of at least one schedule")
    # All names are checked first: a mistyped one must not leave the work half done.
    handles = [queue.schedule_handle(name) for name in dict.fromkeys(words)]
    failures = []
    for handle in handles:
        try:
            click.echo(f"{handle.name}: {act(handle)}")
        except (ScheduleNotFound, click.ClickException) as error:
            failures.append(str(error))
    if failures:
        warn_of_unknown(queue)
        raise click.ClickException("\n".join(failures))


def _as_json(state: ScheduleState) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in ScheduleState.__slots__:
        value = getattr(state, name)
        if isinstance(value, timedelta):
            value = value.total_seconds()
        elif hasattr(value, "isoformat"):
            value = value.isoformat()
        values[name] = value
    return values
