"""A worker that is a process of a pool: what runs in the child.

It runs tasks in its main thread. A task that is over its time, or does not heed a
cancellation, ends with the whole process: the supervisor reports it, hands back the
rest, and exits. The parent puts another process in its place.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread

from workstealing._logs import flush_logs
from workstealing.chance import SYSTEM_CHANCE
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK
from workstealing.drivers.connect import dedicated
from workstealing.drivers.connection import shut_down_sockets
from workstealing.tasks.attempt import Attempt, Delivery, Ending
from workstealing.tasks.runner import TaskRunner
from workstealing.workers.batching import Batching
from workstealing.workers.child_logs import LogForwarder, set_up_logging
from workstealing.workers.identity import Phase, identity_of, worker_name
from workstealing.workers.in_flight import InFlight
from workstealing.workers.loop import UntilEmpty, WorkerLoop, rest_seconds
from workstealing.workers.queue_location import QueueLocation
from workstealing.workers.redis_threads import Heartbeat
from workstealing.workers.shared_counters import Counter, SharedCounters
from workstealing.workers.slots import InlineSlot, tell_lease_lost
from workstealing.workers.supervisor import GRACE_SECONDS, Lease, Supervisor
from workstealing.workers.task_output import TaskOutput

__all__ = ("HOT", "STOP", "ChildOrders", "ExitCode", "resident_mib", "run_child")

STOP, HOT = b"stop", b"hot"
_MEMORY_SECONDS = 1.0
_MIB = 1024 * 1024
_STATM = Path("/proc/self/statm")


class ExitCode(IntEnum):
    """How a child tells its parent why it ended."""

    DONE = 0
    """It was asked to, or the queue is empty."""
    RECYCLED = 10
    """It has run as many tasks, or holds as much memory, as it should."""
    CUT_OFF = 11
    """It was told to end at once, and a task was ended with it."""
    GIVEN_UP = 12
    """A task was over its time, or did not heed its cancellation."""


@dataclass(frozen=True, slots=True)
class ChildOrders:
    """What a child needs to know when it starts."""

    location: QueueLocation
    pool: str
    index: int
    incarnation: str
    batch: int
    until_empty: UntilEmpty
    max_tasks: int | None
    max_memory: float | None
    log_levels: Mapping[str, int]


def run_child(
    orders: ChildOrders,
    counters: SharedCounters,
    pipe: Connection,
    log_pipe: Connection,
) -> None:
    """Work until told to stop; the parent starts this in a new process."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # The parent had blocked it, for the time of the imports.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    queue = orders.location.find().sync()
    forwarder = set_up_logging(orders.log_levels, log_pipe)
    child = _ChildWorker(queue, orders, counters, forwarder)
    counters[Counter.IMPORTED] = 1.0
    signal.signal(signal.SIGTERM, lambda *_: child.stop())
    Thread(target=_obey, args=(pipe, child), name="orders", daemon=True).start()
    raise SystemExit(child.run())


def _obey(pipe: Connection, child: _ChildWorker) -> None:
    order = b""
    while order != HOT:
        try:
            order = pipe.recv_bytes()
        except (EOFError, OSError):
            # The parent is gone, and nobody else would ever say it.
            child.stop()
            return
        child.stop()
    child.cut_off()


class _ChildWorker:
    """The loop, its supervisor, and what the parent sees of both."""

    def __init__(
        self,
        queue: TaskQueue,
        orders: ChildOrders,
        counters: SharedCounters,
        forwarder: LogForwarder | None,
    ) -> None:
        parts, clock = internals_of(queue), SYSTEM_CLOCK
        name = worker_name(orders.pool, orders.index)
        identity = identity_of(queue, name, orders.incarnation)
        self._orders = orders
        self._counters = counters
        self._forwarder = forwarder
        self._shared_driver = parts.driver
        self._own_driver = dedicated(parts.driver)
        self._runner = TaskRunner(
            parts.admission,
            name,
            queue.name,
            SYSTEM_CHANCE,
            TaskOutput(parts.driver, identity, clock),
            max_result=parts.settings.max_result,
        )
        batch = min(orders.batch, orders.max_tasks or orders.batch)
        self._in_flight = InFlight(Batching(batch), clock)
        self._lease = Lease(identity.lease, clock)
        self._slot = InlineSlot(
            self._runner,
            self._in_flight,
            self._own_driver,
            parts.keys.bell,
            may_begin=self._may_begin,
            # A task may hold the interpreter from its first moment, so that nobody
            # else in this process can say when it is to be killed.
            began=self._write_kill_time,
            clock=clock,
        )
        self._supervisor = Supervisor(
            name,
            lambda: (_MainThread(self._slot, self._end),),
            self._lease,
            lease_lost=partial(tell_lease_lost, self._slot),
            give_up=lambda _, attempt: self._end(attempt),
            shut_down=partial(shut_down_sockets, parts.driver.client),
            tick=self._look,
            clock=clock,
        )
        self._loop = WorkerLoop(
            identity,
            self._own_driver,
            self._in_flight,
            self._slot,
            self._lease,
            phase=self._phase,
            idle=lambda: None,
            is_supervised=self._supervisor.answers,
            until_empty=orders.until_empty,
            rest=rest_seconds(parts.driver),
            chance=SYSTEM_CHANCE,
            clock=clock,
        )
        self._heartbeat = Heartbeat(
            name,
            self._lease.seconds,
            partial(self._loop.stand_in, self._shared_driver),
        )
        self._parent = os.getppid()
        self._is_stopping = False
        self._is_cut_off = Event()
        self._measured_at = 0.0
        self._exit_code = ExitCode.DONE

    def run(self) -> ExitCode:
        """Work until the end; return why it came."""
        self._supervisor.start()
        self._heartbeat.start()
        try:
            self._loop.run()
        except BaseException:
            self._loop.leave()
            raise
        finally:
            self._own_driver.close()
            self._heartbeat.stop()
            self._supervisor.stop()
            self._slot.close()
            self._write()
            self._flush()
        return self._exit_code

    def stop(self) -> None:
        """Finish what runs, hand back what waits, and end; from any thread."""
        self._is_stopping = True

    def cut_off(self) -> None:
        """End with what runs, handing it back; from any thread."""
        self._is_cut_off.set()

    def _phase(self) -> Phase:
        return Phase.STOPPING if self._is_stopping else Phase.WORKING

    def _may_begin(self) -> bool:
        most = self._orders.max_tasks
        if most is not None and self._in_flight.begun >= most:
            self._recycle()
        return not self._is_stopping

    def _look(self) -> None:
        self._write()
        self._measure()
        if self._is_cut_off.is_set():
            attempt = self._slot.attempt
            code = ExitCode.DONE if attempt is None else ExitCode.CUT_OFF
            self._end(attempt, code)
        if os.getppid() != self._parent:
            # A forked sibling may hold the other end of the pipe, so that the pipe
            # does not say it.
            self.stop()

    def _write(self) -> None:
        """Show the parent what was counted."""
        counters, stats, attempt = self._counters, self._loop.stats, self._slot.attempt
        counters[Counter.READY] = float(stats.exchanges > 0)
        counters[Counter.TICKED_AT] = now = time.monotonic()
        counters[Counter.ANSWERED_AT] = now - self._lease.silence
        self._write_kill_time(attempt)
        counters[Counter.RUNNING] = float(attempt is not None)
        counters[Counter.TAKEN] = stats.taken
        counters[Counter.STOLEN] = stats.stolen
        counters[Counter.REFUSED] = stats.refused
        counters[Counter.LOST_LEASES] = stats.lost_leases
        counters[Counter.FAILURES] = stats.failures
        counters[Counter.DUE] = stats.due

    def _write_kill_time(self, attempt: Attempt | None) -> None:
        kill_at = 0.0
        if attempt is not None and attempt.timeout is not None:
            ran = max(0.0, time.time() - attempt.began_ns / 1e9)
            kill_at = time.monotonic() - ran + attempt.timeout + 2 * GRACE_SECONDS
        self._counters[Counter.KILL_AT] = kill_at

    def _measure(self) -> None:
        most, now = self._orders.max_memory, time.monotonic()
        if most is not None and now - self._measured_at >= _MEMORY_SECONDS:
            self._measured_at = now
            if resident_mib() > most:
                self._recycle()

    def _recycle(self) -> None:
        self._exit_code = ExitCode.RECYCLED
        self.stop()

    def _end(self, attempt: Attempt | None, code: ExitCode = ExitCode.GIVEN_UP) -> None:
        """End the process with what it runs, after reporting that."""
        delivery: Delivery | None = None
        ending: Ending = None
        if attempt is not None:
            attempt.is_interrupted = True
            delivery = attempt.task
            ending = self._runner.stopped(attempt, "its process was ended")
        self._loop.abandon(self._shared_driver, delivery, ending)
        self._flush()
        os._exit(code)

    def _flush(self) -> None:
        flush_logs()
        if self._forwarder is not None:
            self._forwarder.flush()


class _MainThread:
    """The only slot of a child: nothing stops what runs there but the end of all."""

    def __init__(self, slot: InlineSlot, end: Callable[[Attempt], None]) -> None:
        self._slot = slot
        self._end = end

    @property
    def attempt(self) -> Attempt | None:
        return self._slot.attempt

    def interrupt(self, attempt: Attempt) -> bool:
        if attempt.definition.is_coroutine and attempt.is_overdue:
            # Its own time limit cancels it; if that does not help, it is given up.
            return False
        self._end(attempt)
        return True

    def deliver(self) -> bool:
        return True


def resident_mib() -> float:
    """Return the MiB that this process holds, or the most it ever held."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (_MIB if sys.platform == "darwin" else 1024)
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB
