"""Handles of schedules, and the decorator `@queue.every`, which declares one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from workstealing.client.handle import AsyncTaskHandle, TaskHandle, handles_of
from workstealing.client.queue_internals import QueueInternals, internals_of
from workstealing.client.queue_submissions import check_payloads
from workstealing.client.schedule_state import ScheduleState
from workstealing.client.task import (
    Arguments,
    AsyncTask,
    Task,
    args_and_kwargs,
    definition_of,
    options_of,
)
from workstealing.errors import ConfigurationError, PayloadInvalid
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.schedule import Missed, checked_schedule_name
from workstealing.tasks.schedule_definition import (
    ScheduleDefinition,
    schedule_definition,
)
from workstealing.tasks.submission import SubmitOptions, lines_of
from workstealing.tasks.unique import unique_key

if TYPE_CHECKING:
    from workstealing.client.async_task_queue import AsyncTaskQueue
    from workstealing.client.task import AsyncCoroutineTask, CoroutineTask
    from workstealing.client.task_queue import TaskQueue
    from workstealing.drivers.async_driver import AsyncDriver
    from workstealing.drivers.sync_driver import Driver

__all__ = (
    "AsyncEvery",
    "AsyncScheduleHandle",
    "Every",
    "ScheduleHandle",
    "scheduled_task",
)

P = ParamSpec("P")
R = TypeVar("R")
Q = TypeVar("Q")
T = TypeVar("T", bound=Task[..., Any])
A = TypeVar("A", bound=AsyncTask[..., Any])

_UNCHANGED: Any = object()


class _AnyScheduleHandle:
    __slots__ = ("_internals", "name")

    def __init__(self, internals: Any, name: str) -> None:
        self._internals = internals
        self.name = checked_schedule_name(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class ScheduleHandle(_AnyScheduleHandle):
    """A schedule of a `TaskQueue`, by its `name`."""

    __slots__ = ()
    _internals: QueueInternals[Driver]

    def state(self) -> ScheduleState:
        """Return when it ticks, its next tick and its last one."""
        flow = self._internals.schedules.state(self.name)
        return self._internals.driver.run(flow)

    def pause(self) -> bool:
        """Stop submitting its task until `resume`, from any process.

        Returns:
            False if it was paused already.
        """
        flow = self._internals.schedules.pause(self.name)
        return self._internals.driver.run(flow)

    def resume(self) -> bool:
        """Submit its task again, from its next tick on.

        A schedule that was removed may be declared by its code again.

        Returns:
            False if it was not paused.
        """
        flow = self._internals.schedules.resume(self.name)
        return self._internals.driver.run(flow)

    def change(
        self,
        *,
        every: str | float | timedelta = _UNCHANGED,
        timezone: str = _UNCHANGED,
        missed: Missed = _UNCHANGED,
        jitter: float | timedelta = _UNCHANGED,
    ) -> None:
        """Change when it ticks, without a deploy.

        The change lasts until the schedule's declaration in the code changes.
        """
        changes = _given(every=every, timezone=timezone, missed=missed, jitter=jitter)
        flow = self._internals.schedules.change(self.name, changes)
        self._internals.driver.run(flow)

    def run(self) -> TaskHandle[Any]:
        """Submit its task now, in addition to its ticks.

        If the task is unique and another task has its key, nothing is submitted: the
        handle is that of the other task, and its `is_new` is False.
        """
        done = self._internals.driver.run(self._internals.schedules.run(self.name))
        return handles_of(TaskHandle, self._internals, Any, done)[0]

    def remove(self) -> bool:
        """Remove it; code that declares it, now or before, does not bring it back.

        Returns:
            False if there was none.
        """
        flow = self._internals.schedules.remove(self.name)
        return self._internals.driver.run(flow)


class AsyncScheduleHandle(_AnyScheduleHandle):
    """A schedule of an `AsyncTaskQueue`; the asyncio twin of `ScheduleHandle`."""

    __slots__ = ()
    _internals: QueueInternals[AsyncDriver]

    async def state(self) -> ScheduleState:
        """Return when it ticks, its next tick and its last one."""
        flow = self._internals.schedules.state(self.name)
        return await self._internals.driver.run(flow)

    async def pause(self) -> bool:
        """Stop submitting its task; see `ScheduleHandle.pause`."""
        flow = self._internals.schedules.pause(self.name)
        return await self._internals.driver.run(flow)

    async def resume(self) -> bool:
        """Submit its task again; see `ScheduleHandle.resume`."""
        flow = self._internals.schedules.resume(self.name)
        return await self._internals.driver.run(flow)

    async def change(
        self,
        *,
        every: str | float | timedelta = _UNCHANGED,
        timezone: str = _UNCHANGED,
        missed: Missed = _UNCHANGED,
        jitter: float | timedelta = _UNCHANGED,
    ) -> None:
        """Change when it ticks; see `ScheduleHandle.change`."""
        changes = _given(every=every, timezone=timezone, missed=missed, jitter=jitter)
        flow = self._internals.schedules.change(self.name, changes)
        await self._internals.driver.run(flow)

    async def run(self) -> AsyncTaskHandle[Any]:
        """Submit its task now; see `ScheduleHandle.run`."""
        flow = self._internals.schedules.run(self.name)
        done = await self._internals.driver.run(flow)
        return handles_of(AsyncTaskHandle, self._internals, Any, done)[0]

    async def remove(self) -> bool:
        """Remove it; see `ScheduleHandle.remove`."""
        flow = self._internals.schedules.remove(self.name)
        return await self._internals.driver.run(flow)


class _AnyEvery(Generic[Q]):
    """The decorator that `queue.every(…)` returns: it adds a schedule of a task."""

    def __init__(
        self,
        queue: Q,
        name: str | None,
        keep: bool,
        arguments: Arguments,
        **times: Any,
    ) -> None:
        self._queue: Any = queue
        self._name = name
        self._keep = keep
        self._args, self._kwargs = args_and_kwargs(arguments)
        self._times = times

    def _add(self, function: Any) -> Any:
        task = function
        if not isinstance(function, Task | AsyncTask):
            task = self._queue.task(function)
        name = checked_schedule_name(task.name if self._name is None else self._name)
        try:
            definition = scheduled_task(
                self._queue, task, self._args, self._kwargs, **self._times
            )
        except PayloadInvalid as error:
            problem = f"{error.problem}: say what to pass, in arguments= of every()"
            raise PayloadInvalid(error.task, error.field, problem) from None
        internals_of(self._queue).schedules.add(name, definition, keep=self._keep)
        return task


class Every(_AnyEvery["TaskQueue"]):
    """The decorator that `TaskQueue.every()` returns."""

    @overload
    def __call__(self, function: T, /) -> T: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> CoroutineTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    def __call__(self, function: Any, /) -> Any:
        """Declare the schedule of a task; make a task of a function first."""
        return self._add(function)


class AsyncEvery(_AnyEvery["AsyncTaskQueue"]):
    """The decorator that `AsyncTaskQueue.every()` returns."""

    @overload
    def __call__(self, function: A, /) -> A: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncCoroutineTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> AsyncTask[P, R]: ...
    def __call__(self, function: Any, /) -> Any:
        """Declare the schedule of a task; make a task of a function first."""
        return self._add(function)


def scheduled_task(
    queue: TaskQueue | AsyncTaskQueue,
    task: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    **times: Any,
) -> ScheduleDefinition:
    """Return the definition of a schedule that submits a task with its arguments."""
    if not isinstance(task, Task | AsyncTask):
        raise ConfigurationError(
            f"a schedule needs a task, such as @queue.task makes, not {task!r}"
        )
    internals = internals_of(queue)
    if internals_of(task.queue).keys.prefix != internals.keys.prefix:
        raise ConfigurationError(
            f"{task!r} is a task of {task.queue!r}: schedule it there, not in {queue!r}"
        )
    known, options = definition_of(task), options_of(task)
    context = options.context
    if (options.id, options.delay, options.at) != (None, None, None):
        raise ConfigurationError(
            "a schedule sets the id of its tasks and when they are due: leave out id=,"
            " delay= and at= of options()"
        )
    unique = known.unique
    if unique is not None and unique.debounce is not None:
        raise ConfigurationError(
            f"debounce= says when task '{known.name}' is due, and so does a schedule:"
            " make it unique without debounce=, or schedule another task"
        )
    times_given = (context.deadline, options.expires)
    if context.logging is not None or any(isinstance(t, datetime) for t in times_given):
        raise ConfigurationError(
            "a schedule submits its task many times: use log=True in place of logging=,"
            " and give deadline= and expires= in seconds, not as a time"
        )
    internals.admission.permit(known, context)
    payload = known.signature.encode(args, kwargs)
    check_payloads(known.name, [payload], internals.settings.max_payload)
    lines, limits = lines_of(known, [payload], options)
    return schedule_definition(
        payload,
        task=known.name,
        version=known.version,
        priority=known.priority if options.priority is None else options.priority,
        log=options.log,
        principal=context.principal,
        roles=tuple(context.roles) or (),
        deadline_ms=_latest_start_ms(known, options),
        restart=known.restart,
        line=lines[0] if lines else "",
        limits=limits,
        unique="" if unique is None else unique_key(unique, known.signature, payload),
        unique_ends="d" if unique is None else unique.ends,
        unique_ms=0 if unique is None else unique.window_ms,
        **times,
    )


def _latest_start_ms(task: TaskDefinition, options: SubmitOptions) -> int | None:
    """Return for how many milliseconds after its tick a task may start."""
    limits = (options.expiry_ms(0, task.expires), options.context.deadline_ms(0))
    return min((limit for limit in limits if limit is not None), default=None)


def _given(**changes: Any) -> dict[str, Any]:
    given = {name: value for name, value in changes.items() if value is not _UNCHANGED}
    if not given:
        raise ConfigurationError(f"say what to change: {', '.join(changes)}")
    return given
