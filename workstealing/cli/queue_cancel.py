"""`workstealing queue cancel`: stop tasks that are not to be run after all."""

from __future__ import annotations

from typing import Any

import click

from workstealing.cli.choosing import chosen, queue_options
from workstealing.cli.refusing import BadInput, refusing
from workstealing.client.handle import TaskHandle
from workstealing.inspecting.wording import counted
from workstealing.tasks.outcome import State

__all__ = ("cancel_command",)


@click.command("cancel")
@queue_options("ID...")
@refusing()
def cancel_command(**where: Any) -> None:
    """Cancel tasks: those that wait at once, those that run by asking.

    A line for each id says what became of it. A running task is asked to stop, and may
    end in any way all the same: `queue why ID` tells.

    Exits with 1 if an id is unknown, or its task ended in another way before; the
    others are cancelled all the same.
    """
    queue, words = chosen(**where)
    if not words:
        raise BadInput("give one id of a task, or more; none was given")
    # All of them first: a mistyped one must not leave the work half done.
    handles = [queue.handle(task_id) for task_id in dict.fromkeys(words)]
    missed = [handle.id for handle in handles if not _cancel(handle)]
    if missed:
        tasks = counted(len(missed), "task")
        raise click.ClickException(f"{tasks} could not be cancelled")


def _cancel(handle: TaskHandle[Any]) -> bool:
    """Cancel one, say what became of it, and tell whether that was wanted."""
    verdict = handle.cancel()
    if verdict == "ended":
        state = handle.state().state
        # Who asks again wants nothing else.
        is_well = state is State.CANCELLED
        told = "cancelled before" if is_well else f"ended before: {state.value}"
    else:
        is_well, told = verdict != "unknown", _TOLD[verdict]
    click.echo(f"{handle.id}: {told}")
    return is_well


_TOLD: dict[str, str] = {
    "cancelled": "cancelled",
    "asked": "runs, and is asked to stop",
    "unknown": "unknown: never submitted to this run, or forgotten by now",
}
