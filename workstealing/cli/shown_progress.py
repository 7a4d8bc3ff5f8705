"""Shows how far a task is while a command waits for it, on standard error.

On a terminal there is one line, which changes and disappears at the end; elsewhere
there is a line for each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import click
from rich.live import Live
from rich.text import Text

from workstealing._printing import on_one_line
from workstealing.cli.consoles import can_be_redrawn, open_console
from workstealing.cli.top_views import progress_bar
from workstealing.client.event_watch import EventWatch
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.errors import WorkStealingError
from workstealing.tasks.context import Progress

__all__ = ("shown_progress",)

_LAST_LOOK_SECONDS = 2.0


@contextmanager
def shown_progress(queue: TaskQueue, task_id: str) -> Iterator[None]:
    """Show how far a task is while the block runs.

    A thread reads the progress, so that the caller can listen for the result and gets
    it even if the queue does not keep it.
    """
    console = open_console(err=True)
    if not can_be_redrawn(console):
        with _watched(queue, task_id, _print_line):
            yield
        return
    live = Live(console=console, auto_refresh=False, transient=True)

    def redraw(progress: Progress) -> None:
        words = f"{progress_bar(progress)}  {on_one_line(str(progress))}"
        live.update(Text(words), refresh=True)

    with live, _watched(queue, task_id, redraw):
        yield


@contextmanager
def _watched(
    queue: TaskQueue, task_id: str, show: Callable[[Progress], None]
) -> Iterator[None]:
    is_over = Event()

    def look() -> None:
        parts = internals_of(queue)
        watch = EventWatch(parts, task_id, None)
        while not watch.is_over and not is_over.is_set():
            for event in parts.driver.run(watch.look()):
                if isinstance(event, Progress):
                    show(event)

    def look_if_possible() -> None:
        try:
            look()
        except WorkStealingError:
            # The caller, which waits for the result, gets an error of its own.
            return

    thread = Thread(target=look_if_possible, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(_LAST_LOOK_SECONDS)


def _print_line(progress: Progress) -> None:
    click.echo(on_one_line(str(progress)), err=True)
