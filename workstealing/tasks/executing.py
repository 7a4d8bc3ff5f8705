"""From an envelope to an attempt, and from how it ended to a report.

Nothing is run here: whoever has a thread or an event loop runs the attempt in between.
What cannot be run is never dropped. A bad envelope or payload is a dead letter with its
reason, and so is what is not genuine or not permitted; a task that this process does
not know is handed to one that does.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from workstealing.chance import Chance
from workstealing.errors import (
    BadSignature,
    ResultInvalid,
    StopWork,
    UnknownTask,
    WorkStealingError,
)
from workstealing.tasks.admission import Admission
from workstealing.tasks.attempt import Attempt, Report, Taken, Unable, Verdict
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.outcome import ErrorReport, TaskOutcome, refusal_of
from workstealing.tasks.restart import OUTCOME_UNKNOWN
from workstealing.tasks.retry import GiveUp, RetryAfter
from workstealing.tasks.task import TaskDefinition

__all__ = ("Executor",)

logger = logging.getLogger(__name__)

MAX_RESULT = 16 << 20
"""Bytes of one result, unless the queue says otherwise."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Executor:
    """Knows the tasks of a queue, and what to tell of their attempts."""

    def __init__(
        self,
        admission: Admission,
        worker: str,
        queue: str,
        chance: Chance,
        max_result: int = MAX_RESULT,
    ) -> None:
        self._admission = admission
        self._worker = worker
        self._queue = queue
        self._chance = chance
        self._max_result = max_result

    def prepare(self, task: Taken) -> Attempt | Report | Unable:
        """Make a task ready to run, or tell why it is not to be run."""
        began_ns = time.time_ns()
        now_ms = began_ns // 1_000_000
        admission = self._admission
        deadline = None
        try:
            envelope = admission.opened(task.id, task.envelope, now_ms)
            if envelope.deadline:
                if envelope.deadline <= now_ms:
                    return self.cancelled(task, "its deadline has passed")
                deadline = _moment(envelope.deadline)
            definition = admission.registry.find(envelope.name, envelope.version)
            admission.permit(definition, envelope.principal, envelope.roles)
            arguments = definition.decode(envelope.version, envelope.payload)
        except UnknownTask:
            return Unable(task, f"{envelope.name}@{envelope.version}")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - classes of a payload raise all
            return self._refused(task, error, began_ns)
        context = ExecutionContext(
            task.id,
            envelope.name,
            envelope.version,
            task.attempt,
            self._worker,
            self._queue,
            principal=envelope.principal,
            roles=envelope.roles,
            deadline=deadline,
        )
        if definition.signature.context_parameter is not None:
            arguments[definition.signature.context_parameter] = context
        return Attempt(task, envelope, definition, arguments, context, began_ns)

    def returned(self, attempt: Attempt, value: Any) -> Report:
        """Report what it returned."""
        try:
            result = attempt.definition.signature.encode_result(value)
            if len(result) > self._max_result:
                raise ResultInvalid(
                    f"the result has {len(result):,} bytes, and the queue takes"
                    f" {self._max_result:,}: store it elsewhere and return where, or"
                    " raise max_result="
                )
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - classes of a result raise all
            return self.raised(attempt, error)
        return self._report(
            attempt.task,
            "done",
            attempt.began_ns,
            result=msgspec.Raw(result),
            task=attempt.definition.ability,
        )

    def stopped(self, attempt: Attempt, reason: str) -> Report | None:
        """Report that it heeded a request to stop; None if it is another's by now."""
        task, context = attempt.task, attempt.context
        is_heeded = context.cancelled and not attempt.is_overdue
        if attempt.runs_once and (context.lease_lost or not is_heeded):
            # A lost lease is no reason to be silent: if nobody else has noticed yet,
            # the task would come back.
            return self._unknown(attempt)
        if context.lease_lost:
            return None
        if attempt.is_overdue:
            return self.raised(attempt, _too_long(attempt))
        if not context.cancelled and not attempt.is_interrupted:
            # Nobody asked it to: handed back, it would do the same for ever.
            return self.raised(attempt, StopWork(reason))
        if not context.cancelled:
            return Report(task.id, task.token, "back")
        return self._cancelled(attempt, reason)

    def raised(self, attempt: Attempt, error: BaseException) -> Report:
        """Report that it failed, or is to be tried again."""
        task, definition = attempt.task, attempt.definition
        policy = definition.retry
        if attempt.envelope.retries is not None:
            policy = replace(policy, retries=attempt.envelope.retries)
        verdict = policy.verdict(error, task.attempt, self._chance)
        if attempt.restart != "always" and isinstance(verdict, RetryAfter):
            verdict = GiveUp(f'restart="{attempt.restart}"')
        if isinstance(verdict, RetryAfter) and attempt.context.cancelled:
            return self._cancelled(attempt, "not tried again: " + _reason(error))
        if isinstance(verdict, RetryAfter):
            delay_ms = max(1, round(verdict.seconds * 1000))
            self._log(task, definition, error, f"tried again in {delay_ms} ms")
            return Report(task.id, task.token, "retry", delay_ms=delay_ms)
        self._log(task, definition, error, f"given up: {verdict.reason}")
        return self._report(
            task,
            "failed",
            attempt.began_ns,
            state="failed",
            error=ErrorReport.of(error),
            reason=verdict.reason,
        )

    def cancelled(self, task: Taken, reason: str = "before it was begun") -> Report:
        """Report a task that was cancelled before it was begun."""
        now_ns = time.time_ns()
        return self._report(task, "cancelled", now_ns, state="cancelled", reason=reason)

    def escaped(self, task: Taken, error: BaseException) -> Report:
        """Report a task of which nothing better can be told."""
        kind = type(error).__name__
        return self._report(
            task,
            "dead",
            time.time_ns(),
            state="dead",
            reason=f"a {kind} escaped while it was run or described",
        )

    def _cancelled(self, attempt: Attempt, reason: str) -> Report:
        return self._report(
            attempt.task,
            "cancelled",
            attempt.began_ns,
            state="cancelled",
            reason=reason,
            task=attempt.definition.ability,
        )

    def _refused(self, task: Taken, error: BaseException, began_ns: int) -> Report:
        verdict: Verdict = "dead"
        if isinstance(error, BadSignature):
            verdict = "forged"
            # What it says of itself is not to be believed, so it is not told.
            logger.warning("task %r is refused: %s", task.id, error.problem)
        return self._report(
            task,
            verdict,
            began_ns,
            state="dead",
            reason=_reason(error),
            refusal=refusal_of(error),
        )

    def _unknown(self, attempt: Attempt) -> Report:
        why = "it was stopped while it ran"
        if attempt.is_overdue:
            why = str(_too_long(attempt))
        return self._report(
            attempt.task,
            "dead",
            attempt.began_ns,
            state="dead",
            reason=f"{OUTCOME_UNKNOWN}: {why}",
        )

    def _log(
        self, task: Taken, definition: TaskDefinition, error: BaseException, then: str
    ) -> None:
        ability, reason = definition.ability, _reason(error)
        logger.warning("task %s (%s) failed: %s; %s", task.id, ability, reason, then)

    def _report(
        self, taken: Taken, verdict: Verdict, began_ns: int, **fields: Any
    ) -> Report:
        now_ns = time.time_ns()
        outcome = TaskOutcome(
            worker=self._worker,
            ended=now_ns // 1_000_000,
            took=max(0, (now_ns - began_ns) // 1_000_000),
            attempt=taken.attempt,
            **fields,
        )
        return Report(taken.id, taken.token, verdict, outcome.encode())


def _moment(milliseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        # A foreign program may write a time that no calendar has.
        return datetime.max.replace(tzinfo=timezone.utc)


def _too_long(attempt: Attempt) -> TimeoutError:
    return TimeoutError(f"it ran for longer than {attempt.timeout:g} s")


def _reason(error: BaseException) -> str:
    told = ErrorReport.of(error)
    if isinstance(error, WorkStealingError):
        return told.message
    return f"{told.type}: {told.message}"
