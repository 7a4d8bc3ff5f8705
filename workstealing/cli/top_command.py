"""`workstealing top`: watches a queue live; keys switch its views and end it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.segment import Segment, Segments
from rich.text import Text

from workstealing.cli.colours import HEADING, QUIET
from workstealing.cli.consoles import can_be_redrawn, open_console
from workstealing.cli.keyboard import Keyboard
from workstealing.cli.options import (
    chosen_queue,
    clear_errors,
    no_more_words,
    queue_options,
)
from workstealing.cli.tables import print_page, rendered
from workstealing.cli.top_views import VIEWS, TopFrame, View, top_page, whole_page
from workstealing.client.task_queue import TaskQueue
from workstealing.errors import RedisError
from workstealing.inspecting import Inspector, RateMeter

__all__ = ("TopReader", "top_command")

# Workers add to the history every five seconds.
_HISTORY_SECONDS = 5.0
_MOST_RUNNING = 100
_TICK_SECONDS = 0.2


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
    """Watch a queue: counts, rates, tasks, workers, upkeep. Press q to quit.

    The keys 1 to 5 or Tab switch between the queue with its last hour, the tasks that
    run, task names with rates and durations, workers, and upkeep; arrows scroll.

    If Redis is unreachable, it shows the last numbers and keeps trying. With --once it
    reads the queue twice, one interval apart, to compute rates. In a pipe it prints
    frame after frame, with all views in each.
    """
    queue, words = chosen_queue(**where)
    no_more_words(words)
    console = open_console()
    try:
        if once:
            _print_once(queue, console, interval)
        elif can_be_redrawn(console):
            _Screen(queue, console, interval).watch()
        else:
            _print_frames(queue, console, interval)
    except KeyboardInterrupt:
        return


def _print_once(queue: TaskQueue, console: Console, interval: float) -> None:
    reader = TopReader(queue)
    reader.read()
    time.sleep(interval)
    print_page(whole_page(reader.read()), console)


def _print_frames(queue: TaskQueue, console: Console, interval: float) -> None:
    reader = TopReader(queue)
    while True:
        print_page([*whole_page(reader.last_or_next()), ""], console)
        time.sleep(interval)


class TopReader:
    """Reads frames; while Redis is unreachable, the last one with the problem."""

    def __init__(self, queue: TaskQueue) -> None:
        self._inspector = Inspector(queue)
        self._meter = RateMeter()
        self._frame = TopFrame(f"{queue.name}/{queue.run}")
        self._seen_at = time.monotonic()
        self._history_at = -_HISTORY_SECONDS

    def last_or_next(self) -> TopFrame:
        """Read a frame; while Redis is unreachable, return the last one and say so."""
        try:
            return self.read()
        except RedisError as error:
            silent_ms = round((time.monotonic() - self._seen_at) * 1000)
            problem = str(error)
            self._frame = replace(self._frame, problem=problem, silent_ms=silent_ms)
            return self._frame

    def read(self) -> TopFrame:
        """Read a frame."""
        stat = self._inspector.stat()
        history, now = self._frame.history, time.monotonic()
        if history is None or now - self._history_at >= _HISTORY_SECONDS:
            history = self._inspector.history(stat.now_ms)
            self._history_at = now
        running = self._inspector.ls("running", _MOST_RUNNING) if stat.running else ()
        rates = self._meter.note(stat)
        self._seen_at = time.monotonic()
        self._frame = TopFrame(self._frame.name, stat, rates, history, running)
        return self._frame


class _Screen:
    """A terminal that shows one view at a time, and what the keyboard chooses."""

    def __init__(self, queue: TaskQueue, console: Console, interval: float) -> None:
        self._reader = TopReader(queue)
        self._console = console
        self._interval = interval
        self._view = VIEWS[0]
        self._scrolled = 0

    def watch(self) -> None:
        """Show frame after frame until the key q."""
        live = Live(console=self._console, auto_refresh=False, screen=True)
        with Keyboard() as keyboard, live:
            while True:
                frame = self._reader.last_or_next()
                due = time.monotonic() + self._interval
                # A terminal may be resized while nothing is read.
                while (left := due - time.monotonic()) > 0:
                    live.update(self._drawn(frame), refresh=True)
                    for key in keyboard.pressed(min(left, _TICK_SECONDS)):
                        if key == "q":
                            return
                        self._choose(key)

    def _choose(self, key: str) -> None:
        at = VIEWS.index(self._view)
        by_key = {view.key: view for view in VIEWS}
        chosen = by_key.get(key, self._view)
        if key == "\t":
            chosen = VIEWS[(at + 1) % len(VIEWS)]
        if chosen is not self._view:
            self._view, self._scrolled = chosen, 0
        step = {"up": -1, "k": -1, "down": 1, "j": 1}.get(key, 0)
        self._scrolled = max(0, self._scrolled + step)

    def _drawn(self, frame: TopFrame) -> Segments:
        """Lay out a frame with as many lines as the terminal has."""
        console = self._console
        options = console.options
        width, height = options.max_width, options.size.height
        page = rendered(top_page(frame, self._view), width)
        lines = console.render_lines(page, options.update(height=None), pad=False)
        keys = console.render_lines(_keys(self._view), options, pad=False)
        room = max(1, height - len(keys))
        hidden = len(lines) - room
        if hidden > 0:
            self._scrolled = min(self._scrolled, hidden + 1)
            lines = lines[self._scrolled : self._scrolled + room - 1]
            words = f"↑ {self._scrolled} ↓ {hidden + 1 - self._scrolled} more lines"
            lines.append([Segment(words)])
        else:
            self._scrolled = 0
            lines += [[]] * -hidden
        drawn = [*lines, *keys]
        ended = ([*line, Segment.line()] for line in drawn[:-1])
        return Segments([one for line in ended for one in line] + list(drawn[-1]))


def _keys(shown: View) -> Text:
    """Name the keys; the view that is shown stands out."""
    words = Text(overflow="fold")
    for view in VIEWS:
        style = f"{HEADING} reverse" if view is shown else QUIET
        words.append(f"{view.key} {view.title}", style=style)
        words.append("  ")
    words.append("q quit", style=QUIET)
    return words
