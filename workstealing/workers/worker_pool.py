"""A pool of workers over one or several queues: threads, processes, or coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Literal, get_args

from workstealing._checks import checked_number, checked_seconds, checked_whole
from workstealing._forking import reset_in_children
from workstealing._logs import BackgroundLogger
from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.errors import ConfigurationError, PoolStopped
from workstealing.pool.autoscale import Autoscale, BacklogScaler
from workstealing.recruiting.recruiter import Recruiter
from workstealing.tasks.runner import is_lack_of_threads
from workstealing.workers.async_slots import AsyncSlots
from workstealing.workers.batching import LARGEST_BATCH
from workstealing.workers.engine import check_threads
from workstealing.workers.identity import (
    STOP_SECONDS,
    UntilEmpty,
    checked_until_empty,
    default_pool,
    worker_name,
)
from workstealing.workers.loop_thread import LoopThread, cancel_tasks
from workstealing.workers.process_pool import ProcessPool, StartMethod
from workstealing.workers.queue_choice import AnyQueue, checked_choice
from workstealing.workers.slot_pool import SlotPool
from workstealing.workers.slots import out_of_threads
from workstealing.workers.thread_slots import ThreadSlots
from workstealing.workers.worker_stats import WorkerStats

__all__ = ("Kind", "WorkerPool")

logger = BackgroundLogger(__name__)

Kind = Literal["threads", "processes", "asyncio"]

_SCALE_SECONDS = 1.0


class WorkerPool:
    """Runs the tasks of a queue, or of several queues, several at a time.

    Args:
        queue: whose tasks; a list of queues shares the workers among them.
        workers: how many run at a time, in all.
        kind: `"threads"`: slots of one worker of this process; `"processes"`: a child
            process each; `"asyncio"`: coroutines of one event loop, with threads for
            `def` tasks.
        autoscale: adapt the number of workers to the backlog, and to how long tasks
            have waited; None leaves it as it is.
        name: the first part of the names of its workers; None: a unique one.
        batch: tasks that each takes at once, at most. With 1 a crash repeats only the
            task that ran.
        recruiter: side work for idle moments, besides the upkeep of the queue.
        max_tasks: a process is replaced after this many tasks.
        max_memory: a process is replaced when it holds more MiB than that.
        start_method: how processes are made.
        chance: where randomness comes from.
        clock: where time comes from.
        weights: with several queues: while all have tasks, they begin in proportion to
            these numbers. None: alike.
        strict: with several queues: tasks of a later one begin only while the earlier
            ones have none.
    """

    def __init__(
        self,
        queue: AnyQueue | Sequence[AnyQueue],
        workers: int = 4,
        kind: Kind = "threads",
        *,
        autoscale: Autoscale | None = None,
        name: str | None = None,
        batch: int = 100,
        recruiter: Recruiter | None = None,
        max_tasks: int | None = None,
        max_memory: float | None = None,
        start_method: StartMethod = "spawn",
        chance: Chance = SYSTEM_CHANCE,
        clock: Clock = SYSTEM_CLOCK,
        weights: Sequence[float] | None = None,
        strict: bool = False,
    ) -> None:
        _check_kind(kind, max_tasks, max_memory, recruiter, start_method)
        self.name = name or default_pool()
        self.kind: Kind = kind
        worker_name(self.name, 0)
        self._choice = checked_choice(queue, weights, strict=strict)
        self._workers = checked_whole(workers, "workers", 1)
        self._batch = checked_whole(batch, "batch", 1, LARGEST_BATCH)
        self._recruiter = recruiter
        self._max_tasks = max_tasks
        self._max_memory = max_memory
        self._start_method: StartMethod = start_method
        self._chance = chance
        self._clock = clock
        self._mutex = Lock()
        self._engine: SlotPool | ProcessPool | None = None
        self._parents_engine: SlotPool | ProcessPool | None = None
        self._is_stopped = False
        self._scaler: BacklogScaler | None = None
        self._scaled_at = 0.0
        self.autoscale = autoscale

    def start(self, *, until_empty: UntilEmpty = False) -> None:
        """Begin to work, in the background; a pool starts once.

        Args:
            until_empty: end when nothing can run now, whatever is due later; `"all"`
                waits for that, too.
        """
        self._start(until_empty, None)

    def scale(self, workers: int, *, hot: bool = False) -> None:
        """Resize the pool.

        Surplus workers finish their tasks, or are interrupted if *hot*; interrupted
        tasks are handed back.
        """
        number = checked_whole(workers, "workers", 1)
        if self._is_stopped:
            raise PoolStopped("the pool was stopped: create a new one")
        self._scale(number, hot=hot)

    @property
    def autoscale(self) -> Autoscale | None:
        """How the number of workers adapts; None leaves it as it is."""
        return None if self._scaler is None else self._scaler.rule

    @autoscale.setter
    def autoscale(self, rule: Autoscale | None) -> None:
        if rule is None:
            self._scaler = None
            return
        if not isinstance(rule, Autoscale):
            raise ConfigurationError(f"autoscale must be an Autoscale, not {rule!r}")
        self._scaler = BacklogScaler(rule)
        if not self._is_stopped:
            self._scale(min(max(self._workers, rule.least), rule.most), hot=False)

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """The queues that it works for, in their order."""
        return self._choice.queues

    @property
    def workers(self) -> int:
        """How many workers it has, or would have if it ran."""
        return self._workers

    def quiet(self) -> None:
        """Take no more tasks, hand back waiting ones; running ones go on. Final.

        Processes hear of it a moment later, and may begin a task until then.
        """
        self._running().quiet()

    def reload(self) -> None:
        """Replace the processes one by one, so that they import the code again."""
        engine = self._running()
        if not isinstance(engine, ProcessPool):
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
        """Take no more tasks, hand back waiting ones, finish running ones, and end.

        Tasks that still run after *timeout* seconds, or at once if *hot*, are
        interrupted and handed back without counting an attempt. Return their number.
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

    def stats(self) -> WorkerStats:
        """Return what was counted since it began."""
        return WorkerStats() if self._engine is None else self._engine.stats()

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
        loop = asyncio.get_running_loop() if self.kind == "asyncio" else None
        if any(queue.registry.uses_resources for queue in self.queues):
            # They may be opened in this very event loop, which must run meanwhile.
            await asyncio.to_thread(self._start, False, loop)
        else:
            self._start(False, loop)
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
        """Raise the error that ended the pool, unless another one is propagating."""
        engine = self._engine
        if error is None and engine is not None and engine.error is not None:
            raise engine.error

    def _start(
        self, until_empty: UntilEmpty, loop: asyncio.AbstractEventLoop | None
    ) -> None:
        checked_until_empty(until_empty)
        check_threads()
        try:
            with self._mutex:
                if self._engine is not None or self._is_stopped:
                    raise PoolStopped(
                        "a pool can be started only once: create a new one"
                    )
                self._engine = self._new_engine(until_empty, loop)
                reset_in_children(self, WorkerPool._leave_to_parent)
            self._engine.start(self._workers)
        except RuntimeError as error:
            if is_lack_of_threads(error):
                raise out_of_threads(f"pool {self.name}") from error
            raise

    def _new_engine(
        self, until_empty: UntilEmpty, loop: asyncio.AbstractEventLoop | None
    ) -> SlotPool | ProcessPool:
        queues = [queue.sync() for queue in self.queues]
        if self.kind == "processes":
            return ProcessPool(
                queues,
                self._choice.located(),
                self.name,
                batch=self._batch,
                until_empty=until_empty,
                max_tasks=self._max_tasks,
                max_memory=self._max_memory,
                start_method=self._start_method,
                tick=self._tick,
            )
        name, shared, close = worker_name(self.name, 0), None, None
        if self._choice.are_several:
            shared = self._choice.shared_slots(self._clock)
            if self.kind == "asyncio" and loop is None:
                thread = LoopThread(name)
                loop, close = thread.loop, lambda: thread.close(cancel_tasks())
        return SlotPool(
            queues,
            name,
            partial(AsyncSlots, loop=loop) if self.kind == "asyncio" else ThreadSlots,
            batch=self._batch,
            until_empty=until_empty,
            recruiter=self._recruiter,
            tick=self._tick,
            chance=self._chance,
            clock=self._clock,
            shared=shared,
            close=close,
            overlaps=self.kind == "threads",
        )

    def _leave_to_parent(self) -> None:
        """In a forked child, be a stopped pool: the workers are the parent's."""
        # Kept, since an event loop that is collected here takes the parent's apart.
        self._parents_engine, self._engine = self._engine, None
        self._is_stopped = True
        self._mutex = Lock()

    def _running(self) -> SlotPool | ProcessPool:
        if self._parents_engine is not None:
            raise PoolStopped(
                "the pool was started before this process was forked, and its workers"
                " belong to the parent: create a new one"
            )
        if self._engine is None:
            raise PoolStopped("the pool was not started: call start()")
        return self._engine

    def _tick(self) -> None:
        now = self._clock.monotonic()
        if self._scaler is None or now - self._scaled_at < _SCALE_SECONDS:
            return
        self._scaled_at = now
        seen = self.stats()
        workers = self._scaler.decide(now, self._workers, seen.waiting, seen.ended)
        if workers != self._workers and not self._is_stopped:
            logger.info(
                "scaling pool %s from %d to %d workers",
                self.name,
                self._workers,
                workers,
            )
            self._scale(workers, hot=False)

    def _scale(self, workers: int, *, hot: bool) -> None:
        self._workers = workers
        if self._engine is not None:
            self._engine.scale(workers, hot=hot)


def _check_kind(
    kind: str,
    max_tasks: int | None,
    max_memory: float | None,
    recruiter: Recruiter | None,
    start_method: str,
) -> None:
    if kind not in get_args(Kind):
        known = ", ".join(map(repr, get_args(Kind)))
        raise ConfigurationError(f"kind must be one of {known}, got {kind!r}")
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
    if max_memory is not None:
        checked_number(max_memory, "max_memory", unit=" MiB")
    if start_method not in get_args(StartMethod):
        known = ", ".join(map(repr, get_args(StartMethod)))
        raise ConfigurationError(
            f"start_method must be one of {known}, got {start_method!r}"
        )
