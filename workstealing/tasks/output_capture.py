"""Captures what one task logs and prints while others run beside it.

A capture is bound to its task by a context variable: tasks in other threads, and other
coroutines of the same thread, do not get into each other's records. A thread that the
task itself starts belongs to it if it was started with `contextvars.copy_context()`, or
if it writes to `ctx.stdout` and `ctx.stderr`.

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

import msgspec

from workstealing.clock import utc_time
from workstealing.tasks.context import ExecutionContext, control_of
from workstealing.tasks.outcome import beginning

__all__ = (
    "LONGEST_MESSAGE",
    "Capture",
    "LogRecord",
    "Sink",
    "Stream",
)

LONGEST_MESSAGE = 8 * 1024
"""Bytes of one message; the rest is cut off."""

Stream = Literal["log", "stdout", "stderr"]


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line that a task printed, or one record that it logged."""

    time: int
    """When, in milliseconds since 1970, by the clock of the worker."""
    message: str
    """Without the end of the line; with its traceback, if it has one."""
    stream: Stream = "log"
    level: str = ""
    """As `INFO`; empty for what was printed."""
    logger: str = ""
    attempt: int = 1
    sequence: int
    """Counts from 1, anew each time that the task is run."""
    worker: str = ""
    dropped: int = 0
    """How many records before it were lost."""

    def encode(self) -> bytes:
        """Write it as JSON."""
        return _ENCODE(self)

    @staticmethod
    def read(record: bytes) -> LogRecord:
        """Read what `encode` wrote."""
        return _DECODE(record)

    def __str__(self) -> str:
        if self.stream != "log":
            return self.message
        at = utc_time(self.time)
        when = f"{self.time} ms after 1970" if at is None else f"{at:%H:%M:%S}"
        return f"{when} {self.level} {self.logger}: {self.message}"


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(LogRecord).decode


Sink = Callable[[LogRecord], bool]
"""Takes a record; false or an error means that it is lost."""

_current: ContextVar[Capture | None] = ContextVar("workstealing_capture", default=None)


class Capture:
    """Gives what a task logs and prints to a sink, one record after the other.

    An error of the sink never reaches the task: the record is dropped and counted, and
    what was printed goes to where it would have gone without us.
    """

    def __init__(
        self,
        context: ExecutionContext,
        sink: Sink,
        time_ns: Callable[[], int] | None = None,
    ) -> None:
        self._context = context
        self._sink = sink
        self._time_ns = time_ns or time.time_ns
        self._mutex = RLock()
        self._is_recording = False
        self._sequence = 0
        self._dropped = 0
        self._token: Token[Capture | None] | None = None
        self.stdout = _Lines(self, "stdout")
        self.stderr = _Lines(self, "stderr")

    def __enter__(self) -> Capture:
        _INSTALLED.enter()
        self._token = _current.set(self)
        control = control_of(self._context)
        control.stdout, control.stderr = self.stdout, self.stderr
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        self.stdout.flush()
        self.stderr.flush()
        control = control_of(self._context)
        control.stdout = control.stderr = None
        _current.reset(self._token)
        _INSTALLED.leave()

    def record(
        self, message: str, stream: Stream, level: str = "", logger: str = ""
    ) -> bool:
        """Give one record to the sink; return whether it was taken."""
        with self._mutex:
            if self._is_recording:
                # The sink itself logs, or prints.
                return False
            self._is_recording = True
            try:
                self._sequence += 1
                taken = LogRecord(
                    time=self._time_ns() // 1_000_000,
                    message=beginning(message, LONGEST_MESSAGE),
                    stream=stream,
                    level=level,
                    logger=logger,
                    attempt=self._context.attempt,
                    sequence=self._sequence,
                    worker=self._context.worker,
                    dropped=self._dropped,
                )
                is_taken = self._sink(taken)
            except Exception:  # noqa: BLE001 - the task has nothing to do with it
                is_taken = False
            finally:
                self._is_recording = False
            self._dropped = 0 if is_taken else self._dropped + 1
            return is_taken


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
            self._record(line)
        if len(self._rest) >= LONGEST_MESSAGE:
            self.flush()
        return len(text)

    def flush(self) -> None:
        with self._mutex:
            rest, self._rest = self._rest, ""
        if rest:
            self._record(rest)

    def _record(self, line: str) -> None:
        if not self._capture.record(line, self._stream):
            _INSTALLED.real(self._stream).write(f"{line}\n")


class _Handler(logging.Handler):
    """Gives records to the capture of the task that logs, if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        capture = _current.get()
        if capture is not None:
            try:
                message = _FORMATTER.format(record)
            except Exception as error:  # noqa: BLE001 - it is the user's text
                message = f"(its text cannot be shown: {type(error).__name__})"
            capture.record(message, "log", record.levelname, record.name)


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


class _Nowhere(io.TextIOBase):
    """Stands for a stream that is closed, for which Python has None."""

    def write(self, text: str) -> int:
        return len(text)


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
                setattr(sys, stream, _Redirect(stream, self.real(stream)))

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
                    real = None if ours.real is _NOWHERE else ours.real
                    setattr(sys, stream, real)

    def real(self, stream: str) -> TextIO:
        """Return where a stream leads without us."""
        ours = getattr(sys, stream)
        if isinstance(ours, _Redirect):
            return ours.real
        return _NOWHERE if ours is None else cast("TextIO", ours)


_STREAMS: tuple[Literal["stdout", "stderr"], ...] = ("stdout", "stderr")
_NOWHERE = cast("TextIO", _Nowhere())
_FORMATTER = logging.Formatter("%(message)s")
_INSTALLED = _Installed()
