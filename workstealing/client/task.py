"""A task: a function that can be called as before, or submitted to a queue."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial, update_wrapper
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
)

from workstealing._checks import checked_id
from workstealing.client.composed_submission import PlannedStep, planned_step
from workstealing.client.composition import AsyncLink, AsyncStep, Link, Step
from workstealing.client.handle import AsyncTaskHandle, TaskHandle, handles_of
from workstealing.client.queue_internals import QueueInternals, internals_of
from workstealing.errors import ConfigurationError, PayloadInvalid
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.definition import TaskDefinition, define, refuse_options
from workstealing.tasks.retry import checked_restart
from workstealing.tasks.submission import (
    NOBODY,
    ClientContext,
    Submission,
    SubmitOptions,
)

if TYPE_CHECKING:
    from workstealing.client.async_task_queue import AsyncTaskQueue
    from workstealing.client.task_queue import TaskQueue
    from workstealing.drivers.async_driver import AsyncDriver
    from workstealing.drivers.sync_driver import Driver
    from workstealing.queue.steps import Flow

__all__ = (
    "Arguments",
    "AsyncTask",
    "AsyncTaskDecorator",
    "OnGiveUp",
    "Task",
    "TaskDecorator",
    "args_and_kwargs",
    "check_arguments",
    "definition_of",
    "options_of",
    "task_or_decorator",
)

P = ParamSpec("P")
Q = ParamSpec("Q")
X = TypeVar("X")
R = TypeVar("R")
Self = TypeVar("Self", bound="_AnyTask[Any, Any]")
H = TypeVar("H", bound=TaskHandle[Any] | AsyncTaskHandle[Any])

Arguments = Sequence[Any] | Mapping[str, Any]
"""The arguments of one task, by position or by name."""

_PLAIN = SubmitOptions()
_NO_NAMES: Mapping[str, Any] = {}
_OPTIONS = (
    *("id", "priority", "delay", "at", "expires", "context", "log"),
    *("again", "fair_key", "fair_weight", "retries", "timeout", "shard_key"),
)


class _AnyTask(Generic[P, R]):
    """What a `Task` and an `AsyncTask` have in common."""

    def __init__(
        self, queue: Any, definition: TaskDefinition, options: SubmitOptions = _PLAIN
    ) -> None:
        self.queue = queue
        self._internals: QueueInternals[Any] = internals_of(queue)
        self._options = options
        self._definition = definition
        self._result_type = definition.signature.result_type
        self.__name__ = definition.function.__name__
        self.__doc__ = definition.function.__doc__
        self.__wrapped__ = definition.function

    @property
    def name(self) -> str:
        """The name of the task."""
        return self._definition.name

    @property
    def version(self) -> int:
        """The version of the task, which says what its payload means."""
        return self._definition.version

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, in this process, without the queue."""
        result: R = self._definition.function(*args, **kwargs)
        return result

    def options(
        self: Self,
        *,
        id: str | None = None,  # noqa: A002 - the word users know
        priority: int | None = None,
        delay: float | timedelta | None = None,
        at: datetime | None = None,
        expires: float | timedelta | datetime | None = None,
        context: ClientContext = NOBODY,
        log: bool = False,
        again: bool = False,
        fair_key: str | None = None,
        fair_weight: float | None = None,
        retries: int | None = None,
        timeout: float | timedelta | None = None,
        shard_key: str | None = None,
        **unknown: NoReturn,
    ) -> Self:
        """Return the same task with other options for its submission.

        Options of an earlier `options()` are not kept.

        Args:
            id: a dedupe key: while the queue has a task with this id, it is not
                submitted again, and `handle.is_new` is False.
            priority: 0 is urgent, 2 is whenever.
            delay: seconds until it is due.
            at: when it is due, with a time zone; instead of `delay`.
            expires: the latest start: seconds after it is due, or a time with a zone.
            context: on whose behalf it is called, and how.
            log: keep what it logs and prints, for `handle.logs()`.
            again: submit it even if a task with this id or unique key has ended, in
                whatever way, which is then forgotten; a task that waits or runs is
                kept.
            fair_key: tasks with different keys take turns; instead of the key that
                the task is defined with.
            fair_weight: how many turns its key gets.
            retries: how often it is tried again, instead of what the task says.
            timeout: seconds that an attempt may last, instead of what the task says.
            shard_key: on a queue with shards, tasks with one key are in one shard.
            unknown: refused by name; type checkers refuse it, too.
        """
        if unknown:
            refuse_options(".options()", unknown, _OPTIONS)
        if fair_weight is not None and fair_key is None:
            names = self._definition.line_names
            if names is None or names.fair_key is None:
                raise ConfigurationError(
                    f"task '{self.name}': fair_weight= goes with fair_key="
                )
        if retries:
            checked_restart(self._definition.restart, True, retries)
        options = SubmitOptions(
            id=id,
            priority=priority,
            delay=delay,
            at=at,
            expires=expires,
            context=context,
            log=log,
            again=again,
            fair_key=fair_key,
            fair_weight=fair_weight,
            retries=retries,
            timeout=timeout,
            shard_key=shard_key,
        )
        return type(self)(self.queue, self._definition, options)

    def _planned(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> PlannedStep:
        return planned_step(
            self._internals, self._definition, self._options, args, kwargs
        )

    def _one(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], options: SubmitOptions
    ) -> Flow[Submission]:
        self._internals.admission.permit(self._definition, options.context)
        payload = self._definition.signature.encode(args, kwargs)
        ids = None if options.id is None else [options.id]
        return self._internals.submit(self._definition, [payload], options, ids)

    def _handles(self, kind: type[H], done: Submission) -> list[H]:
        return handles_of(kind, self._internals, self._result_type, done)

    def _many(
        self, tasks: Iterable[Arguments], ids: Sequence[str] | None
    ) -> Flow[Submission]:
        if self._options.id is not None:
            raise ConfigurationError(
                "options(id=…) names one task: submit_many() takes ids=, one per task"
            )
        self._internals.admission.permit(self._definition, self._options.context)
        encode = self._definition.signature.encode
        payloads = [
            encode(arguments, _NO_NAMES)
            if type(arguments) is tuple
            else encode(*args_and_kwargs(arguments))
            for arguments in tasks
        ]
        return self._internals.submit(self._definition, payloads, self._options, ids)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._definition.ability}>"


class Task(_AnyTask[P, R]):
    """A task of a `TaskQueue`."""

    queue: TaskQueue
    _internals: QueueInternals[Driver]

    # A function whose arguments all have defaults fits both: it becomes a Step.
    @overload
    def s(  # type: ignore[overload-overlap]
        self, *args: P.args, **kwargs: P.kwargs
    ) -> Step[R]: ...
    @overload
    def s(
        self: Callable[Concatenate[X, Q], Any], *args: Q.args, **kwargs: Q.kwargs
    ) -> Link[X, R]: ...
    def s(self, *args: Any, **kwargs: Any) -> Any:
        """Return the task with its arguments, for a chain or a group.

        If the first argument is left out, it is the result of the step before.
        """
        plan = self._planned(args, kwargs)
        return Link(plan) if plan.into else Step(plan)

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Put the task into the queue."""
        return self._submitted(self._one(args, kwargs, self._options))

    def submit_in(
        self, delay: float | timedelta, *args: P.args, **kwargs: P.kwargs
    ) -> TaskHandle[R]:
        """Put the task into the queue, due in *delay* seconds."""
        options = replace(self._options, delay=delay, at=None)
        return self._submitted(self._one(args, kwargs, options))

    def submit_at(
        self, at: datetime, *args: P.args, **kwargs: P.kwargs
    ) -> TaskHandle[R]:
        """Put the task into the queue, due at the time *at*, with a time zone."""
        options = replace(self._options, at=at, delay=None)
        return self._submitted(self._one(args, kwargs, options))

    def submit_many(
        self, tasks: Iterable[Arguments], ids: Sequence[str] | None = None
    ) -> list[TaskHandle[R]]:
        """Put many tasks into the queue, a round trip per thousand.

        Args:
            tasks: the arguments of each, as a tuple by position or a dict by name.
            ids: a dedupe key for each; see `options`.
        """
        done = self._internals.driver.run(self._many(tasks, ids))
        return self._handles(TaskHandle, done)

    def handle(self, task_id: str) -> TaskHandle[R]:
        """Return the handle of such a task that was submitted earlier or elsewhere.

        Unlike `queue.handle()`, it knows the type of the result.
        """
        return TaskHandle(self._internals, checked_id(task_id), self._result_type)

    def _submitted(self, flow: Flow[Submission]) -> TaskHandle[R]:
        return self._handles(TaskHandle, self._internals.driver.run(flow))[0]


class AsyncTask(_AnyTask[P, R]):
    """A task of an `AsyncTaskQueue`."""

    queue: AsyncTaskQueue
    _internals: QueueInternals[AsyncDriver]

    # A function whose arguments all have defaults fits both: it becomes a Step.
    @overload
    def s(  # type: ignore[overload-overlap]
        self, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStep[R]: ...
    @overload
    def s(
        self: Callable[Concatenate[X, Q], Any], *args: Q.args, **kwargs: Q.kwargs
    ) -> AsyncLink[X, R]: ...
    def s(self, *args: Any, **kwargs: Any) -> Any:
        """Return the task with its arguments, for a chain or a group; see `Task.s`."""
        plan = self._planned(args, kwargs)
        return AsyncLink(plan) if plan.into else AsyncStep(plan)

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> AsyncTaskHandle[R]:
        """Put the task into the queue."""
        return await self._submitted(self._one(args, kwargs, self._options))

    async def submit_in(
        self, delay: float | timedelta, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncTaskHandle[R]:
        """Put the task into the queue, due in *delay* seconds."""
        options = replace(self._options, delay=delay, at=None)
        return await self._submitted(self._one(args, kwargs, options))

    async def submit_at(
        self, at: datetime, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncTaskHandle[R]:
        """Put the task into the queue, due at the time *at*, with a time zone."""
        options = replace(self._options, at=at, delay=None)
        return await self._submitted(self._one(args, kwargs, options))

    async def submit_many(
        self, tasks: Iterable[Arguments], ids: Sequence[str] | None = None
    ) -> list[AsyncTaskHandle[R]]:
        """Put many tasks into the queue; see `Task.submit_many`."""
        done = await self._internals.driver.run(self._many(tasks, ids))
        return self._handles(AsyncTaskHandle, done)

    def handle(self, task_id: str) -> AsyncTaskHandle[R]:
        """Return the handle of an earlier task; see `Task.handle`."""
        return AsyncTaskHandle(self._internals, checked_id(task_id), self._result_type)

    async def _submitted(self, flow: Flow[Submission]) -> AsyncTaskHandle[R]:
        return self._handles(AsyncTaskHandle, await self._internals.driver.run(flow))[0]


if TYPE_CHECKING:
    # For type checkers only: a direct call of an `async def` returns a coroutine, while
    # the handle of a submission has the same result as that of a `def`.

    class CoroutineTask(Task[P, R]):
        """A task of a `TaskQueue` whose function is `async def`."""

        def __call__(  # type: ignore[override]
            self, *args: P.args, **kwargs: P.kwargs
        ) -> Coroutine[Any, Any, R]: ...

    class AsyncCoroutineTask(AsyncTask[P, R]):
        """A task of an `AsyncTaskQueue` whose function is `async def`."""

        def __call__(  # type: ignore[override]
            self, *args: P.args, **kwargs: P.kwargs
        ) -> Coroutine[Any, Any, R]: ...


OnGiveUp: TypeAlias = (
    Callable[[ExecutionContext, str], Any]
    | Task[[str, str], Any]
    | AsyncTask[[str, str], Any]
)
"""Called, or submitted, when a task is given up: with its context, or id, and why."""


class TaskDecorator(Protocol):
    """What `TaskQueue.task()` returns if it is called with options only."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> CoroutineTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class AsyncTaskDecorator(Protocol):
    """What `AsyncTaskQueue.task()` returns if it is called with options only."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncCoroutineTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> AsyncTask[P, R]: ...


def task_or_decorator(
    kind: type[_AnyTask[Any, Any]],
    queue: TaskQueue | AsyncTaskQueue,
    function: Callable[..., Any] | None,
    options: Mapping[str, Any],
) -> Any:
    """Return what `@queue.task` makes of a function, or without one, the decorator."""

    def make(function: Callable[..., Any]) -> _AnyTask[Any, Any]:
        definition = define(function, **_with_listener(options))
        queue.registry.add(definition)
        task = kind(queue, definition)
        _show_parameters(task)
        return task

    return make if function is None else make(function)


def _with_listener(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace a task that is given as `on_give_up=` by a function that submits it."""
    listener = options.get("on_give_up")
    if not isinstance(listener, _AnyTask):
        return options
    definition = definition_of(listener)
    try:
        definition.signature.encode(("id", "reason"), _NO_NAMES)
    except PayloadInvalid as error:
        raise ConfigurationError(
            f"on_give_up={listener!r} must take the id of the task that was given up"
            f" and the reason, both strings: {error}"
        ) from error
    # Threads of a worker submit it, even if it is a task of an asyncio queue.
    task: Task[[str, str], Any] = Task(
        listener.queue.sync(),
        definition,
        listener._options,  # noqa: SLF001 - the same file
    )

    def submit_listener(context: ExecutionContext, reason: str) -> None:
        task.submit(context.id, reason)

    return {**options, "on_give_up": submit_listener}


def args_and_kwargs(arguments: Arguments) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments of one task by position and by name; one is empty."""
    if isinstance(arguments, Mapping):
        return (), arguments
    # A string is a sequence too, of letters.
    if isinstance(arguments, str | bytes) or not isinstance(arguments, Sequence):
        raise ConfigurationError(
            "the arguments of a task must be a tuple by position or a dict by name, not"
            f" {arguments!r}: one argument is written (x,)"
        )
    return arguments, _NO_NAMES


def check_arguments(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse, before a commit, what `submit` would refuse after it."""
    if isinstance(task, AsyncTask):
        raise ConfigurationError(
            f"task must be a task of a TaskQueue, not {task!r}: nothing can be awaited"
            " after a commit"
        )
    if not isinstance(task, Task):
        raise ConfigurationError(
            f"give a task and its arguments, not {task!r}: submit a step, chain or"
            " group after the commit, or from a task that is submitted on commit"
        )
    definition_of(task).signature.encode(args, kwargs)


def definition_of(task: _AnyTask[Any, Any]) -> TaskDefinition:
    """Return the definition of a task, for code of this package."""
    return task._definition  # noqa: SLF001 - hidden from users, not from us


def options_of(task: Task[Any, Any] | AsyncTask[Any, Any]) -> SubmitOptions:
    """Return the options of a task, for code of this package."""
    return task._options  # noqa: SLF001 - hidden from users, not from us


def _show_parameters(task: _AnyTask[Any, Any]) -> None:
    """Let `help()` and editors show the parameters of this task in `submit`.

    Not for tasks that `options()` returns: it would cost time at each call.
    """
    definition = task._definition  # noqa: SLF001 - the same file
    own = inspect.signature(definition.function).parameters
    for name in ("submit", "submit_in", "submit_at"):
        method: Any = getattr(type(task), name)
        shown = inspect.signature(method)
        parameters = {
            name: one
            for name, one in shown.parameters.items()
            if one.kind is one.POSITIONAL_OR_KEYWORD
        }
        # A parameter with the same name as one of ours cannot be shown.
        if parameters.keys().isdisjoint(own):
            parameters.update(own)
            for filled_in in (
                definition.signature.context_parameter or "",
                *definition.signature.resources,
            ):
                parameters.pop(filled_in, None)
            # Not a function around the method: that would slow each call down.
            copy: Any = update_wrapper(partial(method), method)
            copy.__signature__ = shown.replace(parameters=list(parameters.values()))
            vars(task)[name] = MethodType(copy, task)
