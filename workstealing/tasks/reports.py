"""Turns how an attempt ended into a report. This is the only place that does.

A report says what becomes of the task: done, tried again, handed back, cancelled, or a
dead letter with its reason. It carries the outcome as its caller will read it.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any

import msgspec

from workstealing._logs import BackgroundLogger
from workstealing.chance import Chance
from workstealing.errors import (
    BadSignature,
    PayloadInvalid,
    ResultInvalid,
    StopWork,
    WorkStealingError,
)
from workstealing.tasks.attempt import Attempt, Delivery, Report, Verdict
from workstealing.tasks.context import control_of
from workstealing.tasks.envelope import LATEST_MS, Envelope
from workstealing.tasks.outcome import (
    MAX_RESULT,
    ErrorReport,
    TaskOutcome,
    moment_text,
    refusal_of,
)
from workstealing.tasks.retry import OUTCOME_UNKNOWN, NoRetry, Retry, RetryAfter, Snooze

__all__ = (
    "WHAT_TO_DO",
    "AttemptReports",
    "drop_our_frames",
    "reason_of",
    "too_long",
)

logger = BackgroundLogger(__name__)

WHAT_TO_DO = (
    "it is a dead letter: `workstealing queue replay` runs it, `drop` removes it"
)
"""Ends each log line of a task that was given up, but for those with a traceback."""

_NEW_VERSION = " (a task whose parameters change needs a new `version=`)"

# If a worker ends more tasks than this between two counts, some are not counted.
_MOST_ENDED = 100_000
# Packages through which a task is called.
_CALLERS = ("workstealing", "asyncio", "concurrent")


class AttemptReports:
    """Makes the reports of one worker.

    Args:
        worker: the name that reports carry.
        chance: jitter between retries.
        note_error: called with each error that an attempt ends with.
        max_result: bytes of one result.
        reraised: exceptions that are meant for the worker, not for the task.
        time_ns: tells the nanoseconds since 1970.
    """

    def __init__(
        self,
        worker: str,
        chance: Chance,
        note_error: Callable[[Attempt, BaseException], None],
        *,
        max_result: int = MAX_RESULT,
        reraised: tuple[type[BaseException], ...] = (),
        time_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._worker = worker
        self._chance = chance
        self._note_error = note_error
        self._max_result = max_result
        self._reraised = reraised
        self._time_ns = time_ns
        self.ended: deque[tuple[str, int, bool]] = deque(maxlen=_MOST_ENDED)
        """What ended, to be counted: ability, nanoseconds, whether it failed."""

    def cancelled(
        self, delivery: Delivery, reason: str = "before it was begun"
    ) -> Report:
        """Report a task that was cancelled before it was begun."""
        now_ns = self._time_ns()
        return self._report(
            delivery, "cancelled", now_ns, state="cancelled", reason=reason
        )

    def stopped(
        self, attempt: Attempt, reason: str, where: TracebackType | None = None
    ) -> Report | None:
        """Report an attempt that was stopped; None if another worker has the task.

        If its time limit was over, the report says *where* it was.
        """
        task, context = attempt.task, attempt.context
        is_cancelled_in_run = context.cancelled and not attempt.is_overdue
        if attempt.runs_once and (context.lease_lost or not is_cancelled_in_run):
            # Even after the lease was lost: if no other worker has the task yet, it
            # would run again.
            return self._unknown(attempt, where)
        if context.lease_lost:
            return None
        if attempt.is_overdue:
            return self.raised(attempt, too_long(attempt, where))
        if not context.cancelled and not attempt.is_interrupted:
            # Nobody asked it to stop: if handed back, it would stop again and again.
            return self.raised(attempt, StopWork(reason))
        if not context.cancelled:
            return Report(task.id, task.token, "back")
        return self._cancelled_in_run(attempt, reason)

    def escaped(self, delivery: Delivery, error: BaseException) -> Report:
        """Report a task that failed in the code around it, for an unexpected reason."""
        kind = type(error).__name__
        logger.error(
            "task %s failed outside its own code, and its slot continues; %s",
            delivery.id,
            WHAT_TO_DO,
            error=error,
        )
        return self._report(
            delivery,
            "dead",
            self._time_ns(),
            state="dead",
            reason=f"unexpected {kind} while running the task or reporting its error",
        )

    def not_begun(self, task: Delivery, error: WorkStealingError) -> Report:
        """Hand back a task that could not begin, for a reason that is not its own."""
        logger.warning(
            "task %s was not started and goes back to the queue: %s", task.id, error
        )
        return Report(task.id, task.token, "back")

    def expired(self, delivery: Delivery, envelope: Envelope, began_ns: int) -> Report:
        """Report a task whose deadline passed before it could start."""
        late = moment_text(envelope.deadline or 0)
        return self._report(
            delivery,
            "expired",
            began_ns,
            state="expired",
            reason=f"it did not start by {late}",
            task=envelope.ability,
        )

    def refused(
        self, delivery: Delivery, error: BaseException, began_ns: int
    ) -> Report:
        """Report a task that is malformed, not genuine or not permitted."""
        verdict: Verdict = "dead"
        if isinstance(error, BadSignature):
            verdict = "forged"
            # Nothing in a forged envelope can be trusted, so none of it is logged.
            logger.error(
                "task %s is refused: %s; %s", delivery.id, error.problem, WHAT_TO_DO
            )
        else:
            envelope = Envelope.read_or_none(delivery.envelope)
            logger.error(
                "task %s (%s) was not run: %s%s; %s",
                delivery.id,
                "unknown" if envelope is None else envelope.ability,
                reason_of(error),
                _NEW_VERSION if isinstance(error, PayloadInvalid) else "",
                WHAT_TO_DO,
            )
        return self._report(
            delivery,
            verdict,
            began_ns,
            state="dead",
            reason=reason_of(error),
            refusal=refusal_of(error),
        )

    def returned(self, attempt: Attempt, value: Any) -> Report:
        """Report what a task returned."""
        definition = attempt.definition
        try:
            result = definition.signature.encode_result(value)
            if len(result) > self._max_result:
                raise ResultInvalid(
                    f"the result has {len(result):,} bytes, and the queue takes"
                    f" {self._max_result:,}: store it elsewhere and return where, or"
                    " raise max_result="
                )
        except KeyboardInterrupt:
            raise
        except self._reraised:
            raise
        except BaseException as error:  # noqa: BLE001 - classes of a result raise all
            return self.raised(attempt, error)
        if logger.is_enabled(logging.INFO):
            took_ms = (self._time_ns() - attempt.began_ns) / 1e6
            logger.info(
                "task %s (%s) done in %.0f ms",
                attempt.task.id,
                definition.ability,
                took_ms,
            )
        # As `_report` does, which costs a microsecond more: nearly all tasks end here.
        task, now_ns = attempt.task, self._time_ns()
        took_ns = now_ns - attempt.began_ns
        self.ended.append((definition.ability, took_ns, False))
        outcome = TaskOutcome(
            result=msgspec.Raw(result),
            task=definition.ability,
            worker=self._worker,
            ended=now_ns // 1_000_000,
            took=took_ns // 1_000_000 if took_ns > 0 else 0,
            attempt=task.attempt,
        )
        return Report(task.id, task.token, "done", outcome.encode())

    def raised(self, attempt: Attempt, error: BaseException) -> Report:
        """Report what a task raised: it is tried again, or given up."""
        drop_our_frames(error)
        self._note_error(attempt, error)
        task, definition = attempt.task, attempt.definition
        if isinstance(error, Snooze) and attempt.restart == "always":
            return self._snoozed(attempt, error)
        policy = definition.retry
        if attempt.envelope.retries is not None:
            policy = replace(policy, retries=attempt.envelope.retries)
        # A task without retries is told that it cannot raise Retry.
        cause = _cause_of(error) if policy.retries else error
        took_ns = self._time_ns() - attempt.began_ns
        self.ended.append((definition.ability, took_ns, True))
        verdict = policy.verdict(error, task.attempt, self._chance)
        if attempt.restart != "always" and isinstance(verdict, RetryAfter):
            verdict = NoRetry(f'restart="{attempt.restart}"')
        if isinstance(verdict, RetryAfter) and self._expires_within(attempt, verdict):
            # If it expired instead, its error would be lost.
            verdict = NoRetry("it expires before it could be tried again")
        if isinstance(verdict, RetryAfter) and attempt.context.cancelled:
            return self._cancelled_in_run(
                attempt, "not tried again: " + reason_of(cause)
            )
        if isinstance(verdict, RetryAfter):
            delay_ms = max(1, round(min(verdict.seconds * 1000, LATEST_MS / 2)))
            logger.warning(
                "task %s (%s) failed in attempt %d, retrying in %.3g s: %s",
                task.id,
                definition.ability,
                task.attempt,
                delay_ms / 1000,
                reason_of(cause),
            )
            report = self._report(
                task,
                "retry",
                attempt.began_ns,
                state="failed",
                error=ErrorReport.of(cause).shortened(),
            )
            return msgspec.structs.replace(report, delay_ms=delay_ms)
        logger.error(
            "task %s (%s) failed permanently (%s): %s",
            task.id,
            definition.ability,
            verdict.reason,
            reason_of(cause),
            error=error,
        )
        control = control_of(attempt.context)
        control.given_up = f"{reason_of(cause)} ({verdict.reason})"
        return self._report(
            task,
            "failed",
            attempt.began_ns,
            state="failed",
            error=ErrorReport.of(cause),
            reason=verdict.reason,
        )

    def _expires_within(self, attempt: Attempt, retry: RetryAfter) -> bool:
        deadline_ms = attempt.envelope.deadline
        if not deadline_ms:
            return False
        return self._time_ns() / 1e6 + retry.seconds * 1000 >= deadline_ms

    def _snoozed(self, attempt: Attempt, snooze: Snooze) -> Report:
        if attempt.context.cancelled:
            return self._cancelled_in_run(
                attempt, "not run again: " + reason_of(snooze)
            )
        task, seconds = attempt.task, snooze.seconds(self._time_ns() / 1e9)
        # At least 1 ms: without a delay it would be the next task again and again.
        delay_ms = max(1, round(min(seconds * 1000, LATEST_MS / 2)))
        logger.info(
            "task %s (%s) is run again in %.3g s: %s",
            task.id,
            attempt.definition.ability,
            delay_ms / 1000,
            reason_of(snooze),
        )
        return Report(task.id, task.token, "back", delay_ms=delay_ms)

    def _cancelled_in_run(self, attempt: Attempt, reason: str) -> Report:
        return self._report(
            attempt.task,
            "cancelled",
            attempt.began_ns,
            state="cancelled",
            reason=reason,
            task=attempt.definition.ability,
        )

    def _unknown(self, attempt: Attempt, where: TracebackType | None) -> Report:
        why, error = "it was stopped while it ran", None
        if attempt.is_overdue:
            error = too_long(attempt, where)
            why = str(error)
        reason = f"{OUTCOME_UNKNOWN}: {why}"
        logger.error(
            "task %s (%s) was given up (%s); %s",
            attempt.task.id,
            attempt.definition.ability,
            reason,
            WHAT_TO_DO,
            error=error,
        )
        control_of(attempt.context).given_up = reason
        return self._report(
            attempt.task,
            "dead",
            attempt.began_ns,
            state="dead",
            reason=reason,
            error=None if error is None else ErrorReport.of(error),
        )

    def _report(
        self, delivery: Delivery, verdict: Verdict, began_ns: int, **fields: Any
    ) -> Report:
        now_ns = self._time_ns()
        outcome = TaskOutcome(
            worker=self._worker,
            ended=now_ns // 1_000_000,
            took=max(0, (now_ns - began_ns) // 1_000_000),
            attempt=delivery.attempt,
            **fields,
        )
        return Report(delivery.id, delivery.token, verdict, outcome.encode())


def too_long(attempt: Attempt, where: TracebackType | None) -> TimeoutError:
    """Return the error of an attempt that was over its time limit, and where."""
    error = TimeoutError(f"it ran for longer than {attempt.timeout:g} s")
    error.__traceback__ = where
    drop_our_frames(error)
    return error


def drop_our_frames(error: BaseException) -> None:
    """Let a traceback begin in the code of a user, not with those who called it.

    All frames stay if that code was not reached: then the error is one of ours.
    """
    part = error.__traceback__
    while part is not None:
        package = str(part.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package not in _CALLERS:
            if package not in sys.stdlib_module_names:
                # Its class is the user's, and may have a method of that name.
                BaseException.with_traceback(error, part)
            return
        part = part.tb_next


def _cause_of(error: BaseException) -> BaseException:
    """Return what a `Retry` was raised from, since that is what went wrong."""
    is_retry = isinstance(error, Retry)
    return error.__cause__ if is_retry and error.__cause__ else error


def reason_of(error: BaseException) -> str:
    """Describe an error in a few words."""
    described = ErrorReport.of(error)
    if isinstance(error, WorkStealingError):
        return described.message
    return f"{described.type}: {described.message}"
