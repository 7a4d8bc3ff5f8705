"""`workstealing top`: watches a queue, or side work; keys switch views and end it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import click
from rich.console import Console
from rich.live import Live
from rich.segment import Segment, Segments
from rich.text import Text

from workstealing.cli.colours import HEADING, QUIET
from workstealing.cli.consoles import can_be_redrawn, open_console
from workstealing.cli.keyboard import Keyboard
from workstealing.cli.live_frames import FrameReader, LiveFrame
from workstealing.cli.options import (
    BadInput,
    chosen_queue,
    clear_errors,
    no_more_words,
    queue_options,
)
from workstealing.cli.side_work_top import (
    SIDE_WORK_TITLES,
    SideWorkFrame,
    side_work_parts,
)
from workstealing.cli.tables import PagePart, print_page, rendered
from workstealing.cli.top_views import TITLES, TopFrame, top_parts
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.connect import connect
from workstealing.inspecting import Inspector, QueueHistory, RateMeter, TaskRow
from workstealing.jobs.side_work_ledger import SideWorkLedger

__all__ = ("top_command",)

# Workers add to the history every five seconds.
_HISTORY_SECONDS = 5.0
_MOST_RUNNING = 100
_TICK_SECONDS = 0.2

F = TypeVar("F", bound=LiveFrame)


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
@click.option(
    "--side-work",
    is_flag=True,
    help="Watch the side work of the whole fleet instead; needs no queue.",
)
@clear_errors()
def top_command(once: bool, interval: float, side_work: bool, **where: Any) -> None:
    """Watch a queue: counts, rates, tasks, workers, upkeep. Press q to quit.

    The keys 1 to 5 or Tab switch between the queue with its last hour, the tasks that
    run, task names with rates and durations, workers, and upkeep; arrows scroll.

    If Redis is unreachable, it shows the last numbers and keeps trying. With --once it
    reads the queue twice, one interval apart, to compute rates, and exits with 1 if
    there is no such queue. In a pipe it prints frame after frame, with all views in
    each.

    With --side-work it shows what recruiters have published in the last hour: per job
    how often it was drawn and what came of it, its share of time, whether it is
    starving or does nothing, and the pace that would be planned. The keys 1 to 3 switch
    between jobs, hosts, and jobs by host.
    """
    try:
        if side_work:
            _show(_side_work(**where), once, interval)
        else:
            queue, words = chosen_queue(**where)
            no_more_words(words)
            _show(_queue(queue, interval), once, interval)
    except KeyboardInterrupt:
        return


@dataclass(frozen=True, slots=True)
class _WatchedPage(Generic[F]):
    """What is watched: how to read a frame, and how its views are laid out."""

    titles: Mapping[str, str]
    """Of the views, by their keys."""
    read: Callable[[], F]
    last_or_next: Callable[[], F]
    lay_out: Callable[[F, Sequence[str]], list[PagePart]]


def _queue(queue: TaskQueue, interval: float) -> _WatchedPage[TopFrame]:
    reader = _TopReader(queue)

    def read_twice() -> TopFrame:
        reader.read()
        time.sleep(interval)
        return reader.read()

    live = FrameReader(reader.read, TopFrame(reader.name))
    return _WatchedPage(TITLES, read_twice, live.last_or_next, top_parts)


def _side_work(
    words: tuple[str, ...], name: str | None, run: str | None, url: str | None
) -> _WatchedPage[SideWorkFrame]:
    if words or name is not None or run is not None:
        raise BadInput("--side-work is about no queue: give only --redis URL with it")
    # The timeouts of side work are for hosts, and shorter than a person minds.
    ledger = SideWorkLedger(connect(url, profile="tasks"))

    def read() -> SideWorkFrame:
        return SideWorkFrame(ledger.target, ledger.read())

    live = FrameReader(read, SideWorkFrame(ledger.target))
    return _WatchedPage(SIDE_WORK_TITLES, read, live.last_or_next, side_work_parts)


def _show(watched: _WatchedPage[F], once: bool, interval: float) -> None:
    console = open_console()
    keys = tuple(watched.titles)
    if once:
        frame = watched.read()
        print_page(watched.lay_out(frame, keys), console)
        if not frame.is_known:
            raise SystemExit(1)
    elif can_be_redrawn(console):
        _Screen(watched, console, interval).watch()
    else:
        while True:
            frame = watched.last_or_next()
            print_page([*watched.lay_out(frame, keys), ""], console)
            time.sleep(interval)


class _TopReader:
    """Reads frames of a queue."""

    def __init__(self, queue: TaskQueue) -> None:
        self.name = f"{queue.name}/{queue.run}"
        self._inspector = Inspector(queue)
        self._meter = RateMeter()
        self._history: QueueHistory | None = None
        self._history_at = -_HISTORY_SECONDS

    def read(self) -> TopFrame:
        """Read a frame."""
        stat = self._inspector.stat()
        now = time.monotonic()
        if self._history is None or now - self._history_at >= _HISTORY_SECONDS:
            self._history = self._inspector.history(stat.now_ms)
            self._history_at = now
        running: tuple[TaskRow, ...] = ()
        # A list is refused while the node of a shard is away.
        if stat.running and not stat.unreachable:
            running = self._inspector.ls("running", _MOST_RUNNING)
        rates = self._meter.note(stat)
        return TopFrame(self.name, stat, rates, self._history, running)


class _Screen(Generic[F]):
    """A terminal that shows one view at a time, and what the keyboard chooses."""

    def __init__(
        self, watched: _WatchedPage[F], console: Console, interval: float
    ) -> None:
        self._watched = watched
        self._console = console
        self._interval = interval
        self._view = next(iter(watched.titles))
        self._scrolled = 0

    def watch(self) -> None:
        """Show frame after frame until the key q."""
        live = Live(console=self._console, auto_refresh=False, screen=True)
        with Keyboard() as keyboard, live:
            while True:
                frame = self._watched.last_or_next()
                due = time.monotonic() + self._interval
                # A terminal may be resized while nothing is read.
                while (left := due - time.monotonic()) > 0:
                    live.update(self._drawn(frame), refresh=True)
                    for key in keyboard.pressed(min(left, _TICK_SECONDS)):
                        if key == "q":
                            return
                        self._choose(key)

    def _choose(self, key: str) -> None:
        keys = tuple(self._watched.titles)
        chosen = key if key in keys else self._view
        if key == "\t":
            chosen = keys[(keys.index(self._view) + 1) % len(keys)]
        if chosen != self._view:
            self._view, self._scrolled = chosen, 0
        step = {"up": -1, "k": -1, "down": 1, "j": 1}.get(key, 0)
        self._scrolled = max(0, self._scrolled + step)

    def _drawn(self, frame: F) -> Segments:
        """Lay out a frame with as many lines as the terminal has."""
        console = self._console
        options = console.options
        width, height = options.max_width, options.size.height
        page = rendered(self._watched.lay_out(frame, (self._view,)), width)
        lines = console.render_lines(page, options.update(height=None), pad=False)
        named = _keys(self._watched.titles, self._view)
        keys = console.render_lines(named, options, pad=False)
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


def _keys(titles: Mapping[str, str], shown: str) -> Text:
    """Name the keys; the view that is shown stands out."""
    words = Text(overflow="fold")
    for key, title in titles.items():
        style = f"{HEADING} reverse" if key == shown else QUIET
        words.append(f"{key} {title}", style=style)
        words.append("  ")
    words.append("q quit", style=QUIET)
    return words
