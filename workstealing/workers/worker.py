"""A plain worker: runs tasks in the thread that calls `run()`."""

from __future__ import annotations

from workstealing._checks import checked_whole
from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.recruiting.recruiter import Recruiter
from workstealing.workers.batching import LARGEST_BATCH
from workstealing.workers.engine import WorkerEngine
from workstealing.workers.identity import (
    Phase,
    UntilEmpty,
    checked_queue,
    checked_until_empty,
    default_pool,
    worker_name,
)
from workstealing.workers.inline_slot import InlineSlot
from workstealing.workers.worker_stats import LoopStats

__all__ = ("Worker",)


class Worker:
    """Takes tasks of a queue and runs them, one at a time.

    Args:
        queue: whose tasks.
        pool: the first part of its name `{pool}.{index}`; None: a unique one.
        index: the second part.
        batch: tasks that it takes at once, at most. With 1 a crash repeats only the
            task that ran.
        recruiter: side work for idle moments, besides the upkeep of the queue.
        chance: where randomness comes from.
        clock: where time comes from.
    """

    def __init__(
        self,
        queue: TaskQueue | AsyncTaskQueue,
        *,
        pool: str | None = None,
        index: int = 0,
        batch: int = 100,
        recruiter: Recruiter | None = None,
        chance: Chance = SYSTEM_CHANCE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.name = worker_name(pool or default_pool(), index)
        self._queue = checked_queue(queue).sync()
        self._batch = checked_whole(batch, "batch", 1, LARGEST_BATCH)
        self._recruiter = recruiter
        self._chance = chance
        self._clock = clock
        self._is_stopping = False
        self._engine: WorkerEngine[InlineSlot] | None = None

    @property
    def stats(self) -> LoopStats:
        """What was counted in the current run, or in the last one."""
        return LoopStats() if self._engine is None else self._engine.stats

    def run(self, *, until_empty: UntilEmpty = False) -> None:
        """Work until `stop()`, or until the queue is empty.

        Args:
            until_empty: end when nothing can run now, whatever is due later; `"all"`
                waits for that, too.
        """
        checked_until_empty(until_empty)
        self._engine = engine = WorkerEngine(
            self._queue,
            self.name,
            InlineSlot,
            batch=self._batch,
            until_empty=until_empty,
            chance=self._chance,
            clock=self._clock,
            recruiter=self._recruiter,
            # Ctrl-C is meant for the worker, wherever it happens to be.
            reraised=(KeyboardInterrupt,),
            overlaps=True,
        )
        if self._is_stopping:
            engine.enter(Phase.STOPPING)
        try:
            engine.start()
            engine.run()
        finally:
            engine.close()
            self._is_stopping = False

    def stop(self) -> None:
        """Finish the running task, hand back the others, and end; from any thread.

        A worker that has not begun to run will end at once when it does.
        """
        self._is_stopping = True
        if self._engine is not None:
            self._engine.enter(Phase.STOPPING)
