"""`workstealing worker`: runs the tasks of queues until a signal stops it."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import click

from workstealing._logs import flush_logs
from workstealing._printing import escaping_logger, on_one_line
from workstealing.cli.options import (
    BadInput,
    chosen_queue,
    clear_errors,
    imported_any_queue,
    imported_object,
    imported_queue,
    no_more_words,
    queue_options,
)
from workstealing.cli.reloading import CodeWatch
from workstealing.cli.worker_output import (
    ProgressLine,
    is_terminal,
    log_options,
    log_to_stderr,
)
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.embedded import hold_over_exec
from workstealing.inspecting import Inspector
from workstealing.inspecting.formatting import plural
from workstealing.pool.autoscale import Autoscale
from workstealing.recruiting.recruiter import Recruiter
from workstealing.workers.identity import STOP_SECONDS, UntilEmpty
from workstealing.workers.service import Service
from workstealing.workers.worker_pool import Kind, WorkerPool

__all__ = ("run_pool", "worker_command")

logger = escaping_logger(__name__)

_RANGE = re.compile(r"(\d+):(\d+)")
_UNTIL_EMPTY = "--until-empty"
_WORKERS = 4


class _WorkerCommand(click.Command):
    """Lets `--until-empty` be written without a value, or as `--until-empty=all`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Click would take the word after it for its value.
        whole = [f"{word}=now" if word == _UNTIL_EMPTY else word for word in args]
        return super().parse_args(ctx, whole)


@click.command("worker", cls=_WorkerCommand)
@queue_options("[APP:QUEUE]…", several=True)
@click.option(
    "--weights",
    metavar="N,N,…",
    help="With several queues: while all have tasks, start them in proportion to these"
    " numbers, one for each.  [default: alike]",
)
@click.option(
    "--strict",
    is_flag=True,
    help="With several queues: start tasks of a later one only while those before it"
    " have none.",
)
@click.option(
    "--kind",
    type=click.Choice(get_args(Kind)),
    default="threads",
    show_default=True,
    help="What runs the tasks.",
)
@click.option(
    "--workers",
    type=int,
    help="Number of tasks that run at the same time; with --autoscale, at first."
    "  [default: 4; with --autoscale, LEAST]",
)
@click.option(
    "--autoscale",
    metavar="LEAST:MOST",
    help="Adjust the number of workers to the backlog, within these limits.",
)
@click.option(
    "--wait",
    type=float,
    metavar="SECONDS",
    help="With --autoscale: also add workers, two at a time, when a task has waited for"
    " this long.",
)
@click.option(
    "--backlog",
    type=int,
    metavar="N",
    help="With --autoscale: add workers when there are more tasks than this per worker."
    "  [default: 10]",
)
@click.option(
    "--idle",
    type=float,
    metavar="SECONDS",
    help="With --autoscale: remove workers that have been idle for this long."
    "  [default: 10]",
)
@click.option(
    _UNTIL_EMPTY,
    metavar="[=all]",
    help="Exit when no task can run now; with =all, wait for delayed tasks too.",
)
@click.option("--pool", help="First part of the workers' names.  [default: unique]")
@click.option(
    "--batch",
    type=int,
    default=100,
    show_default=True,
    help="Most tasks that a worker takes at once. With 1, a crash repeats only the"
    " task that was running.",
)
@click.option(
    "--stop-timeout",
    type=float,
    default=STOP_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Time for running tasks to finish after the first signal.",
)
@click.option(
    "--max-tasks",
    type=int,
    metavar="N",
    help="Replace a process after this many tasks.",
)
@click.option(
    "--max-memory",
    type=float,
    metavar="MIB",
    help="Replace a process that uses more memory.",
)
@click.option(
    "--recruiter",
    metavar="MODULE:RECRUITER",
    help="Do the side work of this recruiter while a worker is idle.",
)
@click.option("--reload", is_flag=True, help="Restart when the code changes.")
@log_options
@click.option(
    "--check",
    is_flag=True,
    help="Run nothing; exit with 0 if a worker of --pool, or of this host, is alive,"
    " and with 1 if none is, in each queue. With --queue NAME it imports no code.",
)
@clear_errors()
def worker_command(
    words: tuple[str, ...],
    names: tuple[str, ...],
    run: str | None,
    url: str | None,
    weights: str | None,
    strict: bool,
    kind: Kind,
    workers: int | None,
    until_empty: str | None,
    pool: str | None,
    batch: int,
    stop_timeout: float,
    max_tasks: int | None,
    max_memory: float | None,
    recruiter: str | None,
    reload: bool,
    level: int,
    check: bool,
    **scaling: Any,
) -> None:
    """Run the tasks of a queue, or of several.

    APP is a module, searched for in the current folder first; QUEUE is a TaskQueue in
    it. Several queues share the workers: while one has no tasks, the others get all.

    On SIGTERM or SIGINT it takes no more tasks, hands back those that have not started,
    lets running ones finish within --stop-timeout and hands back the rest. It exits
    with 0, or with 1 if a running task was interrupted. A second signal interrupts
    running tasks at once. SIGHUP reloads the code.
    """
    if check:
        for queue in _checked_queues(words, names, run, url):
            _check(queue, pool)
        return
    if names or not words:
        raise BadInput("a worker needs the code of its tasks: give APP:QUEUE")
    if len(words) == 1 and (weights is not None or strict):
        raise BadInput("--weights and --strict need several queues")
    if weights is not None and strict:
        raise BadInput("give --strict or --weights, not both")
    if until_empty not in (None, "now", "all"):
        raise BadInput(
            f"{_UNTIL_EMPTY} must have no value, or =all, got {until_empty!r}"
        )
    autoscale = _autoscale(**scaling)
    if workers is None:
        workers = _WORKERS if autoscale is None else autoscale.least
    made = WorkerPool(
        [imported_any_queue(word) for word in words],
        workers,
        kind,
        autoscale=autoscale,
        name=pool,
        batch=batch,
        max_tasks=max_tasks,
        max_memory=max_memory,
        recruiter=None if recruiter is None else _recruiter(recruiter),
        weights=_weights(weights, len(words)),
        strict=strict,
    )
    modules = dict.fromkeys(word.partition(":")[0] for word in words)
    run_pool(
        made,
        until_empty="all" if until_empty == "all" else until_empty is not None,
        stop_timeout=stop_timeout,
        reload=tuple(modules) if reload else (),
        level=level,
    )


def run_pool(
    pool: WorkerPool,
    *,
    until_empty: UntilEmpty,
    stop_timeout: float = STOP_SECONDS,
    reload: Sequence[str] = (),
    level: int = logging.INFO,
) -> None:
    """Run a pool as the main work of this process, and show its progress.

    If *reload* names modules, the code is reloaded when it changes.
    """
    for queue in pool.queues:
        if not queue.registry.abilities():
            raise BadInput(
                f"no tasks are defined for the queue {queue.name}: import the modules"
                " that define them in the module of the queue"
            )
    abilities = [one for queue in pool.queues for one in queue.registry.abilities()]
    service = Service(pool, stop_timeout=stop_timeout)
    progress = ProgressLine(pool)
    log_to_stderr(level, progress if is_terminal() else None)
    known = ", ".join(abilities[:5]) + (", …" if len(abilities) > 5 else "")
    logger.info(
        "starting pool %s of %s as process %d (%s); tasks: %s",
        pool.name,
        ", ".join(f"{queue.name}/{queue.run}" for queue in pool.queues),
        os.getpid(),
        pool.kind,
        known,
    )
    began = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(progress)
        if reload:
            stack.enter_context(CodeWatch(Path.cwd(), reload, service.reload))
        code = service.run(until_empty=until_empty)
        flush_logs()
    stats = pool.stats()
    logger.info(
        "pool %s ended: %s taken in %.1f s, %d stolen",
        pool.name,
        plural(stats.taken, "task"),
        time.monotonic() - began,
        stats.stolen,
    )
    if service.wants_restart:
        hold_over_exec()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
    if code:
        # Threads that could not be stopped must not keep the process alive.
        logging.shutdown()
        os._exit(code)


def _checked_queues(
    words: tuple[str, ...], names: tuple[str, ...], run: str | None, url: str | None
) -> list[TaskQueue]:
    if names:
        no_more_words(words)
        return [chosen_queue((), name, run, url)[0] for name in names]
    first, rest = chosen_queue(words, None, run, url)
    return [first, *map(imported_queue, rest)]


def _check(queue: TaskQueue, pool: str | None) -> None:
    host = socket.gethostname()
    where = f"pool {pool}" if pool else f"host {host}"
    alive = [
        worker.name
        for worker in Inspector(queue).stat().workers
        if worker.is_alive
        and (worker.name.rpartition(".")[0] == pool if pool else worker.host == host)
    ]
    if not alive:
        raise click.ClickException(
            f"no worker of {where} is alive in {queue.name}/{queue.run}"
        )
    click.echo(on_one_line(f"alive: {', '.join(alive)}"))


def _weights(given: str | None, queues: int) -> list[float] | None:
    if given is None:
        return None
    try:
        numbers = [float(one) for one in given.split(",")]
    except ValueError:
        raise BadInput(
            f"--weights must be numbers with commas between them, like 3,1, got"
            f" {given!r}"
        ) from None
    if len(numbers) != queues:
        raise BadInput(
            f"--weights must be one number for each queue, {queues} in all, got"
            f" {given!r}"
        )
    return numbers


def _autoscale(autoscale: str | None, **options: float | None) -> Autoscale | None:
    given: dict[str, Any] = {
        name: value for name, value in options.items() if value is not None
    }
    if autoscale is None:
        if given:
            raise BadInput("--wait, --backlog and --idle need --autoscale LEAST:MOST")
        return None
    match = _RANGE.fullmatch(autoscale)
    if match is None:
        raise BadInput(f"--autoscale must be LEAST:MOST, like 2:32, got {autoscale!r}")
    return Autoscale(int(match[1]), int(match[2]), **given)


def _recruiter(where: str) -> Recruiter:
    form = "MODULE:RECRUITER, like app:recruiter"
    recruiter: Recruiter = imported_object(where, form, Recruiter)
    return recruiter
