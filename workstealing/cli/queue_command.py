"""`workstealing queue`: the commands for one queue.

Here are those that look at tasks and change nothing, `ls`, `cat`, `tree` and `why`; the
others have modules of their own.
"""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import click
import msgspec
from rich.text import Text

from workstealing._printing import on_one_line, printable
from workstealing.cli.colours import HEADING, state_style
from workstealing.cli.consoles import open_console, say
from workstealing.cli.options import (
    chosen_queue,
    clear_errors,
    json_option,
    limit_option,
    no_more_words,
    queue_options,
    single_word,
)
from workstealing.cli.queue_add import add_command
from workstealing.cli.queue_bulk import count_command, purge_command
from workstealing.cli.queue_control import (
    cancel_command,
    dead_command,
    done_command,
    drain_command,
    drop_command,
    reopen_command,
    replay_command,
)
from workstealing.cli.queue_limits import limits_command
from workstealing.cli.queue_logs import logs_command
from workstealing.cli.queue_pause import pause_command, resume_command
from workstealing.cli.queue_stat import stat_command
from workstealing.cli.queue_tables import task_table, tree_lines
from workstealing.cli.tables import PagePart, print_page
from workstealing.cli.unknown_queue import (
    looking_it_up,
    no_such_queue,
    warn_of_unknown,
)
from workstealing.inspecting import PLACES, Inspector
from workstealing.tasks.outcome import State

__all__ = ("queue_command",)


@click.group("queue")
def queue_command() -> None:
    """Look at a queue, add tasks, cancel or replay them, pause it.

    Name the queue by APP:QUEUE (a TaskQueue in a module), or by --queue NAME, which
    imports no code.
    """


@queue_command.command(
    "ls",
    epilog=f"PLACE is one of {', '.join(PLACES)}, or queues/WORKER. The default is"
    " inbox.",
)
@queue_options("[PLACE]")
@limit_option
@json_option
@clear_errors()
def _ls(limit: int, as_json: bool, **where: Any) -> None:
    """List the tasks in one place."""
    queue, words = chosen_queue(**where)
    place = single_word(words, "one place", "inbox")
    tasks = Inspector(queue).ls(place, limit)
    if not tasks:
        say(no_such_queue(queue) or f"no tasks in {place}", err=True)
    if as_json:
        rows = [dataclasses.asdict(task) for task in tasks]
        click.echo(json.dumps(rows, default=msgspec.to_builtins))
    elif tasks:
        now_ms = time.time_ns() // 1_000_000
        print_page([task_table(tasks, now_ms)], open_console())


@queue_command.command("cat")
@queue_options("ID")
@clear_errors()
def _cat(**where: Any) -> None:
    """Show a task: its envelope, outcome, result and traceback."""
    queue, words = chosen_queue(**where)
    task_id = single_word(words, "the id of one task")
    with looking_it_up(queue):
        task = Inspector(queue).cat(task_id)
    say(on_one_line(f"{task.id}: {task.state.value}. {task.summary}"))
    for title, value in (
        ("envelope", task.envelope),
        ("outcome", task.outcome),
        ("result", task.result),
    ):
        if value is not None:
            text = json.dumps(value, indent=2, ensure_ascii=False)
            click.echo(f"\n{title}:\n{printable(text)}")
    if task.traceback:
        click.echo(f"\n{printable(task.traceback.rstrip())}")


@queue_command.command("tree")
@queue_options()
@click.option(
    "--limit",
    type=int,
    default=10,
    show_default=True,
    help="Show at most this many tasks per folder.",
)
@clear_errors()
def _tree(limit: int, **where: Any) -> None:
    """Show a queue as folders, with .lock and .done marks."""
    queue, words = chosen_queue(**where)
    no_more_words(words)
    root = Inspector(queue).tree(limit)
    for line in tree_lines(root):
        click.echo(line)
    (run,) = root.children
    if not any(folder.children for folder in run.children):
        warn_of_unknown(queue)


@queue_command.command("why")
@queue_options("ID")
@clear_errors()
def _why(**where: Any) -> None:
    """Explain where a task is and why it is not running.

    Exits with 1 if nothing is known of it.
    """
    queue, words = chosen_queue(**where)
    explained = Inspector(queue).why(single_word(words, "the id of one task"))
    state, console = explained.state.value, open_console()
    name = f"{on_one_line(explained.id)}: "
    parts: list[PagePart] = [
        Text.assemble((name, HEADING), (state, state_style(state)))
    ]
    parts += (f"  {on_one_line(sentence)}" for sentence in explained.sentences)
    print_page(parts, console)
    if explained.state is State.UNKNOWN:
        warn_of_unknown(queue)
        raise SystemExit(1)


for _command in (
    add_command,
    stat_command,
    count_command,
    cancel_command,
    drain_command,
    done_command,
    reopen_command,
    pause_command,
    resume_command,
    logs_command,
    dead_command,
    replay_command,
    drop_command,
    limits_command,
    purge_command,
):
    queue_command.add_command(_command)
