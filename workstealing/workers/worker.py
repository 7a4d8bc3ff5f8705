"""A plain worker: runs tasks in the thread that calls `run()`."""

from __future__ import annotations

from functools import partial

from workstealing._checks import checked_whole
from workstealing._logs import flush_logs
from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.connect import dedicated
from workstealing.drivers.connection import shut_down_sockets
from workstealing.recruiting.recruiter import Recruiter
from workstealing.tasks.runner import TaskRunner
from workstealing.workers.batching import LARGEST_BATCH, Batching
from workstealing.workers.identity import (
    LoopStats,
    Phase,
    default_pool,
    identity_of,
    worker_name,
)
from workstealing.workers.in_flight import InFlight
from workstealing.workers.loop import UntilEmpty, WorkerLoop, rest_seconds
from workstealing.workers.redis_threads import Heartbeat
from workstealing.workers.slots import InlineSlot, tell_lease_lost
from workstealing.workers.supervisor import Lease, Supervisor
from workstealing.workers.task_output import TaskOutput

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
        self._queue = queue.sync()
        self._batch = checked_whole(batch, "batch", 1, LARGEST_BATCH)
        self._recruiter = recruiter
        self._chance = chance
        self._clock = clock
        self._is_stopping = False
        self.stats = LoopStats()

    def run(self, *, until_empty: UntilEmpty = False) -> None:
        """Work until `stop()`, or until the queue is empty.

        Args:
            until_empty: end when nothing can run now, whatever is due later; `"all"`
                waits for that, too.
        """
        queue, parts, clock = self._queue, internals_of(self._queue), self._clock
        identity = identity_of(queue, self.name)
        lease = Lease(identity.lease, clock)
        in_flight = InFlight(Batching(self._batch), clock)
        driver = dedicated(parts.driver)
        runner = TaskRunner(
            parts.admission,
            self.name,
            queue.name,
            self._chance,
            TaskOutput(parts.driver, identity, clock),
            max_result=parts.settings.max_result,
            # Ctrl-C is meant for the worker, wherever it happens to be.
            reraised=(KeyboardInterrupt,),
        )
        slot = InlineSlot(
            runner,
            in_flight,
            driver,
            parts.keys.bell,
            may_begin=lambda: not self._is_stopping,
            clock=clock,
        )
        supervisor = Supervisor(
            self.name,
            # Nothing can make a task stop in the thread of the caller.
            lambda: (),
            lease,
            lease_lost=partial(tell_lease_lost, slot),
            give_up=lambda _, __: None,
            shut_down=partial(shut_down_sockets, parts.driver.client),
            tick=lambda: None,
            clock=clock,
        )
        loop = WorkerLoop(
            identity,
            driver,
            in_flight,
            slot,
            lease,
            phase=self._phase,
            idle=self._use_idle_moment,
            is_supervised=supervisor.answers,
            until_empty=until_empty,
            rest=rest_seconds(parts.driver),
            chance=self._chance,
            clock=clock,
        )
        heartbeat = Heartbeat(
            self.name, lease.seconds, partial(loop.stand_in, parts.driver)
        )
        self.stats = loop.stats
        supervisor.start()
        heartbeat.start()
        try:
            loop.run()
        except BaseException:
            # An interrupt, for one: what it held need not wait for the lease to end.
            loop.leave()
            raise
        finally:
            driver.close()
            heartbeat.stop()
            supervisor.stop()
            slot.close()
            flush_logs()
            self._is_stopping = False

    def stop(self) -> None:
        """Finish what runs, hand back what waits, and end; from any thread.

        A worker that has not begun to run will end at once when it does.
        """
        self._is_stopping = True

    def _phase(self) -> Phase:
        return Phase.STOPPING if self._is_stopping else Phase.WORKING

    def _use_idle_moment(self) -> None:
        if self._recruiter is not None:
            self._recruiter.enlist()
