"""One task that is run by threads of this process, from its submission to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor as Threads
from concurrent.futures import Future
from threading import Lock, Timer
from typing import Any

import msgspec

from workstealing._interrupt import Interruptible, deliver_until_ended
from workstealing.errors import TaskNotFound
from workstealing.queue.producer_calls import Cancelled
from workstealing.tasks.attempt import (
    Attempt,
    Delivery,
    Report,
    Unfed,
    Unroutable,
    within_its_time,
)
from workstealing.tasks.context import (
    Progress,
    TaskNotes,
    control_of,
    encode_checkpoint,
)
from workstealing.tasks.envelope import After
from workstealing.tasks.outcome import State, TaskOutcome, TaskState
from workstealing.tasks.output_capture import Capture, LogRecord
from workstealing.tasks.runner import AttemptOutput, TaskRunner

__all__ = ("LocalTask",)

_MOST_RECORDS = 10_000


class LocalTask:
    """A task on its way through the threads of this process."""

    def __init__(
        self,
        task: Delivery,
        runner: Callable[[AttemptOutput], TaskRunner],
        threads: Threads,
    ) -> None:
        self._task = task
        self._runner = runner(self)
        self._threads = threads
        self._lock = Lock()
        self._attempt: Attempt | None = None
        self._begun_ms: int | None = None
        self._due_ms: int | None = None
        self._is_cancelled = False
        self._notes = _LocalNotes()
        self.records: list[LogRecord] = []
        """What it logged and printed, up to 10,000 records."""
        self.ended: Future[bytes] = Future()
        """Its outcome, as it would stand in Redis."""

    @property
    def shown(self) -> Progress | None:
        """The progress that it showed last."""
        return self._notes.shown

    def start(self) -> None:
        """Queue up for a thread."""
        self._threads.submit(self._work).add_done_callback(self._dropped)

    def state(self) -> TaskState:
        """Return the state of the task."""
        attempt, due_ms, begun_ms = self._task.attempt, self._due_ms, self._begun_ms
        if self.ended.done():
            return TaskOutcome.read(self.ended.result()).as_state()
        if begun_ms is not None:
            reason = "asked to stop" if self._is_cancelled else ""
            return TaskState(
                State.RUNNING, "local", begun_ms, reason, attempt, self._notes.shown
            )
        if due_ms is not None:
            return TaskState(State.DELAYED, "", due_ms, "", attempt)
        return TaskState(State.WAITING, attempt=attempt)

    def cancel(self) -> Cancelled:
        """Cancel it: at once if it waits, by asking if it runs."""
        with self._lock:
            if self.ended.done():
                return "ended"
            if self._begun_ms is None:
                self._end(self._runner.cancelled(self._task, "by its caller"))
                return "cancelled"
            self._is_cancelled = True
            if self._attempt is not None:
                control_of(self._attempt.context).is_cancelled = True
            return "asked"

    def _work(self) -> None:
        with self._lock:
            if self.ended.done():
                return
            self._begun_ms, self._due_ms = time.time_ns() // 1_000_000, None
        report: Report | None
        prepared = self._runner.prepare(self._task)
        if isinstance(prepared, Attempt):
            with self._lock:
                self._attempt = prepared
                if self._is_cancelled:
                    control_of(prepared.context).is_cancelled = True
            report = self._runner.run(prepared, _call)
        elif isinstance(prepared, Unroutable):
            report = self._unroutable(prepared)
        else:
            assert not isinstance(prepared, Unfed), "nothing here follows another task"
            report = prepared
        # None would mean that another worker has it: there is none here.
        self._settle(report or self._runner.cancelled(self._task, "it was stopped"))

    # The methods of `AttemptOutput`, which the runner calls.

    def argument(self, task: Delivery, after: After) -> bytes:  # noqa: ARG002
        """Refuse: nothing here follows another task."""
        raise TaskNotFound(f"there is no task {after.ids[0]} in this process")

    def may_begin(self, attempt: Attempt) -> bool:  # noqa: ARG002 - nobody else has it
        """Begin it: in this process nothing is run twice."""
        return True

    def notes(self, attempt: Attempt) -> TaskNotes:  # noqa: ARG002 - it has only one
        """Return where the task shows its progress and saves checkpoints."""
        return self._notes

    def capture(self, attempt: Attempt) -> Capture:
        """Keep what the attempt logs and prints."""
        return Capture(attempt.context, self._keep_record)

    def settle(self, attempt: Attempt, report: Report | None) -> None:
        """Do nothing: its notes end with it."""

    def _keep_record(self, record: LogRecord) -> bool:
        if len(self.records) >= _MOST_RECORDS:
            return False
        self.records.append(record)
        return True

    def _unroutable(self, unroutable: Unroutable) -> Report:
        reason = f"this process has no task '{unroutable.ability}' any more"
        outcome = TaskOutcome(
            state="dead", reason=reason, refusal=("UnknownTask", reason)
        )
        return Report(self._task.id, self._task.token, "dead", outcome.encode())

    def _settle(self, report: Report) -> None:
        with self._lock:
            self._attempt, self._begun_ms = None, None
            if report.verdict not in ("retry", "back"):
                self._end(report)
                return
            tried = report.verdict == "retry"
            self._task = msgspec.structs.replace(
                self._task, attempt=self._task.attempt + tried
            )
            self._due_ms = time.time_ns() // 1_000_000 + report.delay_ms
        timer = Timer(report.delay_ms / 1000, self._start_again)
        timer.daemon = True
        timer.start()

    def _start_again(self) -> None:
        try:
            self.start()
        except Exception:  # noqa: BLE001 - each kind of executor has its own
            self._stranded()

    def _dropped(self, work: Future[Any]) -> None:
        if work.cancelled() or work.exception() is not None:
            self._stranded()

    def _stranded(self) -> None:
        reason = "its pool was stopped before it was done"
        with self._lock:
            self._end(self._runner.cancelled(self._task, reason))

    def _end(self, report: Report) -> None:
        if not self.ended.done():
            self.ended.set_result(report.outcome)


class _LocalNotes:
    """The notes of one task; they last as long as the process."""

    def __init__(self) -> None:
        self.shown: Progress | None = None
        self._saved = b"null"

    @property
    def has_notes(self) -> bool:
        """Nothing must be deleted: the notes end with the task."""
        return False

    def progress(self, progress: Progress) -> None:
        """Show it."""
        self.shown = progress

    def checkpoint(self) -> Any:
        """Return what was saved last."""
        return msgspec.json.decode(self._saved)

    def save(self, value: Any) -> bool:
        """Keep it, as it would be in Redis."""
        self._saved = encode_checkpoint(value)
        return True


def _call(attempt: Attempt) -> Any:
    function, arguments = attempt.definition.function, attempt.arguments
    timeout = attempt.timeout
    if attempt.definition.is_coroutine:
        return asyncio.run(within_its_time(attempt, function(**arguments)))
    if timeout is None:
        return function(**arguments)
    scope = Interruptible()

    def too_long() -> None:
        attempt.is_interrupted = attempt.is_overdue = True
        scope.interrupt()
        deliver_until_ended([scope])

    timer = Timer(timeout, too_long)
    timer.daemon = True
    timer.start()
    try:
        return scope.call(function, **arguments)
    finally:
        timer.cancel()
