"""What a worker process prints to stderr: log lines, and a progress line below them.

A line is logged for each finished task; `--quiet` leaves it out. On a terminal the
progress line is redrawn every second and log lines are printed above it; otherwise the
progress is logged once a minute.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

import click

from workstealing._printing import escaping_logger
from workstealing.cli.options import BadInput
from workstealing.errors import RedisError
from workstealing.queue.inspection_calls import Counts

if TYPE_CHECKING:
    from workstealing.workers.worker_pool import WorkerPool

__all__ = ("ProgressLine", "is_terminal", "log_options", "log_to_stderr")

logger = escaping_logger(__name__)

_DRAW_SECONDS = 1.0
_LOG_SECONDS = 60.0
_CLEAR_LINE = "\r\x1b[K"


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--quiet` and `--verbose`, and pass it the logging *level*."""

    @functools.wraps(command)
    def with_level(*args: Any, quiet: bool, verbose: bool, **options: Any) -> None:
        if quiet and verbose:
            raise BadInput("give --quiet or --verbose, not both")
        level = logging.DEBUG if verbose else logging.INFO
        command(*args, level=logging.WARNING if quiet else level, **options)

    quiet = click.option(
        "--quiet",
        is_flag=True,
        help="Log warnings and errors only, not a line for each finished task.",
    )
    verbose = click.option("-v", "--verbose", is_flag=True, help="Log more.")
    return quiet(verbose(with_level))


def log_to_stderr(level: int, line: ProgressLine | None) -> None:
    """Log to stderr if the application has not set up logging.

    In both cases, this library logs nothing below *level*.
    """
    logging.getLogger("workstealing").setLevel(level)
    if logging.getLogger().handlers:
        return
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    form = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    if line is not None:
        handler = _LinesAbove(line)
        form = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
    handler.setFormatter(form)
    logging.basicConfig(level=level, handlers=[handler])


def is_terminal() -> bool:
    """Return whether stderr is a terminal that can redraw a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class ProgressLine:
    """Shows the progress of a pool, from its own thread, while it is entered."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._queues = [queue.sync() for queue in pool.queues]
        self._is_live = is_terminal()
        self._mutex = Lock()
        self._shown = ""
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="progress", daemon=True)
        self._counted = (time.monotonic(), 0)

    def __enter__(self) -> ProgressLine:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def print_above(self, text: str) -> None:
        """Print a line above the progress line."""
        with self._mutex:
            self._write(f"{_CLEAR_LINE}{text}\n{self._shown}")

    def _run(self) -> None:
        while not self._stopping.wait(_DRAW_SECONDS if self._is_live else _LOG_SECONDS):
            text = self._text()
            if self._is_live:
                self._draw(text)
            else:
                logger.info(text)
        if self._is_live:
            self._draw("")

    def _draw(self, text: str) -> None:
        columns = shutil.get_terminal_size().columns
        # The cursor is left at the start: what other processes print overwrites it.
        with self._mutex:
            self._shown = f"{text[: columns - 1]}\r" if text else ""
            self._write(f"{_CLEAR_LINE}{self._shown}")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def _text(self) -> str:
        now, stats = time.monotonic(), self._pool.stats()
        then, before = self._counted
        self._counted = now, stats.taken
        rate = f"{(stats.taken - before) / max(0.001, now - then):,.1f} tasks/s"
        try:
            seen = [queue.counts() for queue in self._queues]
        except RedisError:
            return f"{self._pool.name}: {rate}, Redis is unreachable"
        reassigned = sum(one.stats.get("reassigned", 0) for one in seen)
        return (
            f"{self._pool.name}: {rate}, {sum(map(_waiting, seen)):,} waiting,"
            f" {stats.running:,} of {stats.workers:,} running,"
            f" {stats.stolen:,} stolen, {reassigned:,} reassigned"
        )


def _waiting(seen: Counts) -> int:
    picked_up = seen.assigned - sum(seen.loads.values())
    return max(0, seen.unfinished - seen.delayed - picked_up)


class _LinesAbove(logging.Handler):
    """Prints records above a progress line."""

    def __init__(self, line: ProgressLine) -> None:
        super().__init__()
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._line.print_above(self.format(record))
        except Exception:  # noqa: BLE001 - like every handler
            self.handleError(record)
