"""`workstealing queue`: look at a queue, give it tasks, end it."""

from __future__ import annotations

import click

from workstealing.cli.queue_add import add_command
from workstealing.cli.queue_cancel import cancel_command
from workstealing.cli.queue_end import (
    dead_command,
    done_command,
    drain_command,
    reopen_command,
)
from workstealing.cli.queue_look import (
    cat_command,
    ls_command,
    tree_command,
    why_command,
)
from workstealing.cli.queue_stat import stat_command

__all__ = ("queue_command",)


@click.group("queue")
def queue_command() -> None:
    """Look at a queue, give it tasks, end it.

    A queue is named by APP:QUEUE (a TaskQueue of a module) or by --queue NAME, for
    which no code is imported.
    """


for _command in (
    add_command,
    ls_command,
    cat_command,
    stat_command,
    tree_command,
    why_command,
    cancel_command,
    drain_command,
    done_command,
    reopen_command,
    dead_command,
):
    queue_command.add_command(_command)
