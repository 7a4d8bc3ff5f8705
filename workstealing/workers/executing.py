"""From an envelope to an attempt, and from how it ended to a report.

Nothing is run here: whoever has a thread or an event loop runs the attempt in between.
What cannot be run is never dropped. A bad envelope or payload is a dead letter with its
reason; a task that this process does not know is handed to one that does.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from workstealing.chance import Chance
from workstealing.errors import UnknownTask, WorkStealingError
from workstealing.queue.consuming import Report, Taken, Verdict
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.outcome import ErrorReport, TaskOutcome
from workstealing.tasks.registry import Registry
from workstealing.tasks.retry import RetryAfter
from workstealing.tasks.task import TaskDefinition

__all__ = ("Attempt", "Executor", "Unable")

logger = logging.getLogger(__name__)

_NEVER = 2**63


@dataclass(frozen=True, slots=True)
class Unable:
    """A task that this process does not know, and what it would need."""

    task: Taken
    ability: str


class Attempt:
    """One try at a task: all that is needed to run it and to report on it."""

    __slots__ = (
        "_claims",
        "arguments",
        "began_ns",
        "context",
        "definition",
        "envelope",
        "is_overdue",
        "task",
    )

    def __init__(
        self,
        task: Taken,
        envelope: Envelope,
        definition: TaskDefinition,
        arguments: dict[str, Any],
        context: ExecutionContext,
        began_ns: int,
    ) -> None:
        self.task = task
        self.envelope = envelope
        self.definition = definition
        self.arguments = arguments
        self.context = context
        self.began_ns = began_ns
        self.is_overdue = False
        """It ran for longer than it may, and was told to stop."""
        self._claims = [True]

    @property
    def timeout(self) -> float | None:
        """How many seconds it may run."""
        return self.envelope.timeout or self.definition.timeout

    def claim(self) -> bool:
        """Be the one who reports on it: true for the first who asks."""
        try:
            return self._claims.pop()
        except IndexError:
            return False


class Executor:
    """Knows the tasks of a queue, and what to tell of their attempts."""

    def __init__(
        self, registry: Registry, worker: str, queue: str, chance: Chance
    ) -> None:
        self._registry = registry
        self._worker = worker
        self._queue = queue
        self._chance = chance

    def prepare(self, task: Taken) -> Attempt | Report | Unable:
        """Make a task ready to run, or tell why it is not to be run."""
        began_ns = time.time_ns()
        try:
            envelope = Envelope.read(task.envelope)
            if (envelope.deadline or _NEVER) < began_ns // 1_000_000:
                return self.cancelled(task, "its deadline has passed")
            definition = self._registry.find(envelope.name, envelope.version)
            arguments = definition.signature.decode(envelope.payload)
        except UnknownTask:
            return Unable(task, f"{envelope.name}@{envelope.version}")
        except Exception as error:  # noqa: BLE001 - classes of a payload raise anything
            return self._report(
                task, "dead", began_ns, state="dead", reason=_reason(error)
            )
        context = ExecutionContext(
            task.id,
            envelope.name,
            envelope.version,
            task.attempt,
            self._worker,
            self._queue,
        )
        if definition.signature.context_parameter is not None:
            arguments[definition.signature.context_parameter] = context
        return Attempt(task, envelope, definition, arguments, context, began_ns)

    def returned(self, attempt: Attempt, value: Any) -> Report | None:
        """Report what it returned."""
        try:
            result = attempt.definition.signature.encode_result(value)
        except Exception as error:  # noqa: BLE001 - classes of a result raise anything
            return self.raised(attempt, error)
        return self._report(
            attempt.task, "done", attempt.began_ns, result=msgspec.Raw(result)
        )

    def stopped(self, attempt: Attempt, reason: str) -> Report | None:
        """Report that it heeded a request to stop; None if it is another's by now."""
        task, context = attempt.task, attempt.context
        if context.lease_lost:
            return None
        if attempt.is_overdue:
            return self.raised(attempt, _too_long(attempt))
        if not context.cancelled:
            return Report(task.id, task.token, "back")
        return self._report(
            task, "cancelled", attempt.began_ns, state="cancelled", reason=reason
        )

    def raised(self, attempt: Attempt, error: BaseException) -> Report:
        """Report that it failed, or is to be tried again."""
        task, definition = attempt.task, attempt.definition
        policy = definition.retry
        if attempt.envelope.retries is not None:
            policy = replace(policy, retries=attempt.envelope.retries)
        verdict = policy.verdict(error, task.attempt, self._chance)
        if isinstance(verdict, RetryAfter) and attempt.context.cancelled:
            reason = "not tried again: " + _reason(error)
            return self._report(
                task, "cancelled", attempt.began_ns, state="cancelled", reason=reason
            )
        if isinstance(verdict, RetryAfter):
            delay_ms = max(1, round(verdict.seconds * 1000))
            self._log(task, definition, error, f"tried again in {delay_ms} ms")
            return Report(task.id, task.token, "retry", delay_ms=delay_ms)
        self._log(task, definition, error, f"given up: {verdict.reason}")
        return self._report(
            task,
            "dead",
            attempt.began_ns,
            state="failed",
            error=ErrorReport.of(error),
            reason=verdict.reason,
        )

    def cancelled(self, task: Taken, reason: str = "before it was begun") -> Report:
        """Report a task that was cancelled before it was begun."""
        now_ns = time.time_ns()
        return self._report(task, "cancelled", now_ns, state="cancelled", reason=reason)

    def _log(
        self, task: Taken, definition: TaskDefinition, error: BaseException, then: str
    ) -> None:
        ability, reason = definition.ability, _reason(error)
        logger.warning("task %s (%s) failed: %s; %s", task.id, ability, reason, then)

    def _report(
        self, task: Taken, verdict: Verdict, began_ns: int, **fields: Any
    ) -> Report:
        now_ns = time.time_ns()
        outcome = TaskOutcome(
            worker=self._worker,
            ended=now_ns // 1_000_000,
            took=max(0, (now_ns - began_ns) // 1_000_000),
            attempt=task.attempt,
            **fields,
        )
        return Report(task.id, task.token, verdict, outcome.encode())


def _too_long(attempt: Attempt) -> TimeoutError:
    return TimeoutError(f"it ran for longer than {attempt.timeout:g} s")


def _reason(error: BaseException) -> str:
    told = ErrorReport.of(error)
    if isinstance(error, WorkStealingError):
        return told.message
    return f"{told.type}: {told.message}"
