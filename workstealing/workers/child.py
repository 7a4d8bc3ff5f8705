"""A worker that is a process of a pool: what runs in the child.

It runs tasks in its main thread. A task that is over its time, or does not heed a
cancellation, ends with the whole process: its heart reports it, hands back the rest,
and exits. The parent puts another in its place.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from multiprocessing.connection import Connection
from threading import Event, Thread

from workstealing.client.queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK
from workstealing.tasks.attempt import Attempt
from workstealing.tasks.executing import Executor
from workstealing.workers.board import Board, Line
from workstealing.workers.heart import Heart
from workstealing.workers.memory import resident_mib
from workstealing.workers.overseer import GRACE_SECONDS, Overseer
from workstealing.workers.placing import Place
from workstealing.workers.plain import plain
from workstealing.workers.running import Runner
from workstealing.workers.worker import Worker

__all__ = ("HOT", "STOP", "ChildOrders", "ExitCode", "main")

STOP, HOT = b"stop", b"hot"
_MEMORY_SECONDS = 1.0


class ExitCode(IntEnum):
    """How a child tells its parent why it ended."""

    DONE = 0
    """It was asked to, or nothing is left in the queue."""
    RECYCLED = 10
    """It has run as many tasks, or holds as much memory, as it should."""
    CUT_OFF = 11
    """It was told to end at once, and a task was ended with it."""
    GIVEN_UP = 12
    """A task was over its time, or did not heed its cancellation."""


@dataclass(frozen=True, slots=True)
class ChildOrders:
    """What a child is told at its birth."""

    place: Place
    pool: str
    index: int
    incarnation: str
    batch: int
    until_empty: bool
    max_tasks: int | None
    max_memory: float | None


def main(orders: ChildOrders, board: Board, pipe: Connection) -> None:
    """Work until told to stop; the parent starts this in a new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    worker = _ChildWorker(plain(orders.place.find()), orders, board)
    board[Line.BORN] = 1.0
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    Thread(target=_obey, args=(pipe, worker), name="orders", daemon=True).start()
    worker.run(until_empty=orders.until_empty)
    worker.write(None)
    raise SystemExit(worker.exit_code)


def _obey(pipe: Connection, worker: _ChildWorker) -> None:
    order = b""
    while order != HOT:
        try:
            order = pipe.recv_bytes()
        except (EOFError, OSError):
            # The parent is gone, and nobody else would ever say it.
            worker.stop()
            return
        worker.stop()
    worker.cut_off()


class _ChildWorker(Worker):
    """A worker whose heart also sees to limits, and to its parent."""

    # No signal reaches it: such an error is the task's own.
    _is_interruptible = False

    def __init__(self, queue: TaskQueue, orders: ChildOrders, board: Board) -> None:
        batch = min(orders.batch, orders.max_tasks or orders.batch)
        super().__init__(queue, pool=orders.pool, index=orders.index, batch=batch)
        self._orders = orders
        self._board = board
        self._cut = Event()
        self._measured_at = 0.0
        self._parent = os.getppid()
        self._heart: Heart | None = None
        self.exit_code = ExitCode.DONE

    def cut_off(self) -> None:
        """End with what runs, handing it back; from any thread."""
        self._cut.set()

    def _incarnation(self) -> str:
        return self._orders.incarnation

    def _watch(
        self, heart: Heart, executor: Executor, runner: Runner
    ) -> Callable[[], None]:
        self._heart = heart
        # It may hold the interpreter from its first moment, so that nobody looks.
        runner.announce = self._limit
        place = _MainThread(heart, executor, runner)
        overseer = Overseer(
            lambda: (place,),
            lambda _, attempt: place.end(attempt),
            lambda: None,
            SYSTEM_CLOCK,
        )

        def look() -> None:
            self.write(runner.attempt)
            overseer.look()
            self._measure()
            if self._cut.is_set():
                place.cut_off()
            if os.getppid() != self._parent:
                # A forked sibling may hold the other end of the pipe, so it tells
                # nothing.
                self.stop()

        return look

    def write(self, attempt: Attempt | None) -> None:
        """Tell the parent what was counted."""
        board, stats = self._board, self.stats
        board[Line.READY] = float(stats.exchanges > 0)
        board[Line.PULSE] = now = time.monotonic()
        if self._heart is not None:
            board[Line.ANSWERED] = now - self._heart.silence
        self._limit(attempt)
        board[Line.RUNNING] = float(attempt is not None)
        board[Line.TAKEN] = stats.taken
        board[Line.STOLEN] = stats.stolen
        board[Line.REFUSED] = stats.refused
        board[Line.LOST_LEASES] = stats.lost_leases
        board[Line.FAILURES] = stats.failures
        board[Line.DUE] = stats.due

    def _limit(self, attempt: Attempt | None) -> None:
        kill_at = 0.0
        if attempt is not None and attempt.timeout is not None:
            ran = max(0.0, time.time() - attempt.began_ns / 1e9)
            kill_at = time.monotonic() - ran + attempt.timeout + 2 * GRACE_SECONDS
        self._board[Line.KILL_AT] = kill_at

    def _is_to_stop(self) -> bool:
        most = self._orders.max_tasks
        if most is not None and self._heart is not None and self._heart.begun >= most:
            self._recycle()
        return super()._is_to_stop()

    def _measure(self) -> None:
        most, now = self._orders.max_memory, time.monotonic()
        if most is not None and now - self._measured_at >= _MEMORY_SECONDS:
            self._measured_at = now
            if resident_mib() > most:
                self._recycle()

    def _recycle(self) -> None:
        self.exit_code = ExitCode.RECYCLED
        self.stop()


class _MainThread:
    """The only slot of a child: nothing stops what runs there but the end of all."""

    def __init__(self, heart: Heart, executor: Executor, runner: Runner) -> None:
        self._heart = heart
        self._executor = executor
        self._runner = runner

    @property
    def attempt(self) -> Attempt | None:
        return self._runner.attempt

    def interrupt(self, attempt: Attempt) -> bool:
        if attempt.definition.is_coroutine and attempt.is_overdue:
            # Its own time limit is at it; if that does not help, it is given up.
            return False
        self.end(attempt)
        return True

    def end(self, attempt: Attempt) -> None:
        self._end(attempt, ExitCode.GIVEN_UP)

    def cut_off(self) -> None:
        attempt = self._runner.attempt
        self._end(attempt, ExitCode.DONE if attempt is None else ExitCode.CUT_OFF)

    def _end(self, attempt: Attempt | None, code: ExitCode) -> None:
        report = None
        if attempt is not None:
            attempt.is_interrupted = True
            report = self._executor.stopped(attempt, "its process was ended")
        self._heart.cut_off(report)
        os._exit(code)
