"""One request that is run by threads of this process, from its beginning to its end."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor as Threads
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from threading import Lock, Timer
from typing import Any

import msgspec

from workstealing.errors import StopWork
from workstealing.pool.interrupting import Interruptible
from workstealing.queue.producing import Cancelled
from workstealing.tasks.attempt import Attempt, Report, Taken, Unable
from workstealing.tasks.capturing import Capture
from workstealing.tasks.context import enter, leave
from workstealing.tasks.executing import Executor
from workstealing.tasks.logging import LogRecord
from workstealing.tasks.noting import Progress, encode_checkpoint
from workstealing.tasks.outcome import State, TaskOutcome, TaskState

__all__ = ("LocalJob",)

_MOST_RECORDS = 10_000


class LocalJob:
    """A task on its way through the threads of this process."""

    def __init__(self, task: Taken, executor: Executor, threads: Threads) -> None:
        self._task = task
        self._executor = executor
        self._threads = threads
        self._lock = Lock()
        self._attempt: Attempt | None = None
        self._begun_ms: int | None = None
        self._due_ms: int | None = None
        self._is_cancelled = False
        self._desk = _LocalDesk()
        self.records: list[LogRecord] = []
        """What it logged and printed, up to 10,000 records."""
        self.ended: Future[bytes] = Future()
        """Its outcome, as it would stand in Redis."""

    def start(self) -> None:
        """Queue up for a thread."""
        self._threads.submit(self._work).add_done_callback(self._dropped)

    def state(self) -> TaskState:
        """Tell where it is."""
        attempt, due_ms, begun_ms = self._task.attempt, self._due_ms, self._begun_ms
        if self.ended.done():
            return TaskOutcome.read(self.ended.result()).as_state()
        if begun_ms is not None:
            reason = "asked to stop" if self._is_cancelled else ""
            return TaskState(
                State.RUNNING, "local", begun_ms, reason, attempt, self._desk.shown
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
                self._end(self._executor.cancelled(self._task, "by its caller"))
                return "cancelled"
            self._is_cancelled = True
            if self._attempt is not None:
                self._attempt.context.tell_cancelled()
            return "asked"

    def _work(self) -> None:
        with self._lock:
            if self.ended.done():
                return
            self._begun_ms, self._due_ms = time.time_ns() // 1_000_000, None
        prepared = self._executor.prepare(self._task)
        if isinstance(prepared, Attempt):
            with self._lock:
                self._attempt = prepared
                if self._is_cancelled:
                    prepared.context.tell_cancelled()
            report = self._run(prepared)
        elif isinstance(prepared, Unable):
            report = self._unable(prepared)
        else:
            report = prepared
        self._settle(report)

    def _run(self, attempt: Attempt) -> Report:
        executor = self._executor
        token = enter(attempt.context)
        try:
            with self._beside(attempt):
                value = _call(attempt)
        except StopWork as request:
            # None would mean that it is another's by now: there is nobody else.
            report = executor.stopped(attempt, str(request))
            return report or executor.raised(attempt, request)
        except BaseException as error:  # noqa: BLE001 - it is the task's own
            return executor.raised(attempt, error)
        finally:
            leave(token)
        return executor.returned(attempt, value)

    def _beside(self, attempt: Attempt) -> AbstractContextManager[object]:
        attempt.context.offer(lambda: self._desk)
        if not attempt.envelope.log:
            return nullcontext()
        return Capture(attempt.context, self._tell)

    def _tell(self, record: LogRecord) -> bool:
        if len(self.records) >= _MOST_RECORDS:
            return False
        self.records.append(record)
        return True

    def _unable(self, unable: Unable) -> Report:
        reason = f"no task '{unable.ability}' here any more"
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
            self._task = replace(self._task, attempt=self._task.attempt + tried)
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
        reason = "its pool takes no more work"
        with self._lock:
            self._end(self._executor.cancelled(self._task, reason))

    def _end(self, report: Report) -> None:
        if not self.ended.done():
            self.ended.set_result(report.outcome)


class _LocalDesk:
    """The notes of one task; they last as long as the process."""

    def __init__(self) -> None:
        self.shown: Progress | None = None
        self._saved = b"null"

    @property
    def has_notes(self) -> bool:
        """Nothing is to be let go of: it ends with the job."""
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
        return asyncio.run(asyncio.wait_for(function(**arguments), timeout))
    if timeout is None:
        return function(**arguments)
    scope = Interruptible()

    def too_long() -> None:
        attempt.is_interrupted = attempt.is_overdue = True
        scope.interrupt()

    timer = Timer(timeout, too_long)
    timer.daemon = True
    timer.start()
    try:
        return scope.call(function, **arguments)
    finally:
        timer.cancel()
