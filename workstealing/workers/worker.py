"""A plain worker: runs tasks in the thread that calls `run()`."""

from __future__ import annotations

import os
import socket
import time

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.client.queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.patience import patience_of
from workstealing.recruiting.recruiter import Recruiter
from workstealing.tasks.checking import checked_whole
from workstealing.workers.batching import SPAN_SECONDS, Batching
from workstealing.workers.executing import Executor, Unable
from workstealing.workers.hands import Hands
from workstealing.workers.heart import Heart
from workstealing.workers.loop import Life, LifeStats
from workstealing.workers.member import Member
from workstealing.workers.naming import default_pool, new_incarnation, worker_name
from workstealing.workers.running import Runner

__all__ = ("Worker",)

# More than that does not fit into one call of a script.
_LARGEST_BATCH = 1000
_REST_SECONDS = 1.0


class Worker:
    """Takes tasks of a queue and runs them, one at a time.

    Args:
        queue: whose tasks.
        pool: the first part of its name `{pool}.{index}`; one of its own unless given.
        index: the second part.
        batch: tasks that it takes at once, at most. With 1 a crash repeats only the
            task that ran.
        recruiter: side work for idle moments, besides the upkeep of the queue.
        chance: where randomness comes from.
        clock: where time comes from.
    """

    def __init__(
        self,
        queue: TaskQueue,
        *,
        pool: str | None = None,
        index: int = 0,
        batch: int = 100,
        recruiter: Recruiter | None = None,
        chance: Chance = SYSTEM_CHANCE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.name = worker_name(pool or default_pool(), index)
        self._queue = queue
        self._batch = checked_whole(batch, "batch", 1, _LARGEST_BATCH)
        self._recruiter = recruiter
        self._chance = chance
        self._clock = clock
        self._is_stopping = False
        self.stats = LifeStats()

    def run(self, *, until_empty: bool = False) -> None:
        """Work until `stop()`, or until nothing is left in the queue."""
        queue, hands, batching = self._queue, Hands(), Batching(self._batch)
        member = Member(
            queue.keys, queue.settings, self.name, new_incarnation(), self._describe()
        )
        executor = Executor(queue.registry, self.name, queue.name, self._chance)
        runner = Runner(executor)
        heart = Heart(queue.driver, member, hands, runner, self._clock)

        def work() -> list[Unable]:
            return self._work_through(hands, batching, executor, runner)

        life = Life(
            member,
            hands,
            batching,
            work=work,
            idle=self._use_idle_moment,
            is_stopping=lambda: self._is_stopping,
            renewed=heart.renewed,
            until_empty=until_empty,
            rest=self._rest(),
            chance=self._chance,
        )
        self.stats = life.stats
        heart.start()
        try:
            queue.driver.run(life.live())
        except BaseException:
            # An interrupt, for one: what it held need not wait for the lease to end.
            queue.driver.run(life.leave())
            raise
        finally:
            heart.stop()
            runner.close()
            self._is_stopping = False

    def stop(self) -> None:
        """Finish what runs, hand back what waits, and end; from any thread.

        A worker that has not begun to run will end at once when it does.
        """
        self._is_stopping = True

    def _rest(self) -> float:
        # A client that gives up earlier would take every rest for a failure.
        patience = patience_of(self._queue.driver.client)
        return _REST_SECONDS if not patience else min(_REST_SECONDS, patience / 2)

    def _describe(self) -> dict[str, object]:
        return {
            "abilities": list(self._queue.registry.abilities()),
            "lease_ms": self._queue.settings.lease_ms,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": time.time_ns() // 1_000_000,
        }

    def _work_through(
        self, hands: Hands, batching: Batching, executor: Executor, runner: Runner
    ) -> list[Unable]:
        """Run what the hands hold, for about as long as a batch should last."""
        monotonic, execute, begin = self._clock.monotonic, runner.execute, hands.begin
        unable: list[Unable] = []
        reports = hands.reports
        began_at = now = monotonic()
        done = 0
        while not self._is_stopping and (task := begin()) is not None:
            is_cancelled = task.id in hands.cancelled
            report = executor.cancelled(task) if is_cancelled else execute(task)
            done += 1
            if isinstance(report, Unable):
                unable.append(report)
            elif report is not None:
                reports.append(report)
            now = monotonic()
            if now - began_at > SPAN_SECONDS:
                break
        batching.lasted(done, now - began_at)
        return unable

    def _use_idle_moment(self) -> None:
        if self._recruiter is not None:
            self._recruiter.enlist()
