"""A function that is a task: call it as ever, or submit it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import update_wrapper
from types import FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NoReturn,
    ParamSpec,
    TypeVar,
    cast,
)

from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.client.operations import QueueParts, parts_of
from workstealing.errors import ConfigurationError
from workstealing.tasks.definition import TaskDefinition, refuse_options
from workstealing.tasks.submission import (
    NOBODY,
    ClientContext,
    Submission,
    SubmitOptions,
)

if TYPE_CHECKING:
    from workstealing.client.task_queue import AsyncTaskQueue, TaskQueue
    from workstealing.drivers.async_driver import AsyncDriver
    from workstealing.drivers.sync_driver import Driver
    from workstealing.queue.steps import Flow

__all__ = ("AsyncTask", "Task", "definition_of")

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Callable[..., Any])
Self = TypeVar("Self", bound="_AnyTask[Any, Any]")

Arguments = Sequence[Any] | Mapping[str, Any]
"""The arguments of one task, by position or by name."""

_PLAIN = SubmitOptions()
_NO_NAMES: Mapping[str, Any] = {}
_OPTIONS = ("id", "priority", "delay", "at", "context", "log")


class _Shown:
    """A method that shows the parameters of a task's function, not `*args`.

    What it binds stays with the task, so that only the first call passes here. A task
    with options is seldom called twice, and is spared the work.
    """

    def __init__(self, method: Any) -> None:
        self._method = method

    def __get__(self, task: Any, owner: type) -> Any:
        if task is None:
            return self._method
        name = self._method.__name__
        is_overridden = vars(type(task)).get(name) is not self
        options = task._options  # noqa: SLF001 - a part of the task itself
        if options is not _PLAIN or is_overridden:
            return MethodType(self._method, task)
        bound = MethodType(_showing(self._method, definition_of(task)), task)
        vars(task)[name] = bound
        return bound


def _shown(method: M) -> M:
    return cast("M", _Shown(method))


class _AnyTask(Generic[P, R]):
    """What both kinds of tasks hold."""

    def __init__(
        self, queue: Any, definition: TaskDefinition, options: SubmitOptions = _PLAIN
    ) -> None:
        self.queue = queue
        self._parts: QueueParts[Any] = parts_of(queue)
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
        """The version of the task: what its payload means."""
        return self._definition.version

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function itself, here and now."""
        return self._definition.function(*args, **kwargs)

    def options(
        self: Self,
        *,
        id: str | None = None,  # noqa: A002 - the word users know
        priority: int | None = None,
        delay: float | timedelta | None = None,
        at: datetime | None = None,
        context: ClientContext = NOBODY,
        log: bool = False,
        **unknown: NoReturn,
    ) -> Self:
        """Return the same task, to be submitted otherwise.

        Args:
            id: the dedupe key: while a task of this id is kept, it is not submitted
                again, and `handle.is_new` is False.
            priority: 0 is urgent, 2 is whenever.
            delay: seconds until it is due.
            at: or else when it is due, with a time zone.
            context: on whose behalf it is called, and how.
            log: keep what it logs and prints, for `handle.logs()`.
            unknown: refused by name; no type checker lets it pass either.
        """
        if unknown:
            refuse_options(".options()", unknown, _OPTIONS)
        options = SubmitOptions(
            id=id, priority=priority, delay=delay, at=at, context=context, log=log
        )
        return type(self)(self.queue, self._definition, options)

    def _one(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], options: SubmitOptions
    ) -> Flow[Submission]:
        self._parts.operations.permit(self._definition, options.context)
        payload = self._definition.signature.encode(args, kwargs)
        ids = None if options.id is None else [options.id]
        return self._parts.operations.submit(self._definition, [payload], options, ids)

    def _many(
        self, tasks: Iterable[Arguments], ids: Sequence[str] | None
    ) -> Flow[Submission]:
        if self._options.id is not None:
            raise ConfigurationError(
                "options(id=…) names one task: submit_many() takes ids=, one per task"
            )
        self._parts.operations.permit(self._definition, self._options.context)
        encode = self._definition.signature.encode
        payloads = [
            encode(arguments, _NO_NAMES)
            if type(arguments) is tuple or not isinstance(arguments, Mapping)
            else encode((), arguments)
            for arguments in tasks
        ]
        return self._parts.operations.submit(
            self._definition, payloads, self._options, ids
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._definition.ability}>"


class Task(_AnyTask[P, R]):
    """A task of a `TaskQueue`."""

    queue: TaskQueue
    _parts: QueueParts[Driver]

    @_shown
    def submit(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Put the task into the queue."""
        return self._submitted(self._one(args, kwargs, self._options))

    @_shown
    def submit_in(
        self, delay: float | timedelta, *args: P.args, **kwargs: P.kwargs
    ) -> TaskHandle[R]:
        """Put the task into the queue, due in so many seconds."""
        options = replace(self._options, delay=delay, at=None)
        return self._submitted(self._one(args, kwargs, options))

    @_shown
    def submit_at(
        self, at: datetime, *args: P.args, **kwargs: P.kwargs
    ) -> TaskHandle[R]:
        """Put the task into the queue, due at a time."""
        options = replace(self._options, at=at, delay=None)
        return self._submitted(self._one(args, kwargs, options))

    def submit_many(
        self, tasks: Iterable[Arguments], ids: Sequence[str] | None = None
    ) -> list[TaskHandle[R]]:
        """Put many tasks into the queue, a round trip per thousand.

        Args:
            tasks: the arguments of each, as a tuple by position or a dict by name.
            ids: their dedupe keys, if they have any.
        """
        result_type = self._result_type
        done = self._parts.driver.run(self._many(tasks, ids))
        return [
            TaskHandle(self._parts, task_id, result_type, place not in done.known)
            for place, task_id in enumerate(done.ids)
        ]

    def _submitted(self, flow: Flow[Submission]) -> TaskHandle[R]:
        done = self._parts.driver.run(flow)
        return TaskHandle(self._parts, done.ids[0], self._result_type, not done.known)


class AsyncTask(_AnyTask[P, R]):
    """A task of an `AsyncTaskQueue`."""

    queue: AsyncTaskQueue
    _parts: QueueParts[AsyncDriver]

    @_shown
    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> AsyncTaskHandle[R]:
        """Put the task into the queue."""
        return await self._submitted(self._one(args, kwargs, self._options))

    @_shown
    async def submit_in(
        self, delay: float | timedelta, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncTaskHandle[R]:
        """Put the task into the queue, due in so many seconds."""
        options = replace(self._options, delay=delay, at=None)
        return await self._submitted(self._one(args, kwargs, options))

    @_shown
    async def submit_at(
        self, at: datetime, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncTaskHandle[R]:
        """Put the task into the queue, due at a time."""
        options = replace(self._options, at=at, delay=None)
        return await self._submitted(self._one(args, kwargs, options))

    async def submit_many(
        self, tasks: Iterable[Arguments], ids: Sequence[str] | None = None
    ) -> list[AsyncTaskHandle[R]]:
        """Put many tasks into the queue, a round trip per thousand.

        Args:
            tasks: the arguments of each, as a tuple by position or a dict by name.
            ids: their dedupe keys, if they have any.
        """
        result_type = self._result_type
        done = await self._parts.driver.run(self._many(tasks, ids))
        return [
            AsyncTaskHandle(self._parts, task_id, result_type, place not in done.known)
            for place, task_id in enumerate(done.ids)
        ]

    async def _submitted(self, flow: Flow[Submission]) -> AsyncTaskHandle[R]:
        done, result_type = await self._parts.driver.run(flow), self._result_type
        return AsyncTaskHandle(self._parts, done.ids[0], result_type, not done.known)


def definition_of(task: Task[Any, Any] | AsyncTask[Any, Any]) -> TaskDefinition:
    """Return the definition of a task, for code of this package."""
    return task._definition  # noqa: SLF001 - hidden from users, not from us


def _showing(method: Any, definition: TaskDefinition) -> Any:
    """Return a copy of a method that shows what this very task takes."""
    shown, own = inspect.signature(method), inspect.signature(definition.function)
    parameters = {
        name: one
        for name, one in shown.parameters.items()
        if one.kind is one.POSITIONAL_OR_KEYWORD
    }
    for name, one in own.parameters.items():
        if name in parameters:
            return method
        if name != definition.signature.context_parameter:
            parameters[name] = one
    copy: Any = FunctionType(method.__code__, method.__globals__, method.__name__)
    update_wrapper(copy, method)
    copy.__signature__ = shown.replace(parameters=list(parameters.values()))
    return copy
