"""`workstealing worker`: runs the tasks of a queue until it is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time

import click
from rich.console import Console
from rich.highlighter import NullHighlighter
from rich.logging import RichHandler

from workstealing.cli.choosing import imported_queue
from workstealing.cli.progress import Progress
from workstealing.cli.refusing import BadInput, refusing
from workstealing.cli.signals import SignalWatch
from workstealing.client.queue import TaskQueue
from workstealing.inspecting.wording import counted
from workstealing.workers.worker import Worker

__all__ = ("run_worker", "worker_command")

logger = logging.getLogger(__name__)


@click.command("worker")
@click.argument("where", metavar="APP:QUEUE")
@click.option("--until-empty", is_flag=True, help="End when nothing is left to do.")
@click.option("--pool", help="The first part of its name; one of its own unless given.")
@click.option(
    "--index", type=int, default=0, show_default=True, help="The second part."
)
@click.option(
    "--batch",
    type=int,
    default=100,
    show_default=True,
    help="Tasks to take at once, at most. With 1 a crash repeats only one.",
)
@refusing()
def worker_command(
    where: str, until_empty: bool, pool: str | None, index: int, batch: int
) -> None:
    """Run the tasks of a queue.

    APP is a module, looked for in the current folder first; QUEUE is a TaskQueue in it.

    SIGTERM or SIGINT: it finishes what runs, hands back what waits, and exits with 0. A
    second one ends it at once; what it held is given to others when its lease is over.
    """
    queue = imported_queue(where)
    worker = Worker(queue, pool=pool, index=index, batch=batch)
    run_worker(queue, worker, until_empty)


def run_worker(queue: TaskQueue, worker: Worker, until_empty: bool) -> None:
    """Let a worker run in this process, and tell how it is getting on."""
    abilities = queue.registry.abilities()
    if not abilities:
        raise BadInput(
            f"the queue {queue.name} has no tasks here: import the modules that define"
            " them where the queue is"
        )
    console = Console(stderr=True, highlight=False)
    _set_up_logging(console)

    def first(number: signal.Signals) -> None:
        logger.info("%s: finishing what runs; once more ends it at once", number.name)
        worker.stop()

    def last(number: signal.Signals) -> None:
        console.show_cursor(True)
        logger.warning("%s again: ended at once", number.name)

    known = ", ".join(abilities[:5]) + (", …" if len(abilities) > 5 else "")
    logger.info(
        "worker %s of %s/%s starts as process %d; it can run %s",
        worker.name,
        queue.name,
        queue.run,
        os.getpid(),
        known,
    )
    began = time.monotonic()
    with SignalWatch(first, last), Progress(worker, queue, console):
        worker.run(until_empty=until_empty)
    logger.info(
        "worker %s ends: %s taken in %.1f s, %d stolen",
        worker.name,
        counted(worker.stats.taken, "task"),
        time.monotonic() - began,
        worker.stats.stolen,
    )


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
