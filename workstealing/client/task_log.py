"""Receives what a task logs and prints, while it runs.

Records come in the order in which they were written, also when a worker dies and
another one runs the task again. What the log of a task no longer has (see
`workstealing.queue.task_output_calls` for how much is kept) is not received.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Event, Thread
from typing import Any, Protocol

from workstealing._printing import escaping_logger, printable
from workstealing.errors import RedisError
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import Flow, Invoke, Sleep, ask
from workstealing.queue.task_output_calls import BEGINNING, await_log, read_log
from workstealing.tasks.json_values import NOT_JSON
from workstealing.tasks.output_capture import LogRecord
from workstealing.tasks.submission import LogSink

__all__ = (
    "LoggingChannel",
    "MemoryChannel",
    "QueueLog",
    "TaskLogs",
    "async_following",
    "following",
)

logger = escaping_logger(__name__)

_LOOK_SECONDS = 0.2
_PAUSE_SECONDS = 0.5
_DRAIN_SECONDS = 10.0


class LoggingChannel:
    """Receives the records of a task: `memory()`, `console()`, or a function of yours.

    It is called by one thread at a time for each task.
    """

    def __init__(self, take: Callable[[LogRecord], object]) -> None:
        self._take = take

    @staticmethod
    def memory() -> MemoryChannel:
        """Keep all records in a list, `records`."""
        return MemoryChannel()

    @staticmethod
    def console() -> LoggingChannel:
        """Show what is printed, and on the standard error what is logged.

        Control characters are escaped.
        """
        return LoggingChannel(_show)

    def take(self, record: LogRecord) -> None:
        """Receive one record; an error of the function is logged and not raised."""
        try:
            self._take(record)
        except Exception:
            logger.exception(
                "a logging channel failed on a record; the next one is tried"
            )


class MemoryChannel(LoggingChannel):
    """Keeps all records."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        super().__init__(self.records.append)


class TaskLogs(Protocol):
    """What a handle reads logs from: Redis, or what runs in this process."""

    def read(self, task_id: str) -> Flow[list[LogRecord]]:
        """Read what is kept of the log of a task."""

    def follow(
        self,
        task_id: str,
        sink: LogSink,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Flow[None]:
        """Pass on what a task logs until it ends, or *is_wanted* returns False.

        Records that were written by then are passed on in any case.
        """


class QueueLog:
    """The logs of the tasks of one queue."""

    def __init__(self, keys_of: Callable[[str], Flow[QueueKeys]]) -> None:
        self._keys_of = keys_of

    def read(self, task_id: str) -> Flow[list[LogRecord]]:
        """Read what is kept of the log of a task."""
        records: list[LogRecord] = []
        after, keys = BEGINNING, (yield from self._keys_of(task_id))
        while True:
            page = yield from ask(read_log(keys, task_id, after))
            if not page.records:
                return records
            records += _readable(page.records)
            after = page.after

    def page(self, task_id: str, after: str) -> Flow[tuple[list[LogRecord], str]]:
        """Read some records after a place, and the next place."""
        keys = yield from self._keys_of(task_id)
        page = yield from ask(read_log(keys, task_id, after))
        return list(_readable(page.records)), page.after

    def follow(
        self,
        task_id: str,
        sink: LogSink,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Flow[None]:
        """Pass on what a task logs until it ends, or *is_wanted* returns False."""
        after = BEGINNING
        while True:
            # Asked before the log is read, so that the last records are not missed.
            is_last = not is_wanted()
            try:
                keys = yield from self._keys_of(task_id)
                page = yield from ask(read_log(keys, task_id, after))
                for record in _readable(page.records):
                    yield Invoke(sink.take, (record,))
                after = page.after
                if page.is_over or (is_last and not page.records):
                    return
                if not page.records:
                    wait = await_log(keys, task_id, after, _LOOK_SECONDS)
                    yield from ask(wait)
            except RedisError as error:
                if is_last:
                    return
                logger.debug(
                    "the log of task %s cannot be read now: %r", task_id, error
                )
                yield Sleep(_PAUSE_SECONDS)


@contextmanager
def following(
    driver: Any, logs: TaskLogs, task_id: str, sink: LogSink
) -> Iterator[None]:
    """Receive the log of a task in a thread, as long as the context lasts.

    What was written by its end is received before it ends.
    """
    stopping = Event()
    flow = logs.follow(task_id, sink, lambda: not stopping.is_set())
    name = f"workstealing-log-{task_id}"
    thread = Thread(target=driver.run, args=(flow,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(_DRAIN_SECONDS)


@asynccontextmanager
async def async_following(
    driver: Any, logs: TaskLogs, task_id: str, sink: LogSink
) -> AsyncIterator[None]:
    """Receive the log of a task, as long as the context lasts; for asyncio."""
    stopping = Event()
    flow = logs.follow(task_id, sink, lambda: not stopping.is_set())
    task = asyncio.ensure_future(driver.run(flow))
    try:
        yield
    finally:
        stopping.set()
        await asyncio.wait((task,), timeout=_DRAIN_SECONDS)
        if not task.cancel() and not task.cancelled():
            # Nobody else looks at it.
            task.exception()


def _readable(records: Iterable[bytes]) -> Iterator[LogRecord]:
    for record in records:
        try:
            yield LogRecord.read(record)
        except NOT_JSON as error:
            # Any program that can write to Redis may have put it there.
            logger.warning("a log record cannot be read and is skipped: %s", error)


def _show(record: LogRecord) -> None:
    stream = sys.stdout if record.stream == "stdout" else sys.stderr
    stream.write(f"{printable(str(record))}\n")
    stream.flush()
