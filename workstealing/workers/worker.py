"""A plain worker: runs tasks in the thread that calls `run()`."""

from __future__ import annotations

from collections.abc import Callable

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.client.queue import AsyncTaskQueue, TaskQueue
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.connect import dedicated
from workstealing.recruiting.recruiter import Recruiter
from workstealing.tasks.checking import checked_whole
from workstealing.tasks.executing import Executor
from workstealing.workers.batching import LARGEST_BATCH, Batching
from workstealing.workers.hands import Hands
from workstealing.workers.heart import Heart
from workstealing.workers.intent import intent
from workstealing.workers.lifecycle import Phase
from workstealing.workers.loop import Life, LifeStats
from workstealing.workers.member import executor_of, member_of, rest_seconds
from workstealing.workers.naming import default_pool, new_incarnation, worker_name
from workstealing.workers.plain import plain
from workstealing.workers.running import Runner
from workstealing.workers.scribe import Scribe
from workstealing.workers.solo import Solo

__all__ = ("Worker",)


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

    _is_interruptible = True

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
        self._queue = plain(queue)
        self._batch = checked_whole(batch, "batch", 1, LARGEST_BATCH)
        self._recruiter = recruiter
        self._chance = chance
        self._clock = clock
        self._is_stopping = False
        self.stats = LifeStats()

    def run(self, *, until_empty: bool = False) -> None:
        """Work until `stop()`, or until nothing is left in the queue."""
        queue, hands, clock = self._queue, Hands(), self._clock
        member = member_of(queue, self.name, self._incarnation())
        executor = executor_of(queue, self.name, self._chance)
        runner = Runner(
            executor,
            begin=intent(queue.driver, member),
            scribe=Scribe(queue.driver, member, clock),
            is_interruptible=self._is_interruptible,
        )
        heart = Heart(queue.driver, member, hands, runner, self._phase, clock)
        heart.also = self._watch(heart, executor, runner)
        solo = Solo(
            hands,
            Batching(self._batch),
            executor,
            runner,
            bell=queue.keys.bell,
            is_stopping=self._is_to_stop,
            clock=clock,
        )
        life = Life(
            member,
            solo,
            idle=self._use_idle_moment,
            phase=self._phase,
            renewed=heart.renewed,
            until_empty=until_empty,
            rest=rest_seconds(queue.driver),
            chance=self._chance,
            clock=clock,
        )
        self.stats = life.stats
        heart.start()
        own = dedicated(queue.driver)
        try:
            own.run(life.live())
        except BaseException:
            # An interrupt, for one: what it held need not wait for the lease to end.
            own.run(life.leave())
            raise
        finally:
            own.close()
            heart.stop()
            runner.close()
            self._is_stopping = False

    def stop(self) -> None:
        """Finish what runs, hand back what waits, and end; from any thread.

        A worker that has not begun to run will end at once when it does.
        """
        self._is_stopping = True

    def _incarnation(self) -> str:
        return new_incarnation()

    def _watch(
        self,
        heart: Heart,  # noqa: ARG002 - for a worker that is a process of a pool
        executor: Executor,  # noqa: ARG002
        runner: Runner,  # noqa: ARG002
    ) -> Callable[[], None]:
        """Return what is to be looked at beside the work; here, nothing."""
        return lambda: None

    def _is_to_stop(self) -> bool:
        """Tell, before each task, whether it is not to be begun."""
        return self._is_stopping

    def _phase(self) -> Phase:
        return Phase.STOPPING if self._is_stopping else Phase.WORKING

    def _use_idle_moment(self) -> None:
        if self._recruiter is not None:
            self._recruiter.enlist()
