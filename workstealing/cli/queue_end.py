"""`workstealing queue drain | done | reopen | dead`: bring a queue to its end."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from workstealing.cli.choosing import chosen, nothing_more, queue_options
from workstealing.cli.drawing import entries_sheet
from workstealing.cli.refusing import BadInput, refusing
from workstealing.cli.sheets import show
from workstealing.cli.worker import run_pool
from workstealing.client.queue import TaskQueue
from workstealing.inspecting.inspector import Inspector
from workstealing.workers.worker_pool import WorkerPool

__all__ = ("dead_command", "done_command", "drain_command", "reopen_command")

_PAGE = 1000


@click.command("drain")
@queue_options()
@refusing()
def drain_command(**where: Any) -> None:
    """Run the tasks of a queue here until nothing is left."""
    if where["name"] is not None:
        raise BadInput("to drain is to run tasks, which needs their code: APP:QUEUE")
    queue, words = chosen(**where)
    nothing_more(words)
    run_pool(queue, WorkerPool(queue), until_empty=True)


@click.command("done")
@queue_options()
@click.option("--wait", is_flag=True, help="Wait until nothing is left to do.")
@click.option("--timeout", type=float, metavar="SECONDS", help="How long to wait.")
@refusing()
def done_command(wait: bool, timeout: float | None, **where: Any) -> None:
    """Say that no more input comes: further tasks are refused.

    Exits with 3 if it was to wait and did not see the end in time.
    """
    if timeout is not None and not wait:
        raise BadInput("--timeout goes with --wait")
    queue, words = chosen(**where)
    nothing_more(words)
    queue.close()
    click.echo(f"{queue.name}/{queue.run} takes no more input")
    if wait:
        seen = queue.wait(timeout)
        click.echo(
            f"nothing is left to do; {seen.dead:,} dead letters, {seen.parked:,} parked"
        )


@click.command("reopen")
@queue_options()
@refusing()
def reopen_command(**where: Any) -> None:
    """Take input again, after `queue done`."""
    queue, words = chosen(**where)
    nothing_more(words)
    queue.reopen()
    click.echo(f"{queue.name}/{queue.run} takes input")


@click.command("dead")
@queue_options()
@click.option("--replay", multiple=True, metavar="ID", help="Put it back; repeatable.")
@click.option("--all", "replay_all", is_flag=True, help="Put all of them back.")
@click.option("--drop", multiple=True, metavar="ID", help="Forget it; repeatable.")
@click.option("--yes", is_flag=True, help="Do not ask before something is dropped.")
@click.option(
    "--limit", type=int, default=20, show_default=True, help="Listed at most."
)
@refusing()
def dead_command(
    replay: tuple[str, ...],
    replay_all: bool,
    drop: tuple[str, ...],
    yes: bool,
    limit: int,
    **where: Any,
) -> None:
    """List the dead letters, the latest first; replay or drop them.

    What is replayed goes back to its inbox with a clean slate. What is dropped is gone.
    """
    if sum(map(bool, (replay, replay_all, drop))) > 1:
        raise BadInput("choose one of --replay, --all and --drop")
    queue, words = chosen(**where)
    nothing_more(words)
    if drop:
        if not yes:
            click.confirm(f"Drop {len(drop)} for good?", abort=True, err=True)
        _tell("dropped", drop, [queue.drop(task_id) for task_id in drop])
    elif replay:
        _tell("replayed", replay, [queue.replay(task_id) for task_id in replay])
    elif replay_all:
        click.echo(f"{_replay_all(queue):,} replayed")
    else:
        _list(queue, limit)


def _list(queue: TaskQueue, limit: int) -> None:
    inspector = Inspector(queue)
    seen = queue.counts()
    entries = inspector.ls("dead", limit)
    if not entries:
        click.echo("no dead letters", err=True)
        return
    sheet = entries_sheet(entries, seen.now_ms)
    if seen.dead > len(entries):
        sheet.more.append(f"… {seen.dead - len(entries):,} more")
    show([sheet], Console(highlight=False))


def _replay_all(queue: TaskQueue) -> int:
    """Replay those that are there now; some may die again meanwhile."""
    left, replayed = queue.counts().dead, 0
    inspector = Inspector(queue)
    while left > 0:
        entries = inspector.ls("dead", min(left, _PAGE))
        if not entries:
            break
        replayed += sum(queue.replay(entry.id) for entry in entries)
        left -= len(entries)
    return replayed


def _tell(what: str, ids: tuple[str, ...], worked: list[bool]) -> None:
    click.echo(f"{sum(worked):,} {what}")
    missed = [task_id for task_id, well in zip(ids, worked, strict=True) if not well]
    if missed:
        raise click.ClickException(f"no dead letter: {', '.join(missed)}")
