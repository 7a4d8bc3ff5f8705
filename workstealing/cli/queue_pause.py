"""`workstealing queue pause | resume`: hold back the tasks of a queue or name."""

from __future__ import annotations

from typing import Any

import click

from workstealing._checks import did_you_mean
from workstealing.cli.options import (
    BadInput,
    chosen_queue,
    clear_errors,
    no_more_words,
    queue_options,
)
from workstealing.cli.unknown_queue import no_such_queue
from workstealing.client.task_queue import TaskQueue
from workstealing.inspecting.formatting import timestamp
from workstealing.queue.inspection_calls import Counts

__all__ = ("pause_command", "resume_command")

_task_option = click.option("--task", metavar="NAME", help="Only tasks of this name.")


@click.command("pause")
@queue_options()
@_task_option
@click.option(
    "--unknown",
    is_flag=True,
    help="Pause the queue, or --task NAME, even if nobody knows it yet.",
)
@clear_errors()
def pause_command(task: str | None, unknown: bool, **where: Any) -> None:
    """Start no more tasks until `queue resume`; running ones finish.

    This applies to all workers, including those that join later. Tasks can still be
    submitted, and wait. With --task, tasks of other names still start.

    A task that neither the application nor a live worker knows, and a --queue that the
    server does not have, are refused as misspelt; --unknown pauses them anyway.
    """
    queue, words = chosen_queue(**where)
    no_more_words(words)
    # A queue of an application is known by its code.
    if where["name"] is not None and not unknown and (problem := no_such_queue(queue)):
        raise BadInput(f"{problem}. --unknown pauses it all the same")
    if task is not None and not unknown:
        _refuse_unknown(queue, queue.counts(), task)
    what = _what(queue, task)
    if queue.pause(task):
        click.echo(f"{what} paused; running tasks finish")
        return
    # Another process may have paused it since it was looked at.
    pauses = queue.paused()
    since_ms = pauses.queue_since_ms if task is None else pauses.tasks.get(task)
    since = f", since {timestamp(since_ms)}" if since_ms else ""
    click.echo(f"{what} already paused{since}")


@click.command("resume")
@queue_options()
@_task_option
@clear_errors()
def resume_command(task: str | None, **where: Any) -> None:
    """Start tasks again after `queue pause`, in their old order.

    Without --task, tasks that were paused by name stay paused. Exits with 1 if what is
    named was not paused.
    """
    queue, words = chosen_queue(**where)
    no_more_words(words)
    was_paused = queue.resume(task)
    left = queue.paused().sentences()
    if not was_paused:
        raise click.ClickException(
            "; ".join([f"{_what(queue, task)} not paused", *left])
        )
    click.echo("; ".join([f"{_what(queue, task)} resumed", *left]))


def _what(queue: TaskQueue, task: str | None) -> str:
    whole = f"{queue.name}/{queue.run}"
    return f"{whole} is" if task is None else f"task {task} of {whole} is"


def _refuse_unknown(queue: TaskQueue, seen: Counts, task: str) -> None:
    known = {definition.name for definition in queue.registry}
    known |= {ability.rpartition("@")[0] for ability in seen.abilities}
    if task in known or task in seen.pauses.tasks:
        return
    by_end = {name.rpartition(".")[2]: name for name in sorted(known)}
    near = did_you_mean(task, [*sorted(known), *by_end])
    near = by_end.get(near or "", near)
    meant = f" Did you mean {near}?" if near else ""
    raise BadInput(
        f"neither the application nor a live worker knows a task {task!r}, so nothing"
        f" was paused.{meant} --unknown pauses it all the same"
    )
