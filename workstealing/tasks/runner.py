"""Runs attempts, sync or awaited.

Slots pass a function that calls the task: inline, interruptibly, or in an event loop.
The end of each attempt becomes a report (`reports.py`). No task is dropped: one with a
bad envelope or payload, or that is not genuine or not permitted, becomes a dead letter
with the reason; one that this process does not know goes to a worker that does.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, TypeAlias, TypeGuard, TypeVar

import msgspec

from workstealing._forking import reset_in_children
from workstealing._logs import BackgroundLogger
from workstealing.chance import Chance
from workstealing.clock import LAST_MOMENT, utc_time
from workstealing.errors import (
    ConfigurationError,
    RedisError,
    StopWork,
    UnknownTask,
    WorkStealingError,
)
from workstealing.tasks.admission import Admission
from workstealing.tasks.attempt import (
    Attempt,
    Delivery,
    Ending,
    Report,
    Unfed,
    Unroutable,
)
from workstealing.tasks.context import (
    ExecutionContext,
    TaskNotes,
    control_of,
    enter,
    leave,
)
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.envelope import After, Envelope
from workstealing.tasks.member_result import with_argument
from workstealing.tasks.outcome import MAX_RESULT, TaskOutcome
from workstealing.tasks.reports import AttemptReports, reason_of

__all__ = (
    "AttemptOutput",
    "Complete",
    "NoThread",
    "TaskRunner",
    "end_if_forked",
    "is_lack_of_threads",
)

logger = BackgroundLogger(__name__)

# The verdicts that listeners and hooks are told.
_NOTIFIED = ("retry", "failed", "dead")

A = TypeVar("A")
T = TypeVar("T")

Complete: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end, in a thread that has no running event loop."""


class NoThread(BaseException):
    """Says that a task did not begin, because the system starts no further thread.

    Meant for the worker: it is among the exceptions that its runner raises again.
    """


class AttemptOutput(Protocol):
    """What attempts read and write while they run: arguments, notes, logs."""

    def argument(self, task: Delivery, after: After) -> bytes:
        """Read the result that a step takes from the steps before it.

        Raises `RedisError` if Redis cannot be asked.
        """
        ...

    def may_begin(self, attempt: Attempt) -> bool:
        """Record that a task which must not run twice begins; False if it must not.

        Raises `RedisError` if Redis cannot be asked.
        """
        ...

    def notes(self, attempt: Attempt) -> TaskNotes:
        """Return where the attempt shows its progress and saves checkpoints."""
        ...

    def capture(self, attempt: Attempt) -> AbstractContextManager[object]:
        """Capture what the attempt logs and prints, while the context lasts."""
        ...

    def settle(self, attempt: Attempt, report: Report | None) -> None:
        """Drop the progress and checkpoints of a task that has ended."""
        ...


class TaskRunner:
    """Runs the tasks of a queue for one worker.

    Args:
        admission: which tasks are known, genuine and permitted.
        worker: the name that reports carry.
        queue: the name that contexts carry.
        chance: jitter between retries.
        output: what attempts read and write while they run.
        max_result: bytes of one result.
        reraised: exceptions that are meant for the worker, not for the task.
        resources: returns the worker's resources for the parameters of a task.
        time_ns: tells the nanoseconds since 1970; None: the clock of the machine.
    """

    def __init__(
        self,
        admission: Admission,
        worker: str,
        queue: str,
        chance: Chance,
        output: AttemptOutput,
        *,
        max_result: int = MAX_RESULT,
        reraised: tuple[type[BaseException], ...] = (),
        resources: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None,
        time_ns: Callable[[], int] | None = None,
    ) -> None:
        self._admission = admission
        self._worker = worker
        self._queue = queue
        self._output = output
        self._reraised = reraised
        self._resources = resources
        self._time_ns = time_ns or time.time_ns
        self._pid = os.getpid()
        # A flag, since asking for the pid after each task would be a system call.
        self._is_forked = False
        reset_in_children(self, TaskRunner._find_itself_forked)
        self.reports = AttemptReports(
            worker,
            chance,
            self.note_error,
            max_result=max_result,
            reraised=reraised,
            time_ns=self._time_ns,
        )
        """Turns how an attempt ended into a report, and notes what ended."""

    def execute(
        self,
        delivery: Delivery,
        call: Callable[[Attempt], Any],
        complete: Complete = asyncio.run,
    ) -> Ending:
        """Prepare and run a task; *call* calls its function and returns the result.

        Hooks that are coroutine functions are run by *complete*.
        """
        try:
            attempt = self.prepare(delivery)
            if isinstance(attempt, Attempt):
                return self.run(attempt, call, complete)
            if isinstance(attempt, Unfed):
                attempt = self._feed(attempt)
                if isinstance(attempt, Attempt):
                    return self.run(attempt, call, complete)
            if isinstance(attempt, Report):
                self._notify_refused(delivery, attempt, complete)
            return attempt
        except self._reraised:
            raise
        except BaseException as error:  # noqa: BLE001 - a slot must survive its tasks
            return self.reports.escaped(delivery, error)

    async def execute_async(
        self, delivery: Delivery, call: Callable[[Attempt], Awaitable[Any]]
    ) -> Ending:
        """Prepare and run a task; *call* awaits its function."""
        try:
            attempt = self.prepare(delivery)
            if isinstance(attempt, Attempt):
                return await self.run_async(attempt, call)
            if isinstance(attempt, Unfed):
                attempt = await _beside_loop(self._feed, attempt)
                if isinstance(attempt, Attempt):
                    return await self.run_async(attempt, call)
            if isinstance(attempt, Report):
                await asyncio.to_thread(self._notify_refused, delivery, attempt)
            return attempt
        except asyncio.CancelledError:
            raise
        except self._reraised:
            raise
        except BaseException as error:  # noqa: BLE001 - a slot must survive its tasks
            return self.reports.escaped(delivery, error)

    def run(
        self,
        attempt: Attempt,
        call: Callable[[Attempt], Any],
        complete: Complete = asyncio.run,
    ) -> Report | None:
        """Run an attempt in this thread."""
        output = self._output
        if attempt.runs_once:
            try:
                if not output.may_begin(attempt):
                    return None
            except RedisError as error:
                return self.reports.not_begun(attempt.task, error)
        control = control_of(attempt.context)
        control.attempt, control.output = attempt, output
        token = enter(attempt.context)
        try:
            if attempt.envelope.log:
                with output.capture(attempt):
                    value = call(attempt)
            else:
                value = call(attempt)
        except self._reraised:
            end_if_forked(self._pid)
            raise
        except BaseException as error:  # noqa: BLE001 - it is the task's own
            report = self.ending_of(attempt, error)
        else:
            is_over = control.is_abandoned
            report = None if is_over else self.reports.returned(attempt, value)
        finally:
            leave(token)
        if self._is_forked:
            end_if_forked(self._pid)
        if _claims_notice(report, attempt):
            self.notify(attempt, report, complete)
        if control.has_notes:
            output.settle(attempt, report)
        return report

    async def run_async(
        self, attempt: Attempt, call: Callable[[Attempt], Awaitable[Any]]
    ) -> Report | None:
        """Run an attempt in the running event loop, which must not wait for Redis."""
        output = self._output
        if attempt.runs_once:
            try:
                if not await _beside_loop(output.may_begin, attempt):
                    return None
            except RedisError as error:
                return self.reports.not_begun(attempt.task, error)
        control = control_of(attempt.context)
        control.attempt, control.output = attempt, output
        token = enter(attempt.context)
        try:
            if attempt.envelope.log:
                with output.capture(attempt):
                    value = await call(attempt)
            else:
                value = await call(attempt)
        except self._reraised:
            end_if_forked(self._pid)
            raise
        except BaseException as error:  # noqa: BLE001 - it is the task's own
            report = self.ending_of(attempt, error)
        else:
            is_over = control.is_abandoned
            report = None if is_over else self.reports.returned(attempt, value)
        finally:
            leave(token)
        end_if_forked(self._pid)
        if _claims_notice(report, attempt):
            await self.notify_async(attempt, report)
        if control.has_notes:
            await asyncio.to_thread(output.settle, attempt, report)
        return report

    def prepare(self, delivery: Delivery) -> Attempt | Report | Unroutable | Unfed:
        """Make a task ready to run, or report why it cannot run."""
        began_ns = self._time_ns()
        now_ms = began_ns // 1_000_000
        admission = self._admission
        try:
            envelope = admission.verified_envelope(
                delivery.id, delivery.envelope, now_ms
            )
            if envelope.deadline and envelope.deadline <= now_ms:
                return self.reports.expired(delivery, envelope, began_ns)
            definition = admission.registry.find(envelope.name, envelope.version)
            if admission.policy is not None:
                admission.permit(definition, envelope)
            payload, after = envelope.payload, envelope.after
            if after is not None and after.into:
                if delivery.argument is None:
                    return Unfed(delivery, after)
                payload = with_argument(payload, after.into, delivery.argument)
            arguments = definition.decode(envelope.version, payload)
            signature = definition.signature
            if signature.resources:
                arguments.update(self._opened(definition))
        except UnknownTask:
            return Unroutable(delivery, envelope.ability)
        except KeyboardInterrupt:
            raise
        except self._reraised:
            raise
        except BaseException as error:  # noqa: BLE001 - classes of a payload raise all
            return self.reports.refused(delivery, error, began_ns)
        context = self._context_of(delivery, envelope)
        parameter = signature.context_parameter
        if parameter is not None:
            arguments[parameter] = context
        return Attempt(delivery, envelope, definition, arguments, context, began_ns)

    def _context_of(self, delivery: Delivery, envelope: Envelope) -> ExecutionContext:
        deadline = None
        if envelope.deadline:
            deadline = utc_time(envelope.deadline) or LAST_MOMENT
        return ExecutionContext(
            delivery.id,
            envelope.name,
            envelope.version,
            delivery.attempt,
            self._worker,
            self._queue,
            principal=envelope.principal,
            roles=envelope.roles,
            deadline=deadline,
        )

    def _find_itself_forked(self) -> None:
        self._is_forked = True

    def _feed(self, step: Unfed) -> Attempt | Report | Unroutable:
        """Make a step ready to run, with the result of the steps before it."""
        delivery = step.task
        try:
            argument = self._output.argument(step.task, step.after)
        except RedisError as error:
            return self.reports.not_begun(delivery, error)
        except WorkStealingError as error:
            return self.refused_unfed(delivery, error)
        fed = self.prepare(msgspec.structs.replace(delivery, argument=argument))
        assert not isinstance(fed, Unfed), "it has its argument"
        return fed

    def refused_unfed(self, delivery: Delivery, error: WorkStealingError) -> Report:
        """Report a step whose argument is gone."""
        return self.reports.refused(delivery, error, self._time_ns())

    def cancelled(
        self, delivery: Delivery, reason: str = "before it was begun"
    ) -> Report:
        """Report a task that was cancelled before it was begun."""
        return self.reports.cancelled(delivery, reason)

    def stopped(
        self, attempt: Attempt, reason: str, where: TracebackType | None = None
    ) -> Report | None:
        """Report an attempt that was stopped; None if another worker has the task."""
        return self.reports.stopped(attempt, reason, where)

    def ending_of(self, attempt: Attempt, error: BaseException) -> Report | None:
        """Report an attempt that raised; None if another worker has the task."""
        if control_of(attempt.context).is_abandoned:
            return None
        if isinstance(error, StopWork):
            return self.stopped(attempt, str(error), error.__traceback__)
        if attempt.is_interrupted and isinstance(error, asyncio.CancelledError):
            return self.stopped(attempt, "it was told to stop", _cancelled_at(error))
        return self.reports.raised(attempt, error)

    def note_error(self, attempt: Attempt, error: BaseException) -> None:
        """Called with the error that an attempt ends with; for runners with hooks."""

    def notify_end(self, attempt: Attempt, report: Report | None) -> None:
        """Call the listeners of an attempt that ended with its process."""
        self.notify_report(attempt, report)

    def notify_report(
        self,
        attempt: Attempt,
        report: Report | None,
        complete: Complete = asyncio.run,
    ) -> None:
        """Call the listeners of an attempt that cannot do so itself, or not in time."""
        if _claims_notice(report, attempt):
            self.notify(attempt, report, complete)
        if control_of(attempt.context).has_notes:
            self._output.settle(attempt, report)

    def _notify_refused(
        self, delivery: Delivery, report: Report, complete: Complete = asyncio.run
    ) -> None:
        """Call the listeners of a task that is a dead letter before it began.

        Not if it is unknown, not genuine or not permitted: then its sender must not be
        able to have them called.
        """
        if report.verdict != "dead":
            return
        now_ns, admission = self._time_ns(), self._admission
        try:
            envelope = admission.verified_envelope(
                delivery.id, delivery.envelope, now_ns // 1_000_000
            )
            definition = admission.registry.find(envelope.name, envelope.version)
            admission.permit(definition, envelope)
        except WorkStealingError:
            return
        context = self._context_of(delivery, envelope)
        attempt = Attempt(delivery, envelope, definition, {}, context, now_ns)
        outcome = TaskOutcome.read(report.outcome)
        control_of(context).given_up = outcome.reason
        self.note_error(attempt, outcome.problem(delivery.id) or StopWork())
        self.notify_report(attempt, report, complete)

    def _opened(self, definition: TaskDefinition) -> dict[str, Any]:
        if self._resources is None:
            raise ConfigurationError(
                f"task '{definition.name}' asks for resources, and none were opened"
                " here: they must be defined before the worker starts"
            )
        return self._resources(definition.signature.resources)

    def notify(
        self,
        attempt: Attempt,
        report: Report,  # noqa: ARG002 - for hooks, which a subclass has
        complete: Complete,  # noqa: ARG002 - for hooks
    ) -> None:
        """Call the listeners of a task that is tried again or given up."""
        self._call_on_give_up(attempt)

    async def notify_async(
        self,
        attempt: Attempt,
        report: Report,  # noqa: ARG002 - for hooks, which a subclass has
    ) -> None:
        """Call the listeners from an event loop, which must not block."""
        if attempt.definition.on_give_up is not None:
            await asyncio.to_thread(self._call_on_give_up, attempt)

    def _call_on_give_up(self, attempt: Attempt) -> None:
        """Call the `on_give_up` of a task that was given up."""
        reason = control_of(attempt.context).given_up
        on_give_up = attempt.definition.on_give_up
        if reason is None or on_give_up is None:
            return
        try:
            on_give_up(attempt.context, reason)
        except BaseException as error:  # noqa: BLE001 - the task has ended all the same
            logger.error(
                "on_give_up of task %s (%s) failed; nobody was told: %s",
                attempt.task.id,
                attempt.definition.ability,
                reason_of(error),
                error=error,
            )


def is_lack_of_threads(error: RuntimeError) -> bool:
    """Return whether Python raised it because the system starts no further thread."""
    return "start new thread" in str(error)


async def _beside_loop(function: Callable[[A], T], argument: A) -> T:
    """Call a function in a thread, before the task begins."""
    try:
        return await asyncio.to_thread(function, argument)
    except RuntimeError as error:
        if is_lack_of_threads(error):
            raise NoThread from None
        raise


def end_if_forked(pid: int) -> None:
    """End this process if it is a fork that a task made and did not end.

    It would go on as a second worker of the same name, and fork again.
    """
    if os.getpid() != pid:
        os._exit(0)


def _cancelled_at(error: asyncio.CancelledError) -> TracebackType | None:
    """Return where a coroutine was cancelled."""
    # Up to Python 3.10, each task that awaits it raises another one.
    while isinstance(error.__context__, asyncio.CancelledError):
        error = error.__context__
    return error.__traceback__


def _claims_notice(report: Report | None, attempt: Attempt) -> TypeGuard[Report]:
    """Return whether to call the listeners of an attempt; True only once.

    If the lease is lost, the next worker calls them.
    """
    if report is None or report.verdict not in _NOTIFIED:
        return False
    control = control_of(attempt.context)
    if control.is_notified or control.is_lease_lost:
        return False
    control.is_notified = True
    return True
