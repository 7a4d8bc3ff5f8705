"""`workstealing queue cancel | drain | done | reopen | dead | replay | drop`.

The commands that change what is in a queue: cancel and run tasks, end the input, and
list, retry and delete dead letters.
"""

from __future__ import annotations

from typing import Any

import click

from workstealing.cli.consoles import open_console, say
from workstealing.cli.options import (
    BadInput,
    chosen_queue,
    clear_errors,
    confirm,
    limit_option,
    no_more_words,
    queue_options,
    wait_options,
)
from workstealing.cli.queue_bulk import (
    bulk_options,
    change_in_bulk,
    taken_selection,
)
from workstealing.cli.queue_tables import task_table
from workstealing.cli.tables import print_page
from workstealing.cli.unknown_queue import no_such_queue, warn_of_unknown
from workstealing.cli.worker_output import log_options
from workstealing.client.bulk import DEAD_LETTERS
from workstealing.client.handle import TaskHandle
from workstealing.errors import NotUnique
from workstealing.inspecting import Inspector
from workstealing.inspecting.formatting import plural
from workstealing.tasks.outcome import UNFINISHED, State

__all__ = (
    "cancel_command",
    "dead_command",
    "done_command",
    "drain_command",
    "drop_command",
    "reopen_command",
    "replay_command",
)


@click.command("cancel")
@queue_options("[ID]...")
@bulk_options(UNFINISHED, "All tasks that are not over.")
@clear_errors()
def cancel_command(every: bool, yes: bool, **where: Any) -> None:
    """Cancel waiting tasks; ask running ones to stop.

    Give their ids, or choose them by name, state and age; then it asks first if there
    is more than one. Prints what happened to each id, or how many were cancelled. A
    running task that was asked to stop may still finish first: see `queue why ID`.

    Exits with 1 if an id is unknown or its task had already ended; the other tasks are
    still cancelled.
    """
    selection = taken_selection(where)
    queue, words = chosen_queue(**where)
    _one_choice(words, selection, every, "tasks")
    if not words:
        done = change_in_bulk(
            queue,
            queue.cancel_many,
            selection,
            UNFINISHED,
            yes=yes,
            verb="cancel",
            noun="task",
        )
        asked = f", {done.asked:,} asked to stop" if done.asked else ""
        click.echo(f"{done.changed:,} cancelled{asked}")
        return
    # All ids are checked first: a mistyped one must not leave the work half done.
    handles = [queue.handle(task_id) for task_id in dict.fromkeys(words)]
    missed = [handle.id for handle in handles if not _cancel(handle)]
    if missed:
        warn_of_unknown(queue)
        tasks = plural(len(missed), "task")
        raise click.ClickException(f"{tasks} could not be cancelled")


@click.command("drain")
@queue_options()
@log_options
@clear_errors()
def drain_command(level: int, **where: Any) -> None:
    """Run the tasks of a queue in this process until none can run."""
    if where["name"] is not None:
        raise BadInput("draining runs tasks, so it needs their code: give APP:QUEUE")
    # No other command for a queue needs workers, which take long to import.
    from workstealing.cli.worker_command import run_pool
    from workstealing.workers.worker_pool import WorkerPool

    queue, words = chosen_queue(**where)
    no_more_words(words)
    run_pool(WorkerPool(queue), until_empty=True, level=level)


@click.command("done")
@queue_options()
@wait_options("Wait until no task is left to run.")
@clear_errors()
def done_command(wait: bool, timeout: float | None, **where: Any) -> None:
    """End the input of a run: further tasks are refused.

    Tasks that were submitted before still run. `queue reopen` undoes it.
    """
    queue, words = chosen_queue(**where)
    no_more_words(words)
    queue.end_input()
    click.echo(f"{queue.name}/{queue.run} accepts no more tasks")
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
    click.echo(f"{queue.name}/{queue.run} accepts tasks again")


@click.command("dead")
@queue_options()
@limit_option
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
        say(no_such_queue(queue) or "no dead letters", err=True)
        return
    table = task_table(tasks, seen.now_ms)
    if seen.dead > len(tasks):
        table.footer.append(f"… {seen.dead - len(tasks):,} more")
    print_page([table], open_console())


@click.command("replay")
@queue_options("[ID]...")
@bulk_options(DEAD_LETTERS, "All dead letters.")
@clear_errors()
def replay_command(every: bool, yes: bool, **where: Any) -> None:
    """Return dead letters to the inbox for a fresh set of attempts.

    Asks first, unless one id is given: a task whose outcome is unknown may run twice.
    Exits with 1 if an id is not a dead letter; the others are still replayed.
    """
    _end_letters(every, yes, where, drop=False)


@click.command("drop")
@queue_options("[ID]...")
@bulk_options(DEAD_LETTERS, "All dead letters.")
@clear_errors()
def drop_command(every: bool, yes: bool, **where: Any) -> None:
    """Delete dead letters for good.

    Asks first if there is more than one. Exits with 1 if an id is not a dead letter;
    the others are still dropped.
    """
    _end_letters(every, yes, where, drop=True)


def _cancel(handle: TaskHandle[Any]) -> bool:
    """Cancel a task and print what happened; return False if it could not be done."""
    verdict = handle.cancel()
    if verdict == "ended":
        state = handle.state().state
        # Cancelling a task twice is not an error.
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


def _one_choice(
    ids: tuple[str, ...], selection: dict[str, Any], every: bool, what: str
) -> None:
    if bool(ids) + bool(selection) + every != 1:
        raise BadInput(
            f"give the ids of {what}, or --task, --state and --older-than, or --all"
        )


def _end_letters(every: bool, yes: bool, where: dict[str, Any], *, drop: bool) -> None:
    """Replay or drop the dead letters with these ids, or those that are chosen."""
    selection = taken_selection(where)
    queue, words = chosen_queue(**where)
    _one_choice(words, selection, every, "dead letters")
    act, act_on_many, verb, past = queue.replay, queue.replay_many, "replay", "replayed"
    if drop:
        act, act_on_many, verb, past = queue.drop, queue.drop_many, "drop", "dropped"
    if not words:
        done = change_in_bulk(
            queue,
            act_on_many,
            selection,
            DEAD_LETTERS,
            yes=yes,
            verb=verb,
            noun="dead letter",
            # A replay may repeat what must not be repeated, and cannot be undone.
            most_unasked=1 if drop else 0,
        )
        click.echo(f"{done.changed:,} {past}")
        for reason in done.refused:
            say(str(reason), err=True)
        return
    # A mistyped id is refused before anything is done.
    ids = [queue.handle(task_id).id for task_id in dict.fromkeys(words)]
    if len(ids) > 1:
        confirm(f"{verb} {plural(len(ids), 'dead letter')}", yes=yes)
    missed, problems = [], []
    for task_id in ids:
        try:
            if not act(task_id):
                missed.append(task_id)
        except NotUnique as error:
            problems.append(str(error))
    click.echo(f"{len(ids) - len(missed) - len(problems):,} {past}")
    if missed:
        warn_of_unknown(queue)
        problems.insert(0, f"not a dead letter: {', '.join(missed)}")
    if problems:
        raise click.ClickException("\n".join(problems))
