"""A pool of workers over a queue: threads, processes, or coroutines."""

from __future__ import annotations

import asyncio
import logging
import math
from threading import Lock
from types import TracebackType
from typing import Literal, get_args

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.client.queue import AsyncTaskQueue, TaskQueue
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.errors import ConfigurationError, PoolStopped
from workstealing.recruiting.recruiter import Recruiter
from workstealing.tasks.checking import checked_seconds, checked_whole
from workstealing.workers.autoscaling import Autoscaling, Scaler
from workstealing.workers.batching import LARGEST_BATCH
from workstealing.workers.lifecycle import STOP_SECONDS
from workstealing.workers.naming import default_pool, worker_name
from workstealing.workers.placing import place_of
from workstealing.workers.plain import plain
from workstealing.workers.processes import Children, StartMethod
from workstealing.workers.statistics import PoolStats
from workstealing.workers.teamwork import Teamwork

__all__ = ("Kind", "WorkerPool")

logger = logging.getLogger(__name__)

Kind = Literal["threads", "processes", "asyncio"]

_SCALE_SECONDS = 1.0


class WorkerPool:
    """Runs the tasks of a queue, several at a time.

    Args:
        queue: whose tasks.
        workers: how many run at a time.
        kind: `"threads"`: slots of one worker of this process; `"processes"`: a child
            process each; `"asyncio"`: coroutines of one event loop, with threads for
            `def` tasks.
        name: the first part of the names of its workers; one of its own unless given.
        batch: tasks that each takes at once, at most. With 1 a crash repeats only the
            task that ran.
        recruiter: side work for idle moments, besides the upkeep of the queue.
        max_tasks: a process is replaced after so many tasks.
        max_memory: a process is replaced when it holds more MiB than that.
        start_method: how processes are made.
        chance: where randomness comes from.
        clock: where time comes from.
    """

    def __init__(
        self,
        queue: TaskQueue | AsyncTaskQueue,
        workers: int = 4,
        kind: Kind = "threads",
        *,
        name: str | None = None,
        batch: int = 100,
        recruiter: Recruiter | None = None,
        max_tasks: int | None = None,
        max_memory: float | None = None,
        start_method: StartMethod = "spawn",
        chance: Chance = SYSTEM_CHANCE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        _check_kind(kind, max_tasks, max_memory, recruiter, start_method)
        self.name = name or default_pool()
        self.kind: Kind = kind
        worker_name(self.name, 0)
        self._queue = queue
        self._workers = checked_whole(workers, "workers", 1)
        self._batch = checked_whole(batch, "batch", 1, LARGEST_BATCH)
        self._recruiter = recruiter
        self._max_tasks = max_tasks
        self._max_memory = max_memory
        self._start_method: StartMethod = start_method
        self._chance = chance
        self._clock = clock
        self._mutex = Lock()
        self._engine: Teamwork | Children | None = None
        self._is_stopped = False
        self._scaler: Scaler | None = None
        self._scaled_at = 0.0

    def start(self, *, until_empty: bool = False) -> None:
        """Begin to work, in the background; a pool starts once."""
        self._start(until_empty, None)

    def scale(self, workers: int, *, hot: bool = False) -> None:
        """Have so many workers.

        Surplus ones end what they run, or are interrupted if *hot*; what is cut off is
        handed back.
        """
        number = checked_whole(workers, "workers", 1)
        if self._is_stopped:
            raise PoolStopped("the pool was stopped: make another")
        self._scale(number, hot=hot)

    def autoscale(
        self,
        least: int,
        most: int,
        *,
        backlog: int = 10,
        cooldown: float = 10.0,
    ) -> None:
        """Scale by itself from now on: a worker per *backlog* tasks that are due.

        It grows at once, and shrinks to what was enough all through a *cooldown*.
        """
        plan = Autoscaling(least, most, backlog, cooldown)
        self._scaler = Scaler(plan)
        self.scale(min(max(self._workers, least), most))

    def quiet(self) -> None:
        """Take no more, hand back what waits; what runs goes on. For good."""
        self._running().quiet()

    def reload(self) -> None:
        """Replace the processes one by one, so that they import the code anew."""
        engine = self._running()
        if not isinstance(engine, Children):
            raise ConfigurationError(
                f"a pool of {self.kind} cannot reload its code: start another process,"
                " or use kind='processes'"
            )
        if self._start_method != "spawn":
            raise ConfigurationError(
                f"processes made by {self._start_method!r} begin with code that was"
                " loaded before: start another pool, or use start_method='spawn'"
            )
        engine.reload()

    def stop(self, *, hot: bool = False, timeout: float = STOP_SECONDS) -> int:
        """Take no more, hand back what waits, let what runs end, and end.

        What still runs after *timeout* seconds, or at once if *hot*, is interrupted and
        handed back, without counting an attempt. Return how many tasks that were.
        """
        checked_seconds(timeout, "timeout", zero=True)
        with self._mutex:
            self._is_stopped = True
        return (
            0 if self._engine is None else self._engine.stop(hot=hot, timeout=timeout)
        )

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; tell whether it has."""
        return self._running().wait(timeout)

    def stats(self) -> PoolStats:
        """Return what was counted since it began."""
        return PoolStats() if self._engine is None else self._engine.stats()

    def __enter__(self) -> WorkerPool:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._tell_why(error)

    async def __aenter__(self) -> WorkerPool:
        """Start in the caller's event loop, if it is of kind asyncio."""
        is_asyncio = self.kind == "asyncio"
        self._start(False, asyncio.get_running_loop() if is_asyncio else None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)
        self._tell_why(error)

    def _tell_why(self, error: BaseException | None) -> None:
        """Raise what ended the pool before its time, unless something else is."""
        engine = self._engine
        if error is None and engine is not None and engine.error is not None:
            raise engine.error

    def _start(self, until_empty: bool, loop: asyncio.AbstractEventLoop | None) -> None:
        with self._mutex:
            if self._engine is not None or self._is_stopped:
                raise PoolStopped("a pool starts once: make another")
            self._engine = self._new_engine(loop)
        self._engine.start(self._workers, until_empty=until_empty)

    def _new_engine(
        self, loop: asyncio.AbstractEventLoop | None
    ) -> Teamwork | Children:
        queue = plain(self._queue)
        if self.kind == "processes":
            return Children(
                queue,
                place_of(self._queue),
                self.name,
                batch=self._batch,
                max_tasks=self._max_tasks,
                max_memory=self._max_memory,
                start_method=self._start_method,
                tick=self._tick,
            )
        return Teamwork(
            queue,
            worker_name(self.name, 0),
            is_asyncio=self.kind == "asyncio",
            batch=self._batch,
            idle=self._use_idle_moment,
            tick=self._tick,
            chance=self._chance,
            clock=self._clock,
            loop=loop,
        )

    def _running(self) -> Teamwork | Children:
        if self._engine is None:
            raise PoolStopped("the pool was not started: call start()")
        return self._engine

    def _tick(self) -> None:
        now = self._clock.monotonic()
        if self._scaler is None or now - self._scaled_at < _SCALE_SECONDS:
            return
        self._scaled_at = now
        seen = self.stats()
        workers = self._scaler.decide(now, self._workers, seen.due)
        if workers != self._workers and not self._is_stopped:
            logger.info(
                "pool %s scales from %d to %d", self.name, self._workers, workers
            )
            self._scale(workers, hot=False)

    def _scale(self, workers: int, *, hot: bool) -> None:
        self._workers = workers
        if self._engine is not None:
            self._engine.scale(workers, hot=hot)

    def _use_idle_moment(self) -> None:
        if self._recruiter is not None:
            self._recruiter.enlist()


def _check_kind(
    kind: str,
    max_tasks: int | None,
    max_memory: float | None,
    recruiter: Recruiter | None,
    start_method: str,
) -> None:
    if kind not in get_args(Kind):
        known = ", ".join(map(repr, get_args(Kind)))
        raise ConfigurationError(f"kind is one of {known}, not {kind!r}")
    if kind == "processes":
        if recruiter is not None:
            raise ConfigurationError(
                "a recruiter stays in this process, where a pool of processes has no"
                " idle moments: install its jobs where the queue is defined"
            )
    elif max_tasks is not None or max_memory is not None:
        raise ConfigurationError(
            f"only processes are replaced: max_tasks and max_memory mean nothing to"
            f" {kind}"
        )
    if max_tasks is not None:
        checked_whole(max_tasks, "max_tasks", 1)
    is_number = isinstance(max_memory, int | float) and math.isfinite(max_memory)
    if max_memory is not None and not (is_number and max_memory > 0):
        raise ConfigurationError(f"max_memory is above 0 MiB, unlike {max_memory!r}")
    if start_method not in get_args(StartMethod):
        known = ", ".join(map(repr, get_args(StartMethod)))
        raise ConfigurationError(
            f"start_method is one of {known}, not {start_method!r}"
        )
