"""A runner that tells observers when attempts begin and end.

Only queues with observers have one: without any, a task costs nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from workstealing.errors import (
    BadOutcome,
    WorkStealingError,
)
from workstealing.tasks.attempt import Attempt, Delivery, Report, Unfed, Unroutable
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.hooked_runner import HookedRunner
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.runner import Complete, TaskRunner
from workstealing.telemetry.task_events import (
    TaskEnded,
    TaskGivenUp,
    TaskRetried,
    TaskStarted,
)
from workstealing.telemetry.task_observers import RunSpans, TaskObservers

__all__ = ("ObservedHookedRunner", "ObservedRunner")

_GIVEN_UP = ("failed", "dead", "forged")


class ObservedRunner(TaskRunner):
    """Runs tasks as `TaskRunner` does, and emits what happens to them."""

    def __init__(self, observers: TaskObservers, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._observers = observers
        # By identity: a task may come back while an earlier attempt still runs.
        self._observed: dict[int, _ObservedRun] = {}

    def prepare(self, delivery: Delivery) -> Attempt | Report | Unroutable | Unfed:
        """Make a task ready to run, or report and emit why it cannot run."""
        prepared = super().prepare(delivery)
        if isinstance(prepared, Report) and prepared.verdict != "cancelled":
            self._emit_unbegun(delivery, prepared)
        return prepared

    def refused_unfed(self, delivery: Delivery, error: WorkStealingError) -> Report:
        """Report and emit a step whose argument is gone."""
        report = super().refused_unfed(delivery, error)
        self._emit_unbegun(delivery, report)
        return report

    def cancelled(self, delivery: Delivery, *reason: str) -> Report:
        """Report and emit a task that was cancelled before it was begun."""
        report = super().cancelled(delivery, *reason)
        self._emit_unbegun(delivery, report)
        return report

    def run(
        self,
        attempt: Attempt,
        call: Callable[[Attempt], Any],
        complete: Complete = asyncio.run,
    ) -> Report | None:
        """Run an attempt in this thread, with its spans current."""
        run = self._begin(attempt)
        try:
            report = super().run(attempt, call, complete)
        except BaseException as error:
            self._escape(run, error)
            raise
        else:
            run.end(report)
            return report
        finally:
            self._leave(run)

    async def run_async(
        self, attempt: Attempt, call: Callable[[Attempt], Awaitable[Any]]
    ) -> Report | None:
        """Run an attempt in the running event loop, with its spans current."""
        run = self._begin(attempt)
        try:
            report = await super().run_async(attempt, call)
        except BaseException as error:
            self._escape(run, error)
            raise
        else:
            run.end(report)
            return report
        finally:
            self._leave(run)

    def stopped(
        self, attempt: Attempt, reason: str, where: TracebackType | None = None
    ) -> Report | None:
        """Report and emit that an attempt was stopped, even if it still runs."""
        report = super().stopped(attempt, reason, where)
        run = self._observed.get(id(attempt))
        if run is not None:
            run.end(report)
        return report

    def ending_of(self, attempt: Attempt, error: BaseException) -> Report | None:
        """Report an attempt that ended with an error, and keep the error to emit it."""
        self._observed[id(attempt)].error = error
        return super().ending_of(attempt, error)

    def _begin(self, attempt: Attempt) -> _ObservedRun:
        run = _ObservedRun(self._observers, attempt, self._worker, self._time_ns)
        self._observed[id(attempt)] = run
        return run

    def _leave(self, run: _ObservedRun) -> None:
        del self._observed[id(run.attempt)]
        run.spans.leave()

    def _escape(self, run: _ObservedRun, error: BaseException) -> None:
        """Emit the end of an attempt whose error goes on to its slot."""
        if isinstance(error, (asyncio.CancelledError, *self._reraised)):
            run.end_as("back")
        else:
            run.error = error
            run.end_as("dead", "it failed outside its own code")

    def _emit_unbegun(self, delivery: Delivery, report: Report) -> None:
        queue, outcome = self._observers.queue, report.verdict
        # Nothing in a forged envelope can be trusted.
        task = "" if outcome == "forged" else _name_of(delivery.envelope)
        worker, attempt = self._worker, delivery.attempt
        emit = self._observers.emit
        emit(
            TaskEnded(
                queue, task, delivery.id, attempt, worker, outcome, None, None, None
            )
        )
        if outcome in _GIVEN_UP:
            reason = _reason_of(report)
            emit(TaskGivenUp(queue, task, delivery.id, worker, reason))


class ObservedHookedRunner(ObservedRunner, HookedRunner):
    """Runs tasks with hooks around them, and emits what happens.

    Observers are outermost, so hooks run within the spans of the attempt.
    """


class _ObservedRun:
    """One attempt, as observers see it."""

    __slots__ = ("_observers", "_started", "_time_ns", "attempt", "error", "spans")

    def __init__(
        self,
        observers: TaskObservers,
        attempt: Attempt,
        worker: str,
        time_ns: Callable[[], int],
    ) -> None:
        self._observers = observers
        self._time_ns = time_ns
        self.attempt = attempt
        self.error: BaseException | None = None
        """What the task raised, or a hook before it."""
        self._started = TaskStarted(
            observers.queue,
            attempt.envelope.name,
            attempt.task.id,
            attempt.task.attempt,
            worker,
            _wait(attempt),
            attempt.envelope.trace,
        )
        self.spans: RunSpans = observers.running(self._started)

    def end(self, report: Report | None) -> None:
        """Emit how it ended, unless that was emitted before."""
        if report is None:
            self.end_as("lost")
        elif report.verdict in _GIVEN_UP:
            self.end_as(report.verdict, _reason_of(report))
        else:
            is_new = self.end_as(report.verdict)
            if is_new and report.verdict == "retry":
                begun = self._started
                self._observers.emit(
                    TaskRetried(
                        begun.queue,
                        begun.task,
                        begun.id,
                        begun.attempt,
                        begun.worker,
                        report.delay_ms / 1000,
                        self.error,
                    )
                )

    def end_as(self, outcome: str, reason: str | None = None) -> bool:
        """Emit an outcome; with a *reason*, that it is a dead letter, too."""
        begun = self._started
        event = TaskEnded(
            begun.queue,
            begun.task,
            begun.id,
            begun.attempt,
            begun.worker,
            outcome,
            begun.wait,
            max(0.0, (self._time_ns() - self.attempt.began_ns) / 1e9),
            self.error,
        )
        is_new = self.spans.end(event)
        if is_new and reason is not None:
            self._observers.emit(
                TaskGivenUp(begun.queue, begun.task, begun.id, begun.worker, reason)
            )
        return is_new


def _name_of(envelope: bytes) -> str:
    """Return the name of a task; empty if its envelope cannot be read."""
    read = Envelope.read_or_none(envelope)
    return "" if read is None else read.name


def _wait(attempt: Attempt) -> float | None:
    since_ms = attempt.task.waits_since_ms(attempt.envelope)
    if not since_ms:
        return None
    # The clocks of two machines differ a little.
    return max(0.0, attempt.began_ns / 1e9 - since_ms / 1e3)


def _reason_of(report: Report) -> str:
    try:
        return TaskOutcome.read(report.outcome).as_state().reason
    except BadOutcome:
        return ""
