"""Catches what one task logs and prints while others run beside it.

Bound to the task by a context variable: tasks in other threads, and other coroutines
of the same thread, do not get into each other's records. A thread that the task itself
starts belongs to it if it was started with `contextvars.copy_context()`, or if it
writes to `ctx.stdout` and `ctx.stderr`.

The root logger and `sys.stdout` and `sys.stderr` are touched only while such a task
runs. What a logger does not pass on to the root, by its level or its `propagate`, is
not seen here either.
"""

from __future__ import annotations

import io
import logging
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from threading import Lock, RLock
from typing import Any, Literal, TextIO, cast

from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.logging import LONGEST_MESSAGE, LogRecord, Stream
from workstealing.tasks.outcome import beginning

__all__ = ("Capture", "Sink")

Sink = Callable[[LogRecord], bool]
"""Takes a record; false or an error means that it is lost."""

_current: ContextVar[Capture | None] = ContextVar("workstealing_capture", default=None)


class Capture:
    """Gives all that a task tells to a sink, one record after the other.

    An error of the sink never reaches the task: the record is dropped and counted, and
    what was printed goes to where it would have gone without us.
    """

    def __init__(self, context: ExecutionContext, sink: Sink) -> None:
        self._context = context
        self._sink = sink
        self._mutex = RLock()
        self._is_telling = False
        self._sequence = 0
        self._dropped = 0
        self._token: Token[Capture | None] | None = None
        self.stdout = _Lines(self, "stdout")
        self.stderr = _Lines(self, "stderr")

    def __enter__(self) -> Capture:
        _INSTALLED.enter()
        self._token = _current.set(self)
        self._context.divert(self.stdout, self.stderr)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        self.stdout.flush()
        self.stderr.flush()
        self._context.divert(None, None)
        _current.reset(self._token)
        _INSTALLED.leave()

    def tell(
        self, message: str, stream: Stream, level: str = "", logger: str = ""
    ) -> bool:
        """Give one record to the sink; tell whether it was taken."""
        with self._mutex:
            if self._is_telling:
                # The sink itself logs, or prints.
                return False
            self._is_telling = True
            try:
                self._sequence += 1
                record = LogRecord(
                    time=time.time_ns() // 1_000_000,
                    message=beginning(message, LONGEST_MESSAGE),
                    stream=stream,
                    level=level,
                    logger=logger,
                    attempt=self._context.attempt,
                    sequence=self._sequence,
                    worker=self._context.worker,
                    dropped=self._dropped,
                )
                is_told = self._sink(record)
            except Exception:  # noqa: BLE001 - the task has nothing to do with it
                is_told = False
            finally:
                self._is_telling = False
            self._dropped = 0 if is_told else self._dropped + 1
            return is_told


class _Lines(io.TextIOBase):
    """A stream of one task: each line is a record, and what is left at a flush."""

    def __init__(self, capture: Capture, stream: Literal["stdout", "stderr"]) -> None:
        super().__init__()
        self._capture = capture
        self._stream = stream
        self._rest = ""
        self._mutex = Lock()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._mutex:
            *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._tell(line)
        if len(self._rest) >= LONGEST_MESSAGE:
            self.flush()
        return len(text)

    def flush(self) -> None:
        with self._mutex:
            rest, self._rest = self._rest, ""
        if rest:
            self._tell(rest)

    def _tell(self, line: str) -> None:
        if not self._capture.tell(line, self._stream):
            _INSTALLED.real(self._stream).write(f"{line}\n")


class _Handler(logging.Handler):
    """Gives records to the capture of the task that logs, if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        capture = _current.get()
        if capture is not None:
            try:
                message = _FORMATTER.format(record)
            except Exception as error:  # noqa: BLE001 - it is the user's text
                message = f"(its text cannot be made: {type(error).__name__})"
            capture.tell(message, "log", record.levelname, record.name)


class _Redirect(io.TextIOBase):
    """Stands for `sys.stdout` or `sys.stderr`, for tasks and for all others."""

    def __init__(self, stream: Literal["stdout", "stderr"], real: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self.real = real

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.real.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.real.errors

    @property
    def buffer(self) -> Any:
        return self.real.buffer

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return _current.get() is None and self.real.isatty()

    def fileno(self) -> int:
        return self.real.fileno()

    def write(self, text: str) -> int:
        self._own().write(text)
        return len(text)

    def flush(self) -> None:
        self._own().flush()

    def _own(self) -> Any:
        capture = _current.get()
        if capture is None:
            return self.real
        return capture.stdout if self._stream == "stdout" else capture.stderr


class _Installed:
    """What is touched of the process, as long as anything is captured."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._number = 0
        self._handler = _Handler()

    def enter(self) -> None:
        with self._mutex:
            self._number += 1
            if self._number > 1:
                return
            logging.getLogger().addHandler(self._handler)
            for stream in _STREAMS:
                real = getattr(sys, stream)
                if real is not None:
                    setattr(sys, stream, _Redirect(stream, real))

    def leave(self) -> None:
        with self._mutex:
            self._number -= 1
            if self._number:
                return
            logging.getLogger().removeHandler(self._handler)
            for stream in _STREAMS:
                ours = getattr(sys, stream)
                # Somebody may have put another in its place meanwhile.
                if isinstance(ours, _Redirect):
                    setattr(sys, stream, ours.real)

    def real(self, stream: str) -> TextIO:
        """Return where a stream leads without us."""
        ours = getattr(sys, stream)
        return ours.real if isinstance(ours, _Redirect) else cast("TextIO", ours)


_STREAMS: tuple[Literal["stdout", "stderr"], ...] = ("stdout", "stderr")
_FORMATTER = logging.Formatter("%(message)s")
_INSTALLED = _Installed()
