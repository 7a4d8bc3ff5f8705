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

from workstealing.client.giving import SubmitOptions
from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.errors import ConfigurationError
from workstealing.tasks.calling import NOBODY, ClientContext
from workstealing.tasks.task import TaskDefinition, refuse_options

if TYPE_CHECKING:
    from workstealing.client.queue import AsyncTaskQueue, TaskQueue
    from workstealing.queue.call import Flow

__all__ = ("AsyncTask", "Task")

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Callable[..., Any])
Self = TypeVar("Self", bound="_TaskFace[Any, Any]")

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
        options = task._options  # noqa: SLF001 - a part of the same faces
        if options is not _PLAIN or is_overridden:
            return MethodType(self._method, task)
        bound = MethodType(_showing(self._method, task.definition), task)
        vars(task)[name] = bound
        return bound


def _shown(method: M) -> M:
    return cast("M", _Shown(method))


class _TaskFace(Generic[P, R]):
    """What both faces hold."""

    def __init__(
        self, queue: Any, definition: TaskDefinition, options: SubmitOptions = _PLAIN
    ) -> None:
        self._queue = self.queue = queue
        self._options = options
        self.definition = definition
        self.__name__ = definition.function.__name__
        self.__doc__ = definition.function.__doc__
        self.__wrapped__ = definition.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function itself, here and now."""
        return self.definition.function(*args, **kwargs)

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
            id: the dedupe key; a task whose id is known is not submitted again.
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
        return type(self)(self._queue, self.definition, options)

    def _one(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], options: SubmitOptions
    ) -> Flow[list[str]]:
        self._queue.giving.permit(self.definition, options.context)
        payload = self.definition.signature.encode(args, kwargs)
        ids = None if options.id is None else [options.id]
        flow: Flow[list[str]] = self._queue.giving.submit(
            self.definition, [payload], options, ids
        )
        return flow

    def _many(
        self, tasks: Iterable[Arguments], ids: Sequence[str] | None
    ) -> Flow[list[str]]:
        if self._options.id is not None:
            raise ConfigurationError("one id does not do for many tasks: give ids=")
        self._queue.giving.permit(self.definition, self._options.context)
        encode = self.definition.signature.encode
        payloads = [
            encode(arguments, _NO_NAMES)
            if type(arguments) is tuple or not isinstance(arguments, Mapping)
            else encode((), arguments)
            for arguments in tasks
        ]
        flow: Flow[list[str]] = self._queue.giving.submit(
            self.definition, payloads, self._options, ids
        )
        return flow

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.definition.ability}>"


class Task(_TaskFace[P, R]):
    """A task of a `TaskQueue`."""

    _queue: TaskQueue

    @_shown
    def submit(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Put the task into the queue."""
        return self._handed(self._one(args, kwargs, self._options))

    @_shown
    def submit_in(
        self, delay: float | timedelta, *args: P.args, **kwargs: P.kwargs
    ) -> TaskHandle[R]:
        """Put the task into the queue, due in so many seconds."""
        options = replace(self._options, delay=delay, at=None)
        return self._handed(self._one(args, kwargs, options))

    @_shown
    def submit_at(
        self, at: datetime, *args: P.args, **kwargs: P.kwargs
    ) -> TaskHandle[R]:
        """Put the task into the queue, due at a time."""
        options = replace(self._options, at=at, delay=None)
        return self._handed(self._one(args, kwargs, options))

    def submit_many(
        self, tasks: Iterable[Arguments], ids: Sequence[str] | None = None
    ) -> list[TaskHandle[R]]:
        """Put many tasks into the queue, a round trip per thousand.

        Args:
            tasks: the arguments of each, as a tuple by position or a dict by name.
            ids: their dedupe keys, if they have any.
        """
        result_type = self.definition.signature.result_type
        names = self._queue.driver.run(self._many(tasks, ids))
        return [TaskHandle(self._queue, name, result_type) for name in names]

    def _handed(self, flow: Flow[list[str]]) -> TaskHandle[R]:
        (name,) = self._queue.driver.run(flow)
        return TaskHandle(self._queue, name, self.definition.signature.result_type)


class AsyncTask(_TaskFace[P, R]):
    """A task of an `AsyncTaskQueue`."""

    _queue: AsyncTaskQueue

    @_shown
    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> AsyncTaskHandle[R]:
        """Put the task into the queue."""
        return await self._handed(self._one(args, kwargs, self._options))

    @_shown
    async def submit_in(
        self, delay: float | timedelta, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncTaskHandle[R]:
        """Put the task into the queue, due in so many seconds."""
        options = replace(self._options, delay=delay, at=None)
        return await self._handed(self._one(args, kwargs, options))

    @_shown
    async def submit_at(
        self, at: datetime, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncTaskHandle[R]:
        """Put the task into the queue, due at a time."""
        options = replace(self._options, at=at, delay=None)
        return await self._handed(self._one(args, kwargs, options))

    async def submit_many(
        self, tasks: Iterable[Arguments], ids: Sequence[str] | None = None
    ) -> list[AsyncTaskHandle[R]]:
        """Put many tasks into the queue, a round trip per thousand.

        Args:
            tasks: the arguments of each, as a tuple by position or a dict by name.
            ids: their dedupe keys, if they have any.
        """
        result_type = self.definition.signature.result_type
        names = await self._queue.driver.run(self._many(tasks, ids))
        return [AsyncTaskHandle(self._queue, name, result_type) for name in names]

    async def _handed(self, flow: Flow[list[str]]) -> AsyncTaskHandle[R]:
        (name,) = await self._queue.driver.run(flow)
        return AsyncTaskHandle(self._queue, name, self.definition.signature.result_type)


def _showing(method: Any, definition: TaskDefinition) -> Any:
    """Return a copy of a method that shows what this very task takes."""
    face, own = inspect.signature(method), inspect.signature(definition.function)
    parameters = {
        name: one
        for name, one in face.parameters.items()
        if one.kind is one.POSITIONAL_OR_KEYWORD
    }
    for name, one in own.parameters.items():
        if name in parameters:
            return method
        if name != definition.signature.context_parameter:
            parameters[name] = one
    copy: Any = FunctionType(method.__code__, method.__globals__, method.__name__)
    update_wrapper(copy, method)
    copy.__signature__ = face.replace(parameters=list(parameters.values()))
    return copy
