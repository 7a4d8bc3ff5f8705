"""Lets the children of a pool log like their parent.

A child made by `spawn` or `forkserver` has none of its parent's logging configuration.
Unless its own imports configure logging, it gets the levels of its parent and one
handler that sends each record to the parent, where it passes the parent's loggers,
filters, handlers and formats. A forked child has all of these itself.

A record travels as JSON, with its message and traceback already formatted. A child
never waits for its parent: beyond a thousand records that are not read yet, further
ones are dropped.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from multiprocessing.connection import Connection, wait
from queue import Full, Queue
from threading import Event, Lock, Thread
from typing import Any

__all__ = ("LogForwarder", "LogReader", "parent_levels", "set_up_logging")

_MOST_RECORDS = 1_000
_FLUSH_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_FORMATTER = logging.Formatter()
# What a formatter can show of a record besides its message.
_PLAIN_FIELDS = (
    "name",
    "levelno",
    "levelname",
    "pathname",
    "filename",
    "module",
    "lineno",
    "funcName",
    "created",
    "msecs",
    "relativeCreated",
    "thread",
    "threadName",
    "processName",
    "process",
    "taskName",
)


def parent_levels() -> dict[str, int]:
    """Return the levels that were set in this process, by name of the logger."""
    levels = {"": logging.getLogger().level}
    for name, found in tuple(logging.Logger.manager.loggerDict.items()):
        if isinstance(found, logging.Logger) and found.level != logging.NOTSET:
            levels[name] = found.level
    return levels


def set_up_logging(levels: Mapping[str, int], pipe: Connection) -> LogForwarder | None:
    """Forward the records of this child, unless its imports configured logging."""
    root = logging.getLogger()
    if root.handlers:
        return None
    for name, level in levels.items():
        found = logging.getLogger(name or None)
        if not name or found.level == logging.NOTSET:
            found.setLevel(level)
    forwarder = LogForwarder(pipe)
    root.addHandler(forwarder)
    return forwarder


class LogForwarder(logging.Handler):
    """Sends records through a pipe, from a thread of its own."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self._pipe = pipe
        self._records: Queue[bytes | Event] = Queue(_MOST_RECORDS)
        Thread(target=self._send, name="workstealing-log-pipe", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record; drop it if the parent does not read."""
        try:
            self._records.put_nowait(_encode(record))
        except Full:
            pass
        except Exception:  # noqa: BLE001 - as every handler does
            self.handleError(record)

    def flush(self) -> None:
        """Wait a moment for what was queued to be sent."""
        sent = Event()
        try:
            self._records.put_nowait(sent)
        except Full:
            return
        sent.wait(_FLUSH_SECONDS)

    def _send(self) -> None:
        while True:
            record = self._records.get()
            if isinstance(record, Event):
                record.set()
                continue
            try:
                self._pipe.send_bytes(record)
            except OSError:
                # The parent is gone; so will be this process.
                return


class LogReader:
    """Passes the records of all children on to the loggers of this process."""

    def __init__(self, name: str) -> None:
        self._pipes: set[Connection] = set()
        self._mutex = Lock()
        self._is_over = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def add(self, pipe: Connection) -> None:
        """Read the records of one more child, until it closes its end."""
        with self._mutex:
            self._pipes.add(pipe)

    def stop(self) -> None:
        """Read what is there, and end; waits a moment for that."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join(_FLUSH_SECONDS)

    def _run(self) -> None:
        while True:
            is_last = self._is_over.is_set()
            with self._mutex:
                pipes = tuple(self._pipes)
            if not pipes:
                if is_last:
                    return
                self._is_over.wait(_LOOK_SECONDS)
                continue
            ready = wait(pipes, 0 if is_last else _LOOK_SECONDS)
            for pipe in ready:
                self._read(pipe)  # type: ignore[arg-type]
            if is_last and not ready:
                return

    def _read(self, pipe: Connection) -> None:
        try:
            data = pipe.recv_bytes()
        except (EOFError, OSError):
            with self._mutex:
                self._pipes.discard(pipe)
            pipe.close()
            return
        try:
            fields: dict[str, Any] = json.loads(data)
            record = logging.makeLogRecord(fields)
            found = logging.getLogger(record.name)
            if found.isEnabledFor(record.levelno):
                found.handle(record)
        except BaseException:  # noqa: BLE001, S110 - it is the user's handler
            pass


def _encode(record: logging.LogRecord) -> bytes:
    fields = {name: getattr(record, name, None) for name in _PLAIN_FIELDS}
    fields["msg"] = record.getMessage()
    if record.exc_info and not record.exc_text:
        fields["exc_text"] = _FORMATTER.formatException(record.exc_info)
    else:
        fields["exc_text"] = record.exc_text
    if record.stack_info:
        fields["stack_info"] = record.stack_info
    # What the user gave as `extra=`, as far as JSON can say it.
    known = {*vars(_BLANK), "message", "asctime"}
    extra = {
        name: value
        for name, value in vars(record).items()
        if name not in known and isinstance(value, str | int | float | bool | None)
    }
    return json.dumps(extra | fields).encode()


_BLANK = logging.LogRecord("", 0, "", 0, "", (), None)
