"""One child process of a pool, as the pool sees it."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Lock
from typing import Any

import msgspec

from workstealing._logs import BackgroundLogger
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.connect import address_for_children
from workstealing.errors import ResourceFailed
from workstealing.workers.child_logs import LogReader
from workstealing.workers.child_protocol import (
    HOT,
    ChildNumber,
    ChildNumbers,
    ChildOrders,
)
from workstealing.workers.identity import worker_name
from workstealing.workers.process_child import run_child
from workstealing.workers.supervisor import GRACE_SECONDS

__all__ = ("ChildHandle",)

logger = BackgroundLogger(__name__)

# The address of Redis goes to children by the environment, which other pools share.
_starting = Lock()


@dataclass(slots=True)
class ChildHandle:
    """A child process: how to tell it something, and what has become of it."""

    index: int
    name: str
    incarnation: str
    process: BaseProcess
    pipe: Connection
    numbers: ChildNumbers
    is_leaving: bool = False
    """The pool has told it to end, because it is surplus or is replaced."""
    is_killed: bool = False
    was_ready: bool = False
    has_worked: bool = False
    """It has imported its queue and opened its resources."""
    _sent: bytes = field(default=b"", init=False)

    @classmethod
    def start(
        cls,
        context: Any,
        orders: ChildOrders,
        queues: Sequence[TaskQueue],
        logs: LogReader,
    ) -> ChildHandle:
        """Start a process of a `multiprocessing` context, and read its logs."""
        ours, theirs = context.Pipe()
        log_reading, log_writing = context.Pipe(duplex=False)
        numbers = ChildNumbers(context)
        name = worker_name(orders.pool, orders.index)
        process = context.Process(
            target=run_child, args=(orders, numbers, theirs, log_writing), name=name
        )
        with ExitStack() as stack:
            stack.enter_context(_starting)
            for queue in queues:
                redis = internals_of(queue).source.redis
                stack.enter_context(address_for_children(redis))
            stack.enter_context(_without_interrupts())
            process.start()
        theirs.close()
        log_writing.close()
        logs.add(log_reading)
        return cls(orders.index, name, orders.incarnation, process, ours, numbers)

    def send(self, order: bytes) -> None:
        """Send an order, once: a pipe that nobody reads would fill up."""
        if order == self._sent or self._sent == HOT:
            return
        self._sent = order
        try:
            self.pipe.send_bytes(order)
        except OSError:
            logger.debug("worker process %s is gone already", self.process.pid)

    def is_stuck(self) -> bool:
        """Return whether a task beyond its time limit keeps all threads from running.

        Otherwise the supervisor of the child would have ended it.
        """
        kill_at, now = self.numbers[ChildNumber.KILL_AT], time.monotonic()
        silence = now - self.numbers[ChildNumber.TICKED_AT]
        return 0.0 < kill_at < now and silence > GRACE_SECONDS

    def problem(self) -> ResourceFailed | None:
        """Read which resource it could not open; None if it does not say."""
        try:
            if self.pipe.poll():
                return ResourceFailed(*msgspec.json.decode(self.pipe.recv_bytes()))
        except (EOFError, OSError):
            pass
        return None

    @property
    def cause(self) -> str:
        """The signal or the exit code with which it ended."""
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"exit code {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            # Python names no real-time signals but the first and the last.
            return f"signal {-code}"


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT while a child imports its code; the child unblocks it."""
    # With the first child Python starts this process, and unblocks Ctrl-C afterwards.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
