"""`workstealing queue ls | cat | tree | why`: look, and change nothing."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import click
from rich.console import Console

from workstealing.cli.choosing import chosen, nothing_more, queue_options, single
from workstealing.cli.drawing import entries_sheet, tree_lines
from workstealing.cli.refusing import refusing
from workstealing.cli.sheets import show
from workstealing.inspecting.inspector import Inspector
from workstealing.inspecting.listing import PLACES
from workstealing.inspecting.wording import printable

__all__ = ("cat_command", "ls_command", "tree_command", "why_command")


@click.command(
    "ls",
    epilog=f"WHERE is {', '.join(PLACES)}, or queues/WORKER; inbox unless given.",
)
@queue_options("[WHERE]")
@click.option("--limit", type=int, default=20, show_default=True, help="Tasks at most.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects.")
@refusing()
def ls_command(limit: int, as_json: bool, **where: Any) -> None:
    """List the tasks of one place."""
    queue, words = chosen(**where)
    place = single(words, "place", "inbox")
    entries = Inspector(queue).ls(place, limit)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(entry) for entry in entries]))
    elif entries:
        now_ms = time.time_ns() // 1_000_000
        show([entries_sheet(entries, now_ms)], Console(highlight=False))
    else:
        click.echo(f"nothing in {place}", err=True)


@click.command("cat")
@queue_options("ID")
@refusing()
def cat_command(**where: Any) -> None:
    """Show a task: its envelope, its outcome, its traceback."""
    queue, words = chosen(**where)
    view = Inspector(queue).cat(single(words, "id of a task"))
    click.echo(printable(f"{view.id}: {view.state.value}. {view.summary}"))
    for title, value in (
        ("envelope", view.envelope),
        ("outcome", view.outcome),
        ("result", view.result),
    ):
        if value is not None:
            text = json.dumps(value, indent=2, ensure_ascii=False)
            click.echo(f"\n{title}:\n{printable(text)}")
    if view.traceback:
        click.echo(f"\n{printable(view.traceback.rstrip())}")


@click.command("tree")
@queue_options()
@click.option(
    "--limit", type=int, default=10, show_default=True, help="Tasks per folder."
)
@refusing()
def tree_command(limit: int, **where: Any) -> None:
    """Show a queue as folders: inbox, outbox and queues, .lock and .done."""
    queue, words = chosen(**where)
    nothing_more(words)
    for line in tree_lines(Inspector(queue).tree(limit)):
        click.echo(line)


@click.command("why")
@queue_options("ID")
@refusing()
def why_command(**where: Any) -> None:
    """Say where a task is, who holds it, and why it does not run."""
    queue, words = chosen(**where)
    told = Inspector(queue).why(single(words, "id of a task"))
    click.echo(f"{printable(told.id)}: {told.state.value}")
    for sentence in told.sentences:
        click.echo(f"  {printable(sentence)}")
