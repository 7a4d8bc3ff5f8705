"""`workstealing queue`: the commands for one queue, from several modules."""

from __future__ import annotations

import click

from workstealing.cli.queue_add import add_command
from workstealing.cli.queue_control import (
    cancel_command,
    done_command,
    drain_command,
    reopen_command,
)
from workstealing.cli.queue_dead import dead_command, drop_command, replay_command
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
    """Look at a queue, add tasks, cancel or replay them.

    Name the queue by APP:QUEUE (a TaskQueue in a module), or by --queue NAME, which
    imports no code.
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
    replay_command,
    drop_command,
):
    queue_command.add_command(_command)
