"""`workstealing queue logs`: prints what a task logged and printed."""

from __future__ import annotations

from typing import Any

import click

from workstealing.cli.consoles import say
from workstealing.cli.options import (
    chosen_queue,
    clear_errors,
    queue_options,
    single_word,
)
from workstealing.cli.unknown_queue import looking_it_up
from workstealing.client.task_log import LoggingChannel
from workstealing.inspecting import Inspector, TaskDetail
from workstealing.tasks.output_capture import LogRecord

__all__ = ("logs_command",)


@click.command("logs")
@queue_options("ID")
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Go on until the task ends, or Ctrl-C.",
)
@clear_errors()
def logs_command(follow: bool, **where: Any) -> None:
    """Print what a task logged and printed, as far as it is kept.

    A log is kept of tasks that were submitted with options(log=True).
    """
    queue, words = chosen_queue(**where)
    task_id = single_word(words, "the id of one task")
    handle = queue.handle(task_id)
    if follow:
        # Nothing would ever end the log of a task that does not exist.
        with looking_it_up(queue):
            Inspector(queue).cat(task_id, most=1)
        handle.follow(LoggingChannel(_print_record))
        return
    records = handle.logs()
    for record in records:
        _print_record(record)
    if not records:
        with looking_it_up(queue):
            say(_why_none(Inspector(queue).cat(task_id)), err=True)


def _why_none(task: TaskDetail) -> str:
    if task.envelope is None:
        return (
            "it logged and printed nothing, or was submitted without options(log=True)"
        )
    if isinstance(task.envelope, dict) and task.envelope.get("log"):
        return "it has logged and printed nothing so far"
    return "no log is kept of it: submit it with options(log=True)"


def _print_record(record: LogRecord) -> None:
    say(str(record))
