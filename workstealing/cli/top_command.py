"""`workstealing top`: watches a queue live; a key press ends it."""

from __future__ import annotations

import os
import select
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import click
from rich.console import Console
from rich.live import Live

from workstealing.cli.options import (
    chosen_queue,
    clear_errors,
    no_more_words,
    queue_options,
)
from workstealing.cli.tables import (
    PagePart,
    TextTable,
    headline,
    places_table,
    print_page,
    rendered,
    upkeep_line,
    workers_table,
)
from workstealing.client.task_queue import TaskQueue
from workstealing.errors import RedisError
from workstealing.inspecting import Inspector, QueueStat, RateMeter, Rates
from workstealing.inspecting.formatting import duration_ms, one_decimal
from workstealing.inspecting.stat_rows import oldest_age

__all__ = ("TopFrame", "top_command", "top_page")

# Lines of a frame that are not about workers.
_OTHER_LINES = 18
_FEWEST_WORKERS = 3
_MOST_WORKERS = 1000
_NONE = "-"


@dataclass(frozen=True, slots=True)
class TopFrame:
    """What is known of a queue at one moment."""

    name: str
    """Queue and run."""
    stat: QueueStat | None = None
    """The last stat that was read; None until there is one."""
    rates: Rates | None = None
    problem: str = ""
    """Why the queue cannot be read now; empty if it can."""
    silent_ms: int = 0
    """How long it has been unreadable."""


@click.command("top")
@queue_options()
@click.option("--once", is_flag=True, help="Print one frame and exit, for scripts.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600.0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two frames.",
)
@clear_errors()
def top_command(once: bool, interval: float, **where: Any) -> None:
    """Watch a queue: counts, rates, workers, upkeep. Press q to quit.

    If Redis is unreachable, it shows the last numbers and keeps trying. With --once it
    reads the queue twice, one interval apart, to compute rates. In a pipe it prints
    frame after frame.
    """
    queue, words = chosen_queue(**where)
    no_more_words(words)
    console = Console(highlight=False)
    try:
        if once:
            _print_once(queue, console, interval)
        elif console.is_terminal:
            _watch(queue, console, interval)
        else:
            _print_frames(queue, console, interval)
    except KeyboardInterrupt:
        return


def _print_once(queue: TaskQueue, console: Console, interval: float) -> None:
    meter, inspector = RateMeter(), Inspector(queue)
    meter.note(inspector.stat())
    time.sleep(interval)
    stat = inspector.stat()
    frame = TopFrame(f"{queue.name}/{queue.run}", stat, meter.note(stat))
    print_page(top_page(frame, _MOST_WORKERS), console)


def _watch(queue: TaskQueue, console: Console, interval: float) -> None:
    frames = _Frames(queue)
    live = Live(console=console, auto_refresh=False, screen=True)
    with _Keyboard() as keyboard, live:
        while True:
            workers = max(_FEWEST_WORKERS, console.height - _OTHER_LINES)
            page = top_page(frames.next(), workers)
            live.update(rendered(page, console.width), refresh=True)
            if keyboard.wait_for("q", timeout=interval):
                return


def _print_frames(queue: TaskQueue, console: Console, interval: float) -> None:
    frames = _Frames(queue)
    while True:
        print_page([*top_page(frames.next(), _MOST_WORKERS), ""], console)
        time.sleep(interval)


class _Frames:
    """Makes frames; while Redis is unreachable, the last one with the problem."""

    def __init__(self, queue: TaskQueue) -> None:
        self._queue = queue
        self._meter = RateMeter()
        self._frame = TopFrame(f"{queue.name}/{queue.run}")
        self._seen_at = time.monotonic()

    def next(self) -> TopFrame:
        try:
            stat = Inspector(self._queue).stat()
        except RedisError as error:
            silent_ms = round((time.monotonic() - self._seen_at) * 1000)
            problem = str(error)
            self._frame = replace(self._frame, problem=problem, silent_ms=silent_ms)
        else:
            self._seen_at = time.monotonic()
            self._frame = TopFrame(self._frame.name, stat, self._meter.note(stat))
        return self._frame


def top_page(frame: TopFrame, workers: int) -> list[PagePart]:
    """Lay out one frame, with at most this many workers."""
    seen = frame.stat
    if seen is None:
        return [f"{frame.name}: {frame.problem}"]
    parts: list[PagePart] = [headline(seen)]
    if frame.problem:
        silent = duration_ms(frame.silent_ms)
        parts.append(
            f"REDIS UNREACHABLE for {silent}, last numbers below: {frame.problem}"
        )
    parts += (
        places_table(seen, oldest=oldest_age(seen) or _NONE),
        _rates_table(frame.rates),
        workers_table(seen, workers),
        upkeep_line(seen),
    )
    return parts


def _rates_table(rates: Rates | None) -> TextTable:
    titles = tuple(f"{name}/s" for name in Rates.__slots__)
    table = TextTable(titles, right=titles)
    table.add(
        *(
            _NONE if rates is None else one_decimal(getattr(rates, name))
            for name in Rates.__slots__
        )
    )
    return table


class _Keyboard:
    """Reads single keys while it is entered, if stdin is a terminal."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._before: list[Any] = []

    def __enter__(self) -> _Keyboard:
        if sys.platform != "win32" and sys.stdin.isatty():
            import termios
            import tty

            self._file = sys.stdin.fileno()
            self._before = termios.tcgetattr(self._file)
            tty.setcbreak(self._file)
        return self

    def __exit__(self, *_: object) -> None:
        if sys.platform != "win32" and self._file is not None:
            import termios

            termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def wait_for(self, key: str, timeout: float) -> bool:
        """Wait for a key; return False if it was not pressed in time."""
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            if self._file is None:
                time.sleep(left)
            elif select.select([self._file], [], [], left)[0]:
                pressed = os.read(self._file, 1024)
                if key.encode() in pressed:
                    return True
                if not pressed:
                    # The terminal is gone: no key will arrive.
                    self._file = None
        return False
