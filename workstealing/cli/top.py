"""`workstealing top`: how a queue goes, as it goes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import click
from rich.console import Console
from rich.live import Live

from workstealing.cli.choosing import chosen, nothing_more, queue_options
from workstealing.cli.keyboard import Keyboard
from workstealing.cli.refusing import refusing
from workstealing.cli.sheets import drawn, show
from workstealing.cli.top_page import View, page
from workstealing.client.queue import TaskQueue
from workstealing.errors import RedisError
from workstealing.inspecting.inspector import Inspector
from workstealing.inspecting.rates import RateMeter

__all__ = ("top_command",)

# Lines that are not about workers.
_OTHER_LINES = 18
_FEWEST_WORKERS = 3
_MOST_WORKERS = 1000


@click.command("top")
@queue_options()
@click.option("--once", is_flag=True, help="Print one frame and end, for scripts.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600.0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks.",
)
@refusing()
def top_command(once: bool, interval: float, **where: Any) -> None:
    """Watch a queue: counts, rates, workers, upkeep. Press q to end it.

    While the server is not reached it says so, and goes on. With --once it looks twice,
    one interval apart, for the rates; in a pipe it prints a frame per look.
    """
    queue, words = chosen(**where)
    nothing_more(words)
    console = Console(highlight=False)
    try:
        if once:
            _show_once(queue, console, interval)
        elif console.is_terminal:
            _follow(queue, console, interval)
        else:
            _print(queue, console, interval)
    except KeyboardInterrupt:
        return


def _show_once(queue: TaskQueue, console: Console, interval: float) -> None:
    meter, inspector = RateMeter(), Inspector(queue)
    meter.note(inspector.stat())
    time.sleep(interval)
    seen = inspector.stat()
    view = View(f"{queue.name}/{queue.run}", seen, meter.note(seen))
    show(page(view, _MOST_WORKERS), console)


def _follow(queue: TaskQueue, console: Console, interval: float) -> None:
    looks = _Looks(queue)
    live = Live(console=console, auto_refresh=False, screen=True)
    with Keyboard() as keyboard, live:
        while True:
            view = looks.look()
            workers = max(_FEWEST_WORKERS, console.height - _OTHER_LINES)
            live.update(drawn(page(view, workers), console.width), refresh=True)
            if keyboard.heard("q", within=interval):
                return


def _print(queue: TaskQueue, console: Console, interval: float) -> None:
    looks = _Looks(queue)
    while True:
        show([*page(looks.look(), _MOST_WORKERS), ""], console)
        time.sleep(interval)


class _Looks:
    """One look after the other; a failing one leaves the last good one standing."""

    def __init__(self, queue: TaskQueue) -> None:
        self._queue = queue
        self._meter = RateMeter()
        self._view = View(f"{queue.name}/{queue.run}")
        self._seen_at = time.monotonic()

    def look(self) -> View:
        try:
            seen = Inspector(self._queue).stat()
        except RedisError as error:
            silent_ms = round((time.monotonic() - self._seen_at) * 1000)
            problem = str(error)
            self._view = replace(self._view, problem=problem, silent_ms=silent_ms)
        else:
            self._seen_at = time.monotonic()
            self._view = View(self._view.name, seen, self._meter.note(seen))
        return self._view
