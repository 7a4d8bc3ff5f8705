"""Where a caller receives what its task logs and prints, while it runs.

Records come in the order in which they were told, across the death of a worker and the
next one that runs the task. What the log of a task no longer has (see
`workstealing.queue.telling` for how much is kept) is not received.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from workstealing.errors import RedisError
from workstealing.queue.call import Consult, Flow, Nap, ask
from workstealing.queue.keys import QueueKeys
from workstealing.queue.telling import BEGINNING, await_log, read_log
from workstealing.tasks.calling import Channel
from workstealing.tasks.logging import LogRecord
from workstealing.tasks.values import NOT_JSON

if TYPE_CHECKING:
    from workstealing.client.queue import AsyncTaskQueue, TaskQueue

__all__ = (
    "LoggingChannel",
    "MemoryChannel",
    "afollowing",
    "follow",
    "following",
    "logs",
)

logger = logging.getLogger(__name__)

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
        """Show what is printed as it is, and what is logged on the standard error."""
        return LoggingChannel(_show)

    def take(self, record: LogRecord) -> None:
        """Receive one record; an error of its own is told, and not passed on."""
        try:
            self._take(record)
        except Exception:
            logger.exception("a logging channel failed; it goes on")


class MemoryChannel(LoggingChannel):
    """Keeps all records."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        super().__init__(self.records.append)


def logs(keys: QueueKeys, task_id: str) -> Flow[list[LogRecord]]:
    """Read what is kept of the log of a task."""
    records: list[LogRecord] = []
    after = BEGINNING
    while True:
        page = yield from ask(read_log(keys, task_id, after))
        if not page.records:
            return records
        records += _readable(page.records)
        after = page.after


def follow(
    keys: QueueKeys,
    task_id: str,
    channel: Channel,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Flow[None]:
    """Pass on what a task tells until it has ended, or is not wanted any more.

    What was told by then is passed on in any case.
    """
    after = BEGINNING
    while True:
        # Before it is read: or else the last of it would be missed.
        is_last = not is_wanted()
        try:
            page = yield from ask(read_log(keys, task_id, after))
            for record in _readable(page.records):
                yield Consult(channel.take, (record,))
            after = page.after
            if page.is_over or (is_last and not page.records):
                return
            if not page.records:
                yield from ask(await_log(keys, task_id, after, _LOOK_SECONDS))
        except RedisError as error:
            if is_last:
                return
            logger.debug("no log of task %s: %r", task_id, error)
            yield Nap(_PAUSE_SECONDS)


@contextmanager
def following(queue: TaskQueue, task_id: str, channel: Channel) -> Iterator[None]:
    """Receive the log of a task in a thread, as long as the context lasts.

    At its end, what was told by then is received first.
    """
    stopping = Event()
    flow = queue.giving.follow(task_id, channel, lambda: not stopping.is_set())
    name = f"workstealing-log-{task_id}"
    thread = Thread(target=queue.driver.run, args=(flow,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(_DRAIN_SECONDS)


@asynccontextmanager
async def afollowing(
    queue: AsyncTaskQueue, task_id: str, channel: Channel
) -> AsyncIterator[None]:
    """Receive the log of a task, as long as the context lasts; for asyncio."""
    stopping = Event()
    flow = queue.giving.follow(task_id, channel, lambda: not stopping.is_set())
    task = asyncio.ensure_future(queue.driver.run(flow))
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
            # Whoever can write to Redis may have put anything there.
            logger.warning("a record of a log cannot be read: %s", error)


def _show(record: LogRecord) -> None:
    stream = sys.stdout if record.stream == "stdout" else sys.stderr
    stream.write(f"{record}\n")
    stream.flush()
