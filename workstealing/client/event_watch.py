"""Watches a task until it ends: log records, progress, and its end.

Logs and progress are read a few times a second; the end is published. If the server
cannot be reached meanwhile, the watch goes on until its timeout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.errors import RedisUnavailable, ResultTimeout, TaskNotFound
from workstealing.queue.steps import Flow, Sleep
from workstealing.tasks.context import Progress
from workstealing.tasks.outcome import UNFINISHED, State, TaskState
from workstealing.tasks.output_capture import LogRecord

__all__ = ("EventWatch", "TaskEvent", "TaskSnapshot", "WatchedLog", "WatchedQueue")

TaskEvent: TypeAlias = LogRecord | Progress | TaskState
"""A line that the task logged or printed, how far it is, or, at last, how it ended."""

_LOOK_SECONDS = 0.2
_RETURN_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """A task at one moment."""

    state: TaskState
    progress: Progress | None
    """Also of a task that has just ended, if its envelope was seen before."""
    envelope: bytes = b""


class WatchedLog(Protocol):
    """Where a watch reads what a task logs."""

    def page(self, task_id: str, after: str) -> Flow[tuple[list[LogRecord], str]]:
        """Read some records after a place, and the next place."""


class WatchedQueue(Protocol):
    """What a watch looks at: a queue in Redis, or what runs in this process."""

    @property
    def log(self) -> WatchedLog:
        """The logs of its tasks."""

    def snapshot(self, task_id: str, envelope: bytes) -> Flow[TaskSnapshot]:
        """Return its state and progress; *envelope* is its envelope, if known."""

    def wait_for_end(self, task_id: str, seconds: float) -> Flow[None]:
        """Wait until the task ends, for so many seconds at most."""


class EventWatch:
    """Watches one task; `look()` until `is_over`."""

    def __init__(
        self,
        queue: WatchedQueue,
        task_id: str,
        timeout: float | None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._queue = queue
        self._task_id = task_id
        self._timeout = timeout
        self._clock = clock
        self._end = None if timeout is None else clock.monotonic() + timeout
        self._after = "0-0"
        self._envelope = b""
        self._shown: Progress | None = None
        self.is_over = False
        """Whether the task has ended and `look` has returned its last event."""

    def look(self) -> Flow[list[TaskEvent]]:
        """Wait a moment for new events and return them; there may be none."""
        state: TaskState | str = "unknown where, because the server cannot be reached"
        try:
            # Before the log is read: what a task wrote comes before its end.
            snapshot = yield from self._queue.snapshot(self._task_id, self._envelope)
            state, self._envelope = snapshot.state, snapshot.envelope
            events = yield from self._news(snapshot)
            if events:
                return events
            yield from self._queue.wait_for_end(
                self._task_id, self._left(_LOOK_SECONDS)
            )
        except RedisUnavailable:
            yield Sleep(self._left(_RETURN_SECONDS))
        if self._end is not None and self._clock.monotonic() >= self._end:
            raise ResultTimeout(
                f"task {self._task_id} did not end within {self._timeout:g} s: it is"
                f" {state}"
            )
        return []

    def _news(self, snapshot: TaskSnapshot) -> Flow[list[TaskEvent]]:
        if snapshot.state.state is State.UNKNOWN:
            raise TaskNotFound.of(self._task_id)
        is_ended = snapshot.state.state not in UNFINISHED
        events: list[TaskEvent] = []
        while True:
            log = self._queue.log
            records, self._after = yield from log.page(self._task_id, self._after)
            events += records
            if not records or not is_ended:
                break
        if snapshot.progress is not None and snapshot.progress != self._shown:
            self._shown = snapshot.progress
            events.append(snapshot.progress)
        if is_ended:
            self.is_over = True
            events.append(snapshot.state)
        return events

    def _left(self, most: float) -> float:
        if self._end is None:
            return most
        return max(0.0, min(most, self._end - self._clock.monotonic()))
