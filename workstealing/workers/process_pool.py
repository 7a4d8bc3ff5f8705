"""Workers that are processes: started, watched, replaced, recycled and stopped.

Each child is a worker of its own, with its own name, lease and deque. The parent runs
no tasks. When a child dies another takes its name at once, and with it what waits in
its deque; what it was running goes back to the queue, and a death is counted.
"""

from __future__ import annotations

import atexit
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import process as processes
from threading import Event, Lock, Thread
from typing import Any, Literal

from workstealing._forking import reset_in_children
from workstealing._logs import BackgroundLogger, flush_logs
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.errors import PoolBroken, ResourceFailed
from workstealing.workers.child_handle import ChildHandle
from workstealing.workers.child_logs import LogReader, parent_levels
from workstealing.workers.child_protocol import (
    HOT,
    STOP,
    ChildNumber,
    ChildNumbers,
    ChildOrders,
    ExitCode,
)
from workstealing.workers.handing_back import hand_back_for
from workstealing.workers.identity import (
    STOP_SECONDS,
    NameTaken,
    Phase,
    UntilEmpty,
    new_incarnation,
)
from workstealing.workers.queue_choice import LocatedChoice
from workstealing.workers.worker_stats import WorkerStats

__all__ = ("ProcessPool", "StartMethod")

logger = BackgroundLogger(__name__)

StartMethod = Literal["spawn", "forkserver", "fork"]

_TICK_SECONDS = 0.05
_LAST_SECONDS = 3.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
# After this many failed starts in a row it gives up.
_HOPELESS = 5
# With these codes a child has ended by itself or on demand: nothing has died.
_ORDERLY = frozenset(ExitCode) - {ExitCode.NOT_OPENED}
# What is added up over all children, also those that have ended.
_SUMS = (
    ChildNumber.TAKEN,
    ChildNumber.REPORTED,
    ChildNumber.STOLEN,
    ChildNumber.REFUSED,
    ChildNumber.LOST_LEASES,
    ChildNumber.FAILURES,
)


class ProcessPool:
    """The processes of a pool.

    Args:
        queues: whose tasks.
        choice: how children find them, and share their time among them.
        pool: the first part of their names.
        batch: tasks that a child takes at once, at most.
        until_empty: when to end without being asked to.
        max_tasks: after how many tasks a child is replaced.
        max_memory: beyond how many MiB a child is replaced.
        start_method: how processes are made.
        tick: is called every 50 ms.
    """

    def __init__(
        self,
        queues: Sequence[TaskQueue],
        choice: LocatedChoice,
        pool: str,
        *,
        batch: int,
        until_empty: UntilEmpty,
        max_tasks: int | None,
        max_memory: float | None,
        start_method: StartMethod,
        tick: Callable[[], None],
    ) -> None:
        for queue in queues:
            if queue.registry.uses_resources:
                # Refused here, since no child could open what a task asks for.
                queue.registry.resources()
        self._queues = queues
        self._pool = pool
        self._choice = choice
        self._batch = batch
        self._max_tasks = max_tasks
        self._max_memory = max_memory
        self._context: Any = multiprocessing.get_context(start_method)
        self._tick = tick
        self._mutex = Lock()
        self._children: dict[int, ChildHandle] = {}
        self._wanted = 0
        self._ended_indexes: set[int] = set()
        self._to_reload: deque[int] = deque()
        self._is_reloading = False
        self._departed = _Departed()
        self._deaths_in_a_row = 0
        self._not_before = 0.0
        self._phase = Phase.WORKING
        self._until_empty = until_empty
        self._log_reader = LogReader(f"{pool}/logs")
        self._error: Exception | None = None
        self._has_worked = False
        self._ended = Event()

    def start(self, number: int) -> None:
        """Begin with *number* processes."""
        self._wanted = number
        try:
            self._log_reader.start()
            self._look()
            Thread(target=self._run, name=f"{self._pool}/parent", daemon=True).start()
        except BaseException:
            self._send_all(STOP)
            self._log_reader.stop()
            self._ended.set()
            raise
        # An interpreter that ends with a pool left open would wait for it indefinitely.
        atexit.register(self._end_at_exit)
        reset_in_children(self, ProcessPool._leave_to_parent)

    def scale(self, number: int, *, hot: bool) -> None:
        """Resize to *number* processes; hot: interrupt the tasks of surplus ones."""
        with self._mutex:
            self._wanted = number
            surplus = [self._children[i] for i in self._children if i >= number]
            for child in surplus:
                child.is_leaving = True
                child.send(HOT if hot else STOP)

    def reload(self) -> None:
        """Replace them one by one, so that the new ones import the code again."""
        with self._mutex:
            self._to_reload = deque(sorted(self._children))
            self._is_reloading = True

    def quiet(self) -> None:
        """Take no more tasks, hand back waiting ones; each process ends when idle."""
        self._phase = max(self._phase, Phase.QUIET)
        self._send_all(STOP)

    def stop(self, *, hot: bool, timeout: float) -> int:
        """End; return how many tasks were cut off and handed back."""
        self._phase = max(self._phase, Phase.STOPPING)
        self._send_all(HOT if hot else STOP)
        if not self._ended.wait(_LAST_SECONDS if hot else timeout):
            if not hot:
                self._send_all(HOT)
                self._ended.wait(_LAST_SECONDS)
            self._kill_all()
            self._ended.wait(_LAST_SECONDS)
        self._close()
        return self._departed.cut

    def wait(self, timeout: float | None) -> bool:
        """Wait until all have ended; return whether they have."""
        if not self._ended.wait(timeout):
            return False
        self._close()
        if self._error is not None:
            raise self._error
        return True

    @property
    def error(self) -> BaseException | None:
        """Why it ended, if it was not asked to."""
        return self._error

    def stats(self) -> WorkerStats:
        """Add up what the children wrote."""
        with self._mutex:
            numbers = [child.numbers for child in self._children.values()]
            gone = dict(self._departed.sums)
            replaced = self._departed.replaced
        total = {
            which: int(gone.get(which, 0.0) + sum(one[which] for one in numbers))
            for which in _SUMS
        }
        answered_at = max(
            (one[ChildNumber.ANSWERED_AT] for one in numbers), default=0.0
        )
        return WorkerStats(
            workers=len(numbers),
            running=int(sum(one[ChildNumber.RUNNING] for one in numbers)),
            waiting=int(max((one[ChildNumber.DUE] for one in numbers), default=0.0)),
            stolen=total[ChildNumber.STOLEN],
            taken=total[ChildNumber.TAKEN],
            ended=total[ChildNumber.REPORTED],
            refused=total[ChildNumber.REFUSED],
            lost_leases=total[ChildNumber.LOST_LEASES],
            failures=total[ChildNumber.FAILURES],
            replaced=replaced,
            silence=time.monotonic() - answered_at if answered_at else 0.0,
        )

    def _end_at_exit(self) -> None:
        self.stop(hot=False, timeout=STOP_SECONDS)

    def _leave_to_parent(self) -> None:
        """In a forked child, leave the workers alone when it ends."""
        atexit.unregister(self._end_at_exit)
        # At exit `multiprocessing` joins these, which only their parent can.
        joined: set[Any] = getattr(processes, "_children", set())
        joined.difference_update([one.process for one in self._children.values()])

    def _close(self) -> None:
        atexit.unregister(self._end_at_exit)
        self._log_reader.stop()
        flush_logs()

    def _run(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            try:
                self._look()
                self._tick()
            except Exception as error:  # noqa: BLE001 - it must not end
                logger.error(
                    "error while supervising pool %s, which continues",
                    self._pool,
                    error=error,
                )

    def _look(self) -> None:
        """See which children died, which are stuck and which are missing."""
        with self._mutex:
            for child in tuple(self._children.values()):
                child.was_ready |= bool(child.numbers[ChildNumber.READY])
                if child.numbers[ChildNumber.IMPORTED] and not child.has_worked:
                    child.has_worked = self._has_worked = True
                    self._deaths_in_a_row = 0
                if not child.process.is_alive():
                    self._remove(child)
                elif child.is_stuck():
                    child.process.kill()
                    logger.error(
                        "worker %s was killed: its task holds the interpreter beyond"
                        " the time limit",
                        child.name,
                    )
            if self._phase is Phase.WORKING and self._error is None:
                self._start_missing()
                self._reload_next()
            is_over = self._phase >= Phase.STOPPING or self._error is not None
            is_over = is_over or self._ended_indexes.issuperset(range(self._wanted))
            if is_over and not self._children:
                self._ended.set()

    def _remove(self, child: ChildHandle) -> None:
        child.process.join()
        code = child.process.exitcode
        problem = child.problem() if code == ExitCode.NOT_OPENED else None
        child.pipe.close()
        del self._children[child.index]
        self._departed.add(child.numbers)
        if not child.numbers[ChildNumber.ENDED]:
            # Whatever the code says: a task may exit with 0.
            self._count_death(child)
            return
        if code == ExitCode.EMPTY and not child.is_leaving:
            self._ended_indexes.add(child.index)
        if code == ExitCode.CUT_OFF:
            # Not what a hot scale has cut off, though it may end only now.
            is_by_stop = self._phase >= Phase.STOPPING and not child.is_leaving
            self._departed.cut += is_by_stop
        if code == ExitCode.NAME_TAKEN and self._error is None:
            self._give_up(NameTaken(child.name))
        elif problem is not None:
            logger.error("worker %s did not start: %s", child.name, problem)
            self._count_failed_start(problem)
        elif code not in _ORDERLY:
            self._count_death(child)

    def _count_failed_start(self, problem: ResourceFailed) -> None:
        """Give up if none has ever started; else what is missing may come back."""
        self._deaths_in_a_row += 1
        is_hopeless = not self._has_worked or self._is_hopeless()
        if is_hopeless and self._error is None:
            self._give_up(problem)
        self._pause()

    def _count_death(self, child: ChildHandle) -> None:
        self._departed.replaced += 1
        if not child.is_killed:
            logger.warning("worker %s died (%s)", child.name, child.cause)
        self._deaths_in_a_row += 1
        if self._is_hopeless():
            broken = PoolBroken(
                f"{_HOPELESS} processes in a row died before they got to work, the"
                f" last with {child.cause}: see their output for the cause. A script"
                ' that starts a pool needs `if __name__ == "__main__":` around it.'
            )
            self._give_up(broken)
        self._pause()
        is_last = child.index >= self._wanted or self._phase is not Phase.WORKING
        for queue in self._queues:
            # The next of its name takes over what it held, unless it is elsewhere.
            if is_last or internals_of(queue).shards.are_several:
                killed = child.incarnation if child.is_killed else None
                hand_back_for(queue, child.name, killed)

    def _is_hopeless(self) -> bool:
        """Return whether starting another one is no use; not while others work."""
        are_working = any(child.has_worked for child in self._children.values())
        return self._deaths_in_a_row >= _HOPELESS and not are_working

    def _give_up(self, error: Exception) -> None:
        self._error = error
        logger.error("pool %s gives up: %s", self._pool, error)
        for other in self._children.values():
            other.send(STOP)

    def _pause(self) -> None:
        """Start none for a while: the longer, the more in a row did not get to work."""
        pause = _FIRST_PAUSE * 2.0 ** min(self._deaths_in_a_row - 1, 10)
        self._not_before = time.monotonic() + min(_LONGEST_PAUSE, pause)

    def _start_missing(self) -> None:
        if time.monotonic() < self._not_before:
            return
        for index in range(self._wanted):
            if index not in self._children and index not in self._ended_indexes:
                try:
                    self._children[index] = self._new_child(index)
                except OSError:
                    # Memory, processes or open files are used up; that may pass.
                    self._not_before = time.monotonic() + _LONGEST_PAUSE
                    raise

    def _new_child(self, index: int) -> ChildHandle:
        orders = ChildOrders(
            self._choice,
            self._pool,
            index,
            new_incarnation(),
            self._batch,
            self._until_empty,
            self._max_tasks,
            self._max_memory,
            parent_levels(),
        )
        return ChildHandle.start(self._context, orders, self._queues, self._log_reader)

    def _reload_next(self) -> None:
        """Replace the next one, when all that were replaced before are at work."""
        if not self._is_reloading:
            return
        are_ready = all(
            child.was_ready and not child.is_leaving
            for child in self._children.values()
        )
        if not are_ready or len(self._children) < self._wanted:
            return
        if not self._to_reload:
            self._is_reloading = False
            logger.info("pool %s has replaced its processes", self._pool)
            return
        child = self._children.get(self._to_reload.popleft())
        if child is not None:
            child.is_leaving = True
            child.send(STOP)

    def _send_all(self, order: bytes) -> None:
        with self._mutex:
            for child in self._children.values():
                child.send(order)

    def _kill_all(self) -> None:
        with self._mutex:
            for child in self._children.values():
                child.is_killed = True
                self._departed.cut += int(child.numbers[ChildNumber.RUNNING])
                child.process.kill()
                logger.error("worker %s did not end and was killed", child.name)


@dataclass(slots=True)
class _Departed:
    """What children that have ended had counted."""

    sums: dict[ChildNumber, float] = field(default_factory=dict)
    replaced: int = 0
    cut: int = 0

    def add(self, numbers: ChildNumbers) -> None:
        for which in _SUMS:
            self.sums[which] = self.sums.get(which, 0.0) + numbers[which]
