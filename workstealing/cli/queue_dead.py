"""`workstealing queue dead | replay | drop`: dead letters, listed, retried, deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich.console import Console

from workstealing.cli.exits import BadInput, clear_errors
from workstealing.cli.options import (
    chosen_queue,
    confirm,
    no_more_words,
    queue_options,
)
from workstealing.cli.tables import print_page, task_table
from workstealing.client.task_queue import TaskQueue
from workstealing.inspecting import Inspector
from workstealing.inspecting.formatting import plural

__all__ = ("dead_command", "drop_command", "replay_command")

_PAGE = 1000

_all_option = click.option("--all", "every", is_flag=True, help="All dead letters.")
_yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command("dead")
@queue_options()
@click.option(
    "--limit", type=int, default=20, show_default=True, help="List at most this many."
)
@clear_errors()
def dead_command(limit: int, **where: Any) -> None:
    """List the dead letters, the latest first; change nothing.

    A dead letter is a task that was given up: it failed and has no retries left, or it
    cannot be run at all.
    """
    queue, words = chosen_queue(**where)
    no_more_words(words)
    seen = queue.counts()
    tasks = Inspector(queue).ls("dead", limit)
    if not tasks:
        click.echo("no dead letters", err=True)
        return
    table = task_table(tasks, seen.now_ms)
    if seen.dead > len(tasks):
        table.footer.append(f"… {seen.dead - len(tasks):,} more")
    print_page([table], Console(highlight=False))


@click.command("replay")
@queue_options("[ID]...")
@_all_option
@_yes_option
@clear_errors()
def replay_command(every: bool, yes: bool, **where: Any) -> None:
    """Return dead letters to the inbox, with all their attempts ahead of them.

    Asks first if there is more than one. Exits with 1 if an id is not a dead letter;
    the others are replayed all the same.
    """
    queue, ids = chosen_queue(**where)
    _apply(queue, ids, every, yes, queue.replay, "replay", "replayed")


@click.command("drop")
@queue_options("[ID]...")
@_all_option
@_yes_option
@clear_errors()
def drop_command(every: bool, yes: bool, **where: Any) -> None:
    """Delete dead letters for good.

    Asks first if there is more than one. Exits with 1 if an id is not a dead letter;
    the others are dropped all the same.
    """
    queue, ids = chosen_queue(**where)
    _apply(queue, ids, every, yes, queue.drop, "drop", "dropped")


def _apply(
    queue: TaskQueue,
    ids: tuple[str, ...],
    every: bool,
    yes: bool,
    act: Callable[[str], bool],
    verb: str,
    past: str,
) -> None:
    """Do something to the dead letters that were named, or to all of them."""
    if bool(ids) == every:
        raise BadInput("give the ids of dead letters, or --all")
    # A mistyped id is refused before anything is done.
    ids = tuple(queue.handle(task_id).id for task_id in dict.fromkeys(ids))
    number = queue.counts().dead if every else len(ids)
    if number > 1:
        which = "all " if every else ""
        confirm(f"{verb} {which}{plural(number, 'dead letter')}", yes=yes)
    if every:
        click.echo(f"{_apply_to_all(queue, number, act):,} {past}")
        return
    missed = [task_id for task_id in ids if not act(task_id)]
    click.echo(f"{len(ids) - len(missed):,} {past}")
    if missed:
        raise click.ClickException(f"not a dead letter: {', '.join(missed)}")


def _apply_to_all(queue: TaskQueue, left: int, act: Callable[[str], bool]) -> int:
    """Act on those that are there now; replayed ones may fail again meanwhile."""
    changed = 0
    inspector = Inspector(queue)
    while left > 0:
        tasks = inspector.ls("dead", min(left, _PAGE))
        if not tasks:
            break
        changed += sum(act(task.id) for task in tasks)
        left -= len(tasks)
    return changed
