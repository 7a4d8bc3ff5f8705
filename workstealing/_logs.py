"""Logs from a thread that nobody waits for.

Handlers and filters are the user's, and the threads that keep a worker alive must not
depend on them: one daemon thread per process passes records on to `logging`. A record
is logged in the context of its caller, so a filter that reads a context variable sees
the caller's.

What a handler raises is dropped with the record. A handler that blocks delays the
records behind it; beyond ten thousand of those, further ones are dropped and counted.

Observers of tasks are called in the same way, by a thread of their own.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Event, Lock, Thread, current_thread, get_ident
from typing import Any

from workstealing._forking import reset_in_children
from workstealing._printing import escape_record

__all__ = (
    "FLUSH_SECONDS",
    "MOST_CALLS",
    "BackgroundCalls",
    "BackgroundLogger",
    "flush_logs",
)

MOST_CALLS = 10_000
FLUSH_SECONDS = 1.0


class BackgroundLogger:
    """Logs under one name, in the order of the calls, without waiting."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self.is_enabled = self._logger.isEnabledFor
        """Whether records of a level are logged at all; asked once per task."""

    def debug(self, message: str, *arguments: object) -> None:
        """Log at DEBUG."""
        self._log(logging.DEBUG, message, arguments)

    def info(self, message: str, *arguments: object) -> None:
        """Log at INFO."""
        self._log(logging.INFO, message, arguments)

    def warning(self, message: str, *arguments: object) -> None:
        """Log at WARNING."""
        self._log(logging.WARNING, message, arguments)

    def error(
        self, message: str, *arguments: object, error: BaseException | None = None
    ) -> None:
        """Log at ERROR, with the traceback of *error* if there is one."""
        self._log(logging.ERROR, message, arguments, error)

    def _log(
        self,
        level: int,
        message: str,
        arguments: tuple[object, ...],
        error: BaseException | None = None,
    ) -> None:
        if not self._logger.isEnabledFor(level):
            return
        caller = sys._getframe(2)  # noqa: SLF001 - as `logging` itself does
        facts = {
            "created": time.time(),
            "thread": get_ident(),
            "threadName": current_thread().name,
        }
        make = partial(
            _handle,
            self._logger,
            level,
            caller.f_code.co_filename,
            caller.f_lineno,
            caller.f_code.co_name,
            message,
            arguments,
            error,
            facts,
        )
        _THREAD.put(partial(copy_context().run, make))


def flush_logs(seconds: float = FLUSH_SECONDS) -> bool:
    """Wait until all that was logged so far was passed on; return whether it was."""
    return _THREAD.flush(seconds)


class BackgroundCalls:
    """Calls functions in the order in which they come, in a thread of its own.

    Args:
        name: of the thread.
        dropped: is called in the thread with the number of calls that were dropped.
    """

    def __init__(self, name: str, dropped: Callable[[int], None]) -> None:
        self._name = name
        self._tell_dropped = dropped
        self._reset_after_fork()
        reset_in_children(self, BackgroundCalls._reset_after_fork)

    def _reset_after_fork(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | Event] = SimpleQueue()
        self._starting = Lock()
        self._is_started = False
        self._dropped = 0

    def put(self, call: Callable[[], None]) -> None:
        """Have a function called soon."""
        if self._calls.qsize() >= MOST_CALLS:
            self._dropped += 1
            return
        self._calls.put(call)
        if not self._is_started:
            self._start()

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all calls so far were made; return whether they were."""
        if not self._is_started:
            return True
        passed = Event()
        self._calls.put(passed)
        return passed.wait(seconds)

    def _start(self) -> None:
        with self._starting:
            if not self._is_started:
                # At a limit of threads, the next call tries again.
                with suppress(RuntimeError):
                    Thread(target=self._run, name=self._name, daemon=True).start()
                    self._is_started = True

    def _run(self) -> None:
        while True:
            call = self._calls.get()
            if isinstance(call, Event):
                call.set()
                continue
            dropped, self._dropped = self._dropped, 0
            # Reporting an error of the user's code might call that code again.
            with suppress(BaseException):
                call()
            # Otherwise all that it refers to would live until the next call comes.
            del call
            if dropped:
                with suppress(BaseException):
                    self._tell_dropped(dropped)


def _tell_dropped(number: int) -> None:
    logging.getLogger(__name__).warning(
        "%d records were dropped: a logging handler is too slow", number
    )


def _handle(
    logger: logging.Logger,
    level: int,
    path: str,
    line: int,
    function: str,
    message: str,
    arguments: tuple[Any, ...],
    error: BaseException | None,
    facts: dict[str, Any],
) -> None:
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    record = logger.makeRecord(
        logger.name, level, path, line, message, arguments, exc_info, function
    )
    vars(record).update(facts)
    escape_record(record)
    logger.handle(record)


_THREAD = BackgroundCalls("workstealing-log", _tell_dropped)
