"""From an envelope to a report: arguments, the call, its outcome, another try.

What cannot be run is never dropped. A bad envelope or payload is a dead letter with its
reason; a task that this process does not know is parked for one that does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from workstealing.chance import Chance
from workstealing.errors import StopWork, UnknownTask, WorkStealingError
from workstealing.queue.consuming import Report, Taken, Verdict
from workstealing.tasks.context import TaskContext, enter, leave
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.outcome import ErrorReport, TaskOutcome
from workstealing.tasks.registry import Registry
from workstealing.tasks.retry import RetryAfter
from workstealing.tasks.task import TaskDefinition

__all__ = ("Executor", "Unable")

logger = logging.getLogger(__name__)

_NEVER = 2**63


@dataclass(frozen=True, slots=True)
class Unable:
    """A task that this process does not know, and what it would need."""

    task: Taken
    ability: str


class Executor:
    """Runs tasks one by one, in the calling thread."""

    def __init__(
        self, registry: Registry, worker: str, queue: str, chance: Chance
    ) -> None:
        self._registry = registry
        self._worker = worker
        self._queue = queue
        self._chance = chance
        self._loop: asyncio.AbstractEventLoop | None = None
        self.context: TaskContext | None = None
        """Of the task that runs now, if any."""

    def execute(self, task: Taken) -> Report | Unable | None:
        """Run a task; return its report, or None if it is another's by now."""
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
        context = TaskContext(
            task.id,
            envelope.name,
            envelope.version,
            task.attempt,
            self._worker,
            self._queue,
        )
        if definition.signature.context_parameter is not None:
            arguments[definition.signature.context_parameter] = context
        self.context = context
        token = enter(context)
        try:
            value = definition.function(**arguments)
            if definition.is_coroutine:
                value = self._awaited(value, envelope.timeout or definition.timeout)
            result = definition.signature.encode_result(value)
        except StopWork as request:
            return self._stopped(task, context, str(request), began_ns)
        except KeyboardInterrupt:
            # Meant for the worker, wherever it happened to be.
            raise
        except BaseException as error:  # noqa: BLE001 - it is the task's own
            return self._failed(task, definition, envelope, context, error, began_ns)
        finally:
            leave(token)
            self.context = None
        return self._report(task, "done", began_ns, result=msgspec.Raw(result))

    def cancelled(self, task: Taken, reason: str = "before it was begun") -> Report:
        """Report a task that was cancelled before it was begun."""
        now_ns = time.time_ns()
        return self._report(task, "cancelled", now_ns, state="cancelled", reason=reason)

    def close(self) -> None:
        """End the event loop in which coroutines ran."""
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._loop = None

    def _awaited(self, coroutine: Any, timeout: float | None) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        if timeout is not None:
            coroutine = asyncio.wait_for(coroutine, timeout)
        return self._loop.run_until_complete(coroutine)

    def _stopped(
        self, task: Taken, context: TaskContext, reason: str, began_ns: int
    ) -> Report | None:
        if context.lease_lost:
            return None
        if not context.cancelled:
            return Report(task.id, task.token, "back")
        return self._report(
            task, "cancelled", began_ns, state="cancelled", reason=reason
        )

    def _failed(
        self,
        task: Taken,
        definition: TaskDefinition,
        envelope: Envelope,
        context: TaskContext,
        error: BaseException,
        began_ns: int,
    ) -> Report:
        policy = definition.retry
        if envelope.retries is not None:
            policy = replace(policy, retries=envelope.retries)
        verdict = policy.verdict(error, task.attempt, self._chance)
        if isinstance(verdict, RetryAfter) and context.cancelled:
            reason = "not tried again: " + _reason(error)
            return self._report(
                task, "cancelled", began_ns, state="cancelled", reason=reason
            )
        if isinstance(verdict, RetryAfter):
            delay_ms = max(1, round(verdict.seconds * 1000))
            self._log(task, definition, error, f"tried again in {delay_ms} ms")
            return Report(task.id, task.token, "retry", delay_ms=delay_ms)
        self._log(task, definition, error, f"given up: {verdict.reason}")
        return self._report(
            task,
            "dead",
            began_ns,
            state="failed",
            error=ErrorReport.of(error),
            reason=verdict.reason,
        )

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


def _reason(error: BaseException) -> str:
    told = ErrorReport.of(error)
    if isinstance(error, WorkStealingError):
        return told.message
    return f"{told.type}: {told.message}"
