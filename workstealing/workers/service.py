"""Runs a pool as the only purpose of a process: signals in, an exit code out.

SIGTERM or SIGINT stops the pool. It takes no more tasks, hands back waiting ones at
once, lets running ones finish within the deadline, and hands back the rest without
counting an attempt. A second signal interrupts running tasks at once: the hot stop.
SIGHUP replaces processes one by one, so that they import the code again. Threads and
coroutines cannot be replaced, so the whole process is restarted.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from threading import Event, Thread
from types import TracebackType

from workstealing._checks import checked_seconds
from workstealing._printing import escaping_logger
from workstealing.errors import PoolStopped
from workstealing.workers.identity import STOP_SECONDS, UntilEmpty
from workstealing.workers.worker_pool import WorkerPool

__all__ = ("CUT_OFF", "Service")

logger = escaping_logger(__name__)

CUT_OFF = 1
"""The exit code if tasks had to be cut off and handed back."""

# How often the main thread looks up: some systems deliver signals only then.
_LOOK_SECONDS = 0.5


class _Intent(Enum):
    NONE = "go on"
    STOP = "stop"
    RESTART = "restart"


class Service:
    """Runs a pool in the main thread until a signal, or its own end.

    Args:
        pool: not started yet.
        stop_timeout: seconds for running tasks to end after the first signal.
    """

    def __init__(self, pool: WorkerPool, *, stop_timeout: float = STOP_SECONDS) -> None:
        self._pool = pool
        self._stop_timeout = checked_seconds(stop_timeout, "the timeout", zero=True)
        self._intent = _Intent.NONE
        self._has_begun = Event()
        self._exit_code: int | None = None

    @property
    def wants_restart(self) -> bool:
        """Whether it ended only to be restarted with new code."""
        return self._intent is _Intent.RESTART

    def run(self, *, until_empty: UntilEmpty = False) -> int:
        """Work, and return the exit code.

        0: each task that was begun has ended. 1: tasks were cut off and handed back.
        128 plus the number of the signal: the hot stop.
        """
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        with _SignalWatch(numbers, self._on_signal):
            try:
                self._pool.start(until_empty=until_empty)
            finally:
                self._has_begun.set()
            while not self._pool.wait(_LOOK_SECONDS):
                pass
            # It has ended already; this only tells how many tasks were cut off.
            cut = self._pool.stop(timeout=0.0)
        if self._exit_code is not None:
            return self._exit_code
        return CUT_OFF if cut else 0

    def reload(self) -> None:
        """Switch to the current code."""
        if self._pool.kind == "processes":
            logger.info("replacing the processes one by one")
            self._pool.reload()
        elif self._intent is _Intent.NONE:
            self._intent = _Intent.RESTART
            self._take_no_more()
            logger.info("finishing running tasks, then restarting with the new code")
            self._stop(hot=False)

    def _on_signal(self, number: signal.Signals) -> None:
        # A signal that comes while the pool starts is for the pool that has started.
        self._has_begun.wait()
        if number is signal.SIGHUP:
            self.reload()
        elif self._intent is _Intent.STOP:
            logger.warning("%s again: stopping at once", number.name)
            self._exit_code = 128 + number
            self._stop(hot=True)
        else:
            self._intent = _Intent.STOP
            self._take_no_more()
            logger.info(
                "%s: finishing running tasks (%d) for up to %g s; send it again to"
                " stop at once",
                number.name,
                self._pool.stats().running,
                self._stop_timeout,
            )
            self._stop(hot=False)

    def _take_no_more(self) -> None:
        # Before it is logged, so that the log is true. The pool may not have started.
        with suppress(PoolStopped):
            self._pool.quiet()

    def _stop(self, *, hot: bool) -> None:
        # In a thread of its own: the next signal is to be received meanwhile.
        Thread(target=self._end, args=(hot,), name="stop", daemon=True).start()

    def _end(self, hot: bool) -> None:
        self._pool.stop(hot=hot, timeout=self._stop_timeout)


class _SignalWatch:
    """Receives signals in a thread, while the main thread may be busy with anything.

    To be entered in the main thread.

    Args:
        numbers: of the signals to receive.
        on_signal: is called with each, in a thread; the next one waits until it has
            returned.
    """

    def __init__(
        self,
        numbers: Iterable[signal.Signals],
        on_signal: Callable[[signal.Signals], None],
    ) -> None:
        self._numbers = tuple(numbers)
        self._on_signal = on_signal
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._thread = Thread(target=self._listen, name="signals", daemon=True)

    def __enter__(self) -> _SignalWatch:
        self._before = {
            number: signal.signal(number, lambda *_: None) for number in self._numbers
        }
        self._former_wakeup_fd = signal.set_wakeup_fd(self._writer.fileno())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.set_wakeup_fd(self._former_wakeup_fd)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._writer.close()
        self._thread.join()
        self._reader.close()

    def _listen(self) -> None:
        # Each signal is one byte, its number; nothing is the end.
        while received := self._reader.recv(1):
            if received[0] in self._numbers:
                self._on_signal(signal.Signals(received[0]))
