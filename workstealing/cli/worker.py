"""`workstealing worker`: runs the tasks of a queue until it is told to stop."""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.highlighter import NullHighlighter
from rich.logging import RichHandler

from workstealing.cli.choosing import chosen, imported_face, nothing_more, queue_options
from workstealing.cli.importing import imported
from workstealing.cli.progress import Progress
from workstealing.cli.refusing import BadInput, refusing
from workstealing.cli.reloading import Reloading
from workstealing.client.queue import AsyncTaskQueue, TaskQueue
from workstealing.inspecting.inspector import Inspector
from workstealing.inspecting.wording import counted
from workstealing.recruiting.recruiter import Recruiter
from workstealing.workers.lifecycle import STOP_SECONDS
from workstealing.workers.plain import plain
from workstealing.workers.service import Service
from workstealing.workers.worker_pool import Kind, WorkerPool

__all__ = ("run_pool", "worker_command")

logger = logging.getLogger(__name__)

_RANGE = re.compile(r"(\d+):(\d+)")


@click.command("worker")
@queue_options()
@click.option(
    "--kind",
    type=click.Choice(["threads", "processes", "asyncio"]),
    default="threads",
    show_default=True,
    help="What runs the tasks.",
)
@click.option(
    "--workers", type=int, default=4, show_default=True, help="How many at a time."
)
@click.option(
    "--autoscale", metavar="LEAST:MOST", help="As many as the backlog wants, instead."
)
@click.option("--until-empty", is_flag=True, help="End when nothing is left to do.")
@click.option("--pool", help="The first part of its name; one of its own unless given.")
@click.option(
    "--batch",
    type=int,
    default=100,
    show_default=True,
    help="Tasks that each takes at once, at most. With 1 a crash repeats only one.",
)
@click.option(
    "--stop-timeout",
    type=float,
    default=STOP_SECONDS,
    show_default=True,
    help="Seconds for what runs, after the first signal.",
)
@click.option("--max-tasks", type=int, help="Replace a process after so many tasks.")
@click.option("--max-memory", type=float, help="Replace a process above so many MiB.")
@click.option(
    "--recruiter",
    metavar="MODULE:RECRUITER",
    help="Whose side work is done in idle moments, besides the upkeep of the queue.",
)
@click.option("--reload", is_flag=True, help="Begin anew when the code changes.")
@click.option(
    "--check",
    is_flag=True,
    help="Run nothing; exit with 0 if a worker of --pool, or else of this host, is"
    " alive. With --queue NAME no code is imported.",
)
@refusing()
def worker_command(
    words: tuple[str, ...],
    name: str | None,
    run: str | None,
    url: str | None,
    kind: Kind,
    workers: int,
    autoscale: str | None,
    until_empty: bool,
    pool: str | None,
    batch: int,
    stop_timeout: float,
    max_tasks: int | None,
    max_memory: float | None,
    recruiter: str | None,
    reload: bool,
    check: bool,
) -> None:
    """Run the tasks of a queue.

    APP is a module, looked for in the current folder first; QUEUE is a TaskQueue in it.

    SIGTERM or SIGINT: it takes no more, hands back what waits, finishes what runs
    within --stop-timeout, hands back the rest, and exits with 0, or with 1 if something
    was cut off. A second one cuts off what runs at once. SIGHUP: the code is loaded
    anew.
    """
    if check:
        queue, rest = chosen(words, name, run, url)
        nothing_more(rest)
        _check(queue, pool)
        return
    if name is not None or len(words) != 1:
        raise BadInput("name the queue as APP:QUEUE: a worker needs the code of tasks")
    found = imported_face(words[0])
    made = WorkerPool(
        found,
        workers,
        kind,
        name=pool,
        batch=batch,
        max_tasks=max_tasks,
        max_memory=max_memory,
        recruiter=None if recruiter is None else _recruiter(recruiter),
    )
    if autoscale is not None:
        made.autoscale(*_range(autoscale))
    run_pool(
        found,
        made,
        until_empty=until_empty,
        stop_timeout=stop_timeout,
        reload=words[0].partition(":")[0] if reload else None,
    )


def run_pool(
    queue: TaskQueue | AsyncTaskQueue,
    pool: WorkerPool,
    *,
    until_empty: bool,
    stop_timeout: float = STOP_SECONDS,
    reload: str | None = None,
) -> None:
    """Let a pool be the purpose of this process, and tell how it is getting on.

    With *reload*, the name of a module, it begins anew when its code changes.
    """
    abilities = queue.registry.abilities()
    if not abilities:
        raise BadInput(
            f"the queue {queue.name} has no tasks here: import the modules that define"
            " them where the queue is"
        )
    service = Service(pool, stop_timeout=stop_timeout)
    console = Console(stderr=True, highlight=False)
    _set_up_logging(console)
    known = ", ".join(abilities[:5]) + (", …" if len(abilities) > 5 else "")
    logger.info(
        "pool %s of %s/%s starts as process %d (%s); it can run %s",
        pool.name,
        queue.name,
        queue.run,
        os.getpid(),
        pool.kind,
        known,
    )
    began = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(Progress(pool, plain(queue), console))
        if reload:
            stack.enter_context(Reloading(Path.cwd(), _changed(service, reload)))
        code = service.run(until_empty=until_empty)
    stats = pool.stats()
    logger.info(
        "pool %s ends: %s taken in %.1f s, %d stolen",
        pool.name,
        counted(stats.taken, "task"),
        time.monotonic() - began,
        stats.stolen,
    )
    if service.wants_restart:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
    if code:
        # Threads that could not be stopped must not keep the process alive.
        logging.shutdown()
        os._exit(code)


def _recruiter(where: str) -> Recruiter:
    found = imported(where, "MODULE:RECRUITER, like app:recruiter")
    if not isinstance(found, Recruiter):
        raise BadInput(f"{where} is a {type(found).__name__}, not a Recruiter")
    return found


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
        raise BadInput(f"no worker of {where} is alive in {queue.name}/{queue.run}")
    click.echo(f"alive: {', '.join(alive)}")


def _changed(service: Service, module: str) -> Callable[[list[Path]], None]:
    def tell(files: list[Path]) -> None:
        names = ", ".join(path.name for path in files)
        problem = _problem_of(module)
        if problem is None:
            logger.info("changed: %s", names)
            service.reload()
        else:
            logger.error("changed: %s; the old code goes on: %s", names, problem)

    return tell


def _problem_of(module: str) -> str | None:
    """Tell why the code cannot be imported as it is now, from a process of its own."""
    code = f"import sys; sys.path.insert(0, ''); import {module}"
    ended = subprocess.run(  # noqa: S603 - the module that this worker runs
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if ended.returncode == 0:
        return None
    lines = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
    place = [line.strip() for line in lines if line.lstrip().startswith("File ")]
    return f"{lines[-1]} ({place[-1]})" if place else lines[-1]


def _range(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise BadInput(f"--autoscale is LEAST:MOST, like 2:32, not {text}")
    return int(match[1]), int(match[2])


def _set_up_logging(console: Console) -> None:
    """Log to stderr, unless the application has set up logging itself."""
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    if console.is_terminal:
        # It knows of the live line, and writes above it.
        handler = RichHandler(
            console=console,
            show_time=False,
            show_path=False,
            highlighter=NullHighlighter(),
        )
        form = "%(message)s"
    logging.basicConfig(level=logging.INFO, format=form, handlers=[handler])
