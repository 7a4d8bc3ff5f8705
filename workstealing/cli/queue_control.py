"""`workstealing queue cancel | drain | done | reopen`: stop tasks, end the input."""

from __future__ import annotations

from typing import Any

import click

from workstealing.cli.exits import BadInput, clear_errors
from workstealing.cli.options import (
    chosen_queue,
    no_more_words,
    queue_options,
    wait_options,
)
from workstealing.cli.worker_command import run_pool
from workstealing.cli.worker_output import log_options
from workstealing.client.handle import TaskHandle
from workstealing.inspecting.formatting import plural
from workstealing.tasks.outcome import State
from workstealing.workers.worker_pool import WorkerPool

__all__ = ("cancel_command", "done_command", "drain_command", "reopen_command")


@click.command("cancel")
@queue_options("ID...")
@clear_errors()
def cancel_command(**where: Any) -> None:
    """Cancel tasks: waiting ones at once, running ones by asking them to stop.

    Prints what happened to each task. A running task that was asked to stop may still
    finish first: see `queue why ID`.

    Exits with 1 if an id is unknown or its task had already ended; the other tasks are
    cancelled all the same.
    """
    queue, words = chosen_queue(**where)
    if not words:
        raise BadInput("give the id of at least one task")
    # All ids are checked first: a mistyped one must not leave the work half done.
    handles = [queue.handle(task_id) for task_id in dict.fromkeys(words)]
    missed = [handle.id for handle in handles if not _cancel(handle)]
    if missed:
        tasks = plural(len(missed), "task")
        raise click.ClickException(f"{tasks} could not be cancelled")


@click.command("drain")
@queue_options()
@log_options
@clear_errors()
def drain_command(level: int, **where: Any) -> None:
    """Run the tasks of a queue in this process until none is left that can run."""
    if where["name"] is not None:
        raise BadInput("draining runs tasks, which needs their code: give APP:QUEUE")
    queue, words = chosen_queue(**where)
    no_more_words(words)
    run_pool(queue, WorkerPool(queue), until_empty=True, level=level)


@click.command("done")
@queue_options()
@wait_options("Wait until no task is left to run.")
@clear_errors()
def done_command(wait: bool, timeout: float | None, **where: Any) -> None:
    """End the input of a run: further tasks are refused.

    What was submitted before still runs. `queue reopen` takes it back.
    """
    if timeout is not None and not wait:
        raise BadInput("--timeout needs --wait")
    queue, words = chosen_queue(**where)
    no_more_words(words)
    queue.end_input()
    click.echo(f"{queue.name}/{queue.run} takes no more tasks")
    if wait:
        seen = queue.wait(timeout)
        dead = plural(seen.dead, "dead letter")
        click.echo(f"no task is left to run; {dead}, {seen.parked:,} parked")


@click.command("reopen")
@queue_options()
@clear_errors()
def reopen_command(**where: Any) -> None:
    """Accept tasks again, after `queue done`."""
    queue, words = chosen_queue(**where)
    no_more_words(words)
    queue.reopen_input()
    click.echo(f"{queue.name}/{queue.run} accepts tasks")


def _cancel(handle: TaskHandle[Any]) -> bool:
    """Cancel a task and print what happened; return False if it could not be done."""
    verdict = handle.cancel()
    if verdict == "ended":
        state = handle.state().state
        # Cancelling a task twice is no mistake.
        is_cancelled = state is State.CANCELLED
        words = "was cancelled before" if is_cancelled else f"had ended: {state.value}"
    else:
        is_cancelled, words = verdict != "unknown", _VERDICTS[verdict]
    click.echo(f"{handle.id}: {words}")
    return is_cancelled


_VERDICTS: dict[str, str] = {
    "cancelled": "cancelled",
    "asked": "running; asked to stop",
    "unknown": "unknown: never submitted to this run, or expired",
}
