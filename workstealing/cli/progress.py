"""How a worker is getting on: a live line on a terminal, else a log line a minute."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from threading import Event, Thread
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from workstealing.client.queue import TaskQueue
from workstealing.errors import RedisError
from workstealing.workers.worker_pool import WorkerPool

__all__ = ("Progress",)

logger = logging.getLogger(__name__)

_LIVE_SECONDS = 1.0
_LOG_SECONDS = 60.0


class Progress:
    """Tells from a thread of its own, while it is entered."""

    def __init__(self, pool: WorkerPool, queue: TaskQueue, console: Console) -> None:
        self._pool = pool
        self._queue = queue
        self._console = console
        self._ending = Event()
        self._thread = Thread(target=self._tell, name="progress", daemon=True)
        self._seen = (time.monotonic(), 0)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()

    def _tell(self) -> None:
        is_live = self._console.is_terminal
        with ExitStack() as stack:
            live = None
            if is_live:
                live = Live(
                    console=self._console,
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                stack.enter_context(live)
            while not self._ending.wait(_LIVE_SECONDS if is_live else _LOG_SECONDS):
                line = self._line()
                if live is not None:
                    live.update(Text(line, no_wrap=True), refresh=True)
                else:
                    logger.info(line)

    def _line(self) -> str:
        now, stats = time.monotonic(), self._pool.stats()
        then, before = self._seen
        self._seen = now, stats.taken
        rate = f"{(stats.taken - before) / max(0.001, now - then):,.1f} tasks/s"
        try:
            seen = self._queue.counts()
        except RedisError:
            return f"{self._pool.name}: {rate}, no Redis"
        held = seen.assigned - sum(seen.loads.values())
        waiting = seen.unfinished - seen.delayed - held
        return (
            f"{self._pool.name}: {rate}, {max(0, waiting):,} waiting,"
            f" {stats.running:,} of {stats.workers:,} running,"
            f" {stats.stolen:,} stolen, {seen.stats.get('reassigned', 0):,} reassigned"
        )
