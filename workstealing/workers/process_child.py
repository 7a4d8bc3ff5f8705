"""A worker that is a process of a pool: the child's side.

It runs tasks in its main thread, also those of several queues: then the loop of each is
in a thread of its own, and they share the one slot.

A task that exceeds its time limit, or ignores a cancellation, is ended with the whole
process: the supervisor reports it, hands back the rest, and exits. The parent puts
another process in its place.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import msgspec

from workstealing.chance import SYSTEM_CHANCE
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK
from workstealing.errors import ResourceFailed
from workstealing.tasks.attempt import Attempt, Delivery, Report
from workstealing.workers.child_logs import LogForwarder, set_up_logging
from workstealing.workers.child_protocol import (
    HOT,
    ChildNumber,
    ChildNumbers,
    ChildOrders,
    ExitCode,
)
from workstealing.workers.engine import WorkerEngine
from workstealing.workers.identity import NameTaken, Phase, worker_name
from workstealing.workers.inline_slot import InlineSlot
from workstealing.workers.queue_choice import QueueChoice
from workstealing.workers.slots import SlotParts, log_cut_off
from workstealing.workers.supervisor import GRACE_SECONDS
from workstealing.workers.worker_stats import LoopStats

if TYPE_CHECKING:
    from workstealing.workers.lent_slot import LentThread

__all__ = ("run_child",)

_MEMORY_SECONDS = 1.0
# For hooks, resources and other code of the user, in a process that ends with its task.
_LAST_SECONDS = 2.0
_MIB = 1024 * 1024
_STATM = Path("/proc/self/statm")


def run_child(
    orders: ChildOrders,
    numbers: ChildNumbers,
    pipe: Connection,
    log_pipe: Connection,
) -> None:
    """Work until told to stop; the parent starts this in a new process."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # The parent had blocked it, for the time of the imports.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    choice = orders.choice.find()
    forwarder = set_up_logging(orders.log_levels, log_pipe)
    child = _ChildWorker(choice, orders, numbers, forwarder)
    signal.signal(signal.SIGTERM, lambda *_: child.on_signal())
    Thread(target=_obey, args=(pipe, child), name="orders", daemon=True).start()
    raise SystemExit(child.run(pipe))


def _obey(pipe: Connection, child: _ChildWorker) -> None:
    order = b""
    while order != HOT:
        try:
            order = pipe.recv_bytes()
        except (EOFError, OSError):
            # The parent is gone, so no order will ever come.
            child.stop()
            return
        child.stop()
    child.cut_off()


class _ChildWorker:
    """The engine of a child, and what the parent sees of it."""

    def __init__(
        self,
        choice: QueueChoice,
        orders: ChildOrders,
        numbers: ChildNumbers,
        forwarder: LogForwarder | None,
    ) -> None:
        self._orders = orders
        self._numbers = numbers
        self._forwarder = forwarder
        self._parent = os.getppid()
        self._is_cut_off = Event()
        self._measured_at = 0.0
        self._exit_code = ExitCode.STOPPED
        self._is_asked_to_stop = False
        self._lent = _lent_thread() if choice.are_several else None
        self._engines = self._new_engines(choice)

    def run(self, pipe: Connection) -> ExitCode:
        """Work until the end; return why it came."""
        try:
            try:
                for engine in self._engines:
                    engine.start()
            except ResourceFailed as error:
                pipe.send_bytes(msgspec.json.encode(error.args))
                self._numbers[ChildNumber.ENDED] = 1.0
                return ExitCode.NOT_OPENED
            self._numbers[ChildNumber.IMPORTED] = 1.0
            if self._lent is None:
                self._engines[0].run()
            else:
                self._lent.run(self._engines)
        except NameTaken:
            self._exit_code = ExitCode.NAME_TAKEN
        finally:
            for engine in self._engines:
                engine.close()
            self._write()
            self._flush()
        self._numbers[ChildNumber.ENDED] = 1.0
        is_empty = all(engine.loop.is_empty for engine in self._engines)
        if is_empty and self._exit_code is ExitCode.STOPPED:
            return ExitCode.EMPTY
        return self._exit_code

    def on_signal(self) -> None:
        """Stop, from a signal handler."""
        if self._lent is None:
            self.stop()
        else:
            # At the next tick: in this moment the main thread may hold a lock.
            self._is_asked_to_stop = True

    def stop(self) -> None:
        """Finish the running task, hand back the others, and end; from any thread."""
        for engine in self._engines:
            engine.enter(Phase.STOPPING)

    def cut_off(self) -> None:
        """End at once and hand back the running task; from any thread."""
        self._is_cut_off.set()

    def _new_engines(self, choice: QueueChoice) -> list[WorkerEngine[Any]]:
        queues = [queue.sync() for queue in choice.queues]
        if self._lent is None:
            return [self._new_engine(queues[0], {"tick": self._tick})]
        shared = choice.shared_slots(SYSTEM_CLOCK)
        engines = [
            self._new_engine(queue, shared.options(place, self._tick))
            for place, queue in enumerate(queues)
        ]
        shared.connect(engines, turns=self._orders.index)
        return engines

    def _new_engine(
        self, queue: TaskQueue, options: dict[str, Any]
    ) -> WorkerEngine[InlineSlot]:
        orders = self._orders
        return WorkerEngine(
            queue,
            worker_name(orders.pool, orders.index),
            self._new_slot,
            batch=min(orders.batch, orders.max_tasks or orders.batch),
            until_empty=orders.until_empty,
            chance=SYSTEM_CHANCE,
            clock=SYSTEM_CLOCK,
            incarnation=orders.incarnation,
            give_up=lambda _, attempt: self._end(attempt),
            overlaps=self._lent is None,
            **options,
        )

    def _new_slot(self, parts: SlotParts) -> InlineSlot:
        if self._lent is not None:
            return self._lent.new_slot(parts, self._began, self._interrupt)
        return InlineSlot(parts, began=self._began, interrupt=self._interrupt)

    def _running(self) -> tuple[WorkerEngine[InlineSlot], Attempt | None]:
        """Return what runs, and which engine runs it."""
        for engine in self._engines:
            if (attempt := engine.slots.attempt) is not None:
                return engine, attempt
        return self._engines[0], None

    def _began(self, attempt: Attempt) -> None:
        # A task may hold the interpreter from its first moment, so that nobody else in
        # this process can say when it is to be killed.
        self._write_kill_time(attempt)
        most = self._orders.max_tasks
        if most is not None:
            begun = sum(engine.in_flight.begun for engine in self._engines)
            if begun >= most:
                self._recycle()

    def _tick(self) -> None:
        self._write()
        self._measure()
        if self._is_cut_off.is_set():
            attempt = self._running()[1]
            code = ExitCode.STOPPED if attempt is None else ExitCode.CUT_OFF
            self._end(attempt, code)
        if os.getppid() != self._parent:
            # A forked sibling may hold the other end of the pipe, so that the pipe
            # does not say it.
            self.stop()
        if self._is_asked_to_stop:
            self._is_asked_to_stop = False
            self.stop()

    def _write(self) -> None:
        """Show the parent what was counted."""
        numbers, attempt = self._numbers, self._running()[1]
        total = LoopStats.total([engine.stats for engine in self._engines])
        silence = max(engine.lease.silence for engine in self._engines)
        numbers[ChildNumber.READY] = float(total.exchanges > 0)
        numbers[ChildNumber.TICKED_AT] = now = time.monotonic()
        numbers[ChildNumber.ANSWERED_AT] = now - silence
        self._write_kill_time(attempt)
        numbers[ChildNumber.RUNNING] = float(attempt is not None)
        numbers[ChildNumber.TAKEN] = total.taken
        numbers[ChildNumber.REPORTED] = total.ended
        numbers[ChildNumber.STOLEN] = total.stolen
        numbers[ChildNumber.REFUSED] = total.refused
        numbers[ChildNumber.LOST_LEASES] = total.lost_leases
        numbers[ChildNumber.FAILURES] = total.failures
        numbers[ChildNumber.DUE] = total.due

    def _write_kill_time(self, attempt: Attempt | None) -> None:
        kill_at = 0.0
        if attempt is not None and attempt.timeout is not None:
            ran = max(0.0, time.time() - attempt.began_ns / 1e9)
            kill_at = time.monotonic() - ran + attempt.timeout + 2 * GRACE_SECONDS
        self._numbers[ChildNumber.KILL_AT] = kill_at

    def _measure(self) -> None:
        most, now = self._orders.max_memory, time.monotonic()
        if most is not None and now - self._measured_at >= _MEMORY_SECONDS:
            self._measured_at = now
            if _resident_mib() > most:
                self._recycle()

    def _recycle(self) -> None:
        self._exit_code = ExitCode.RECYCLED
        self.stop()

    def _interrupt(self, attempt: Attempt) -> bool:
        if attempt.definition.is_coroutine and attempt.is_overdue:
            # Its own time limit cancels it; if that does not help, it is given up.
            return False
        self._end(attempt)
        return True

    def _end(self, attempt: Attempt | None, code: ExitCode = ExitCode.GIVEN_UP) -> None:
        """End the process with the task that it runs, after reporting that."""
        # The next task must not begin, only to be ended with the process.
        self.stop()
        engine, running = self._running()
        if attempt is not None and running is not attempt:
            # It has just ended, and the process ends without cutting anything off.
            if code is ExitCode.GIVEN_UP:
                self._exit_code = ExitCode.RECYCLED
            return
        delivery: Delivery | None = None
        ending: Report | None = None
        if attempt is not None:
            attempt.is_interrupted = True
            if code is ExitCode.CUT_OFF:
                log_cut_off(attempt)
            delivery = attempt.task
            where = engine.slots.where(attempt) if attempt.is_overdue else None
            ending = engine.runner.stopped(attempt, "its process was ended", where)
        if self._lent is None:
            engine.loop.abandon(delivery, ending)
        else:
            if delivery is not None:
                engine.in_flight.finish(delivery, ending, 0.0)
            self._lent.end(self._engines)
        last = Thread(
            target=self._end_users_code, args=(engine, attempt, ending), daemon=True
        )
        last.start()
        last.join(_LAST_SECONDS)
        self._write()
        self._flush()
        self._numbers[ChildNumber.ENDED] = 1.0
        os._exit(code)

    def _end_users_code(
        self,
        engine: WorkerEngine[InlineSlot],
        attempt: Attempt | None,
        report: Report | None,
    ) -> None:
        """Call hooks and close resources, while the task itself still runs."""
        if attempt is not None:
            engine.runner.notify_end(attempt, report)
        for one in self._engines:
            one.close_resources()

    def _flush(self) -> None:
        for engine in self._engines:
            engine.flush()
        if self._forwarder is not None:
            self._forwarder.flush()


def _lent_thread() -> LentThread:
    # Imported here, since most pools have one queue and do not need it.
    from workstealing.workers.lent_slot import LentThread

    return LentThread()


def _resident_mib() -> float:
    """Return the MiB that this process holds, or the most it ever held."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (_MIB if sys.platform == "darwin" else 1024)
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB
