"""Hooks around tasks: what a queue's middleware is told, and what it may change.

A middleware is a class with any of six methods, each `def` or `async def`; `queue.use`
installs it. `submitted` and `before` are called in the order of installation, the
others in reverse, so that middlewares enclose each other. Only `before` can change what
happens next, by raising; only `after` can change the result. What any other hook raises
is logged and changes nothing. `HookedRunner` and `QueueSubmissions` call the hooks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Any

from workstealing._logs import BackgroundLogger
from workstealing.errors import ConfigurationError
from workstealing.tasks.context import ExecutionContext

__all__ = ("Middleware", "MiddlewareStack", "NewResult", "TaskCall")

logger = BackgroundLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewResult:
    """Returned by `Middleware.after`: the task has this result instead."""

    value: Any


class TaskCall:
    """A task as hooks see it: its name, version, id and arguments; read-only."""

    __slots__ = ("_arguments", "_read", "id", "name", "version")

    def __init__(
        self,
        name: str,
        version: int,
        id: str,  # noqa: A002 - the word users know
        read: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.name = name
        self.version = version
        self.id = id
        self._read = read
        self._arguments: Mapping[str, Any] | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What it is called with, by parameter, defaults filled in."""
        if self._arguments is None:
            self._arguments = MappingProxyType(dict(self._read()))
        return self._arguments

    def __repr__(self) -> str:
        return f"<TaskCall {self.name}@{self.version} {self.id}>"


class Middleware:
    """Hooks that are called when something happens to a task of a queue.

    The methods here do nothing; override those that you need, as `def` or `async def`.
    The context is that of the attempt: its number, the worker, the principal. After
    each `before` that returned comes `after` or `failed`, unless the worker dies.
    """

    def submitted(self, task: TaskCall) -> Awaitable[None] | None:
        """Called in the submitting process when a task was put into the queue."""

    def before(
        self, task: TaskCall, context: ExecutionContext
    ) -> Awaitable[None] | None:
        """Called before an attempt runs.

        What it raises counts as the task's own error: with `GiveUp` the task does not
        run and becomes a dead letter, with `Retry` or `Snooze` it runs later, and with
        any other error it is tried again as its retry policy says.
        """

    def after(
        self, task: TaskCall, context: ExecutionContext, result: Any
    ) -> Awaitable[NewResult | None] | NewResult | None:
        """Called before a result is stored; return a `NewResult` to replace it."""

    def failed(
        self, task: TaskCall, context: ExecutionContext, error: BaseException
    ) -> Awaitable[None] | None:
        """Called when an attempt ended without a result.

        The error is what the task raised, or why it was stopped: `TimeoutError` at a
        time limit, `StopWork` at a cancellation, a hot stop or a lost lease.
        """

    def retried(
        self,
        task: TaskCall,
        context: ExecutionContext,
        error: BaseException,
        delay: float,
    ) -> Awaitable[None] | None:
        """Called when a task will be tried again, in *delay* seconds.

        The error is why the attempt failed: `TimeoutError` at a time limit.
        """

    def gave_up(
        self,
        task: TaskCall,
        context: ExecutionContext,
        error: BaseException,
        reason: str,
    ) -> Awaitable[None] | None:
        """Called when a task has become a dead letter, with the reason.

        The `on_give_up` of the task is called just before.
        """


class MiddlewareStack(Iterable[Middleware]):
    """The middlewares of one queue, in order; shared with the queue's `sync()`."""

    def __init__(self, middlewares: Iterable[Middleware] = ()) -> None:
        self.all: tuple[Middleware, ...] = ()
        self._logged: set[tuple[Middleware, str, type[BaseException]]] = set()
        self._lock = Lock()
        for middleware in middlewares:
            self.add(middleware)

    @classmethod
    def of(cls, middlewares: Iterable[Middleware]) -> MiddlewareStack:
        """Return the very stack that another queue has, or a new one."""
        if isinstance(middlewares, MiddlewareStack):
            return middlewares
        return cls(middlewares)

    def add(self, middleware: Middleware) -> None:
        """Add one, inside of those that are there."""
        if not isinstance(middleware, Middleware):
            raise ConfigurationError(
                f"a middleware must be an instance of a subclass of Middleware, not"
                f" {middleware!r}"
            )
        with self._lock:
            self.all = (*self.all, middleware)

    def log_failure(self, one: Middleware, hook: str, error: BaseException) -> None:
        """Log an error of a hook that changes nothing, once per kind."""
        kind = (one, hook, type(error))
        with self._lock:
            if kind in self._logged:
                return
            self._logged.add(kind)
        logger.error(
            "middleware %s raised in %s(), which changes nothing for the task;"
            " logged once per kind of error",
            type(one).__qualname__,
            hook,
            error=error,
        )

    def __iter__(self) -> Iterator[Middleware]:
        return iter(self.all)
