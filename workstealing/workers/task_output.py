"""What running tasks leave in Redis: logs, progress, checkpoints, the run-once mark.

A record is in Redis before the task goes on, so a crash loses nothing that was said. If
Redis is away the record is dropped and counted, and the task goes on: it never sees an
error of ours. A task that says nothing costs nothing.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock, time_of_day
from workstealing.errors import RedisError
from workstealing.queue import producer_calls, task_output_calls, worker_calls
from workstealing.queue.steps import Call, RedisCommand
from workstealing.tasks.attempt import Attempt, Delivery, Report
from workstealing.tasks.context import Progress, TaskNotes, encode_checkpoint
from workstealing.tasks.envelope import After
from workstealing.tasks.member_result import argument_of
from workstealing.tasks.output_capture import Capture, LogRecord
from workstealing.workers.identity import WorkerIdentity

__all__ = ("OutputDriver", "TaskOutput")

logger = BackgroundLogger(__name__)

T = TypeVar("T")

_PROGRESS_EVERY = 0.1
_OUTCOMES = 100


class OutputDriver(Protocol):
    """What performs the calls of output, such as a `Driver`."""

    def call(self, call: Call[T] | RedisCommand[T]) -> T:
        """Perform a call and return its answer."""
        ...


class TaskOutput:
    """The output of the tasks of one worker."""

    def __init__(
        self, driver: OutputDriver, identity: WorkerIdentity, clock: Clock
    ) -> None:
        self._driver = driver
        self._identity = identity
        self._clock = clock

    def argument(self, task: Delivery, after: After) -> bytes:
        """Read what those before a step returned, a hundred at a time."""
        ids, keys = after.ids, self._identity.keys_of(task)
        found: list[tuple[str, bytes]] = []
        for first in range(0, len(ids), _OUTCOMES):
            part = ids[first : first + _OUTCOMES]
            seen = self._driver.call(producer_calls.read_outcomes(keys, part))
            found += zip(part, (one.outcome for one in seen), strict=True)
        return argument_of(after, found)

    def may_begin(self, attempt: Attempt) -> bool:
        """Mark a task that must not be run twice as begun; False if it may not be.

        So if its worker dies, others know that it was begun and do not run it again.
        """
        identity = self._identity
        return self._driver.call(
            worker_calls.begin(
                identity.keys_of(attempt.task),
                identity.name,
                attempt.task,
                replicas=identity.settings.replicas,
            )
        )

    def notes(self, attempt: Attempt) -> TaskNotes:
        """Return where the attempt shows its progress and saves checkpoints."""
        return _RedisNotes(self._driver, self._identity, attempt.task, self._clock)

    def capture(self, attempt: Attempt) -> Capture:
        """Write what the attempt logs and prints, while the context lasts."""
        driver, identity, task = self._driver, self._identity, attempt.task
        keys = identity.keys_of(task)

        def sink(record: LogRecord) -> bool:
            call = task_output_calls.log(
                keys, identity.name, task, record.sequence, record.encode()
            )
            return driver.call(call)

        return Capture(attempt.context, sink, time_of_day(self._clock))

    def settle(self, attempt: Attempt, report: Report | None) -> None:
        """Drop the progress and checkpoints of a task that has ended."""
        if report is None or report.verdict in ("retry", "back"):
            return
        keys, task_id = self._identity.keys_of(attempt.task), attempt.task.id
        try:
            self._driver.call(task_output_calls.drop_notes(keys, task_id))
        except RedisError as error:
            logger.debug(
                "checkpoints of task %s are left to expire: %r", task_id, error
            )


class _RedisNotes:
    """Progress and checkpoints of one attempt."""

    __slots__ = ("_clock", "_driver", "_identity", "_shown_at", "_task", "has_notes")

    def __init__(
        self,
        driver: OutputDriver,
        identity: WorkerIdentity,
        task: Delivery,
        clock: Clock,
    ) -> None:
        self._driver = driver
        self._identity = identity
        self._task = task
        self._clock = clock
        self._shown_at = 0.0
        self.has_notes = False

    def progress(self, progress: Progress) -> None:
        """Show it, unless something was shown a moment ago."""
        now = self._clock.monotonic()
        is_last = progress.done == progress.total
        if self._shown_at and now - self._shown_at < _PROGRESS_EVERY and not is_last:
            return
        self._shown_at = now
        self._write("progress", progress.encode())

    def checkpoint(self) -> Any:
        """Read the last checkpoint; the task sees if Redis does not answer."""
        task = self._task
        saved = self._driver.call(
            task_output_calls.read_note(
                self._identity.keys_of(task), task.id, task.envelope, "checkpoint"
            )
        )
        if saved is None:
            return None
        # What an earlier attempt has left is to end with the task, too.
        self.has_notes = True
        return msgspec.json.decode(saved)

    def save(self, value: Any) -> bool:
        """Keep a checkpoint; False if that was not possible."""
        return self._write("checkpoint", encode_checkpoint(value))

    def _write(self, what: Any, value: bytes) -> bool:
        identity, task = self._identity, self._task
        keys = identity.keys_of(task)
        self.has_notes = True
        try:
            return self._driver.call(
                task_output_calls.note(keys, identity.name, task, what, value)
            )
        except RedisError as error:
            logger.warning("the %s of task %s was not saved: %s", what, task.id, error)
            return False
