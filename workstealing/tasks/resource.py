"""Resources: what a worker opens once and hands to the tasks that ask for it, by type.

A resource is a generator function that opens something, yields it, and closes it; the
type that it is annotated to yield is what tasks ask for:

    @queue.task
    def report(day: str, db: Annotated[Database, Resource] = INJECTED) -> int: ...

Such a parameter is no part of the payload. Workers open and close resources; see
`workers.lifespan`.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from workstealing.errors import ConfigurationError

__all__ = (
    "INJECTED",
    "Resource",
    "ResourceDefinition",
    "define_resource",
    "requested_resource",
)


class Resource:
    """Marks a parameter that workers fill in: `db: Annotated[Database, Resource]`.

    Give the parameter the default `INJECTED`: then neither a type checker nor an editor
    asks a caller of `submit()` for it.
    """


class _Injected:
    """Stands for a resource until a worker fills it in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ConfigurationError(
            f"a resource was used (.{name}) that no worker has filled in: if you call"
            " the function yourself, pass the resource as an argument"
        )

    def __repr__(self) -> str:
        return "INJECTED"


INJECTED: Any = _Injected()
"""The default of a parameter that is a resource: callers do not give it."""


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """A function that opens, yields and closes a resource."""

    name: str
    type: Any
    """What tasks ask for; None if it yields nothing."""
    function: Callable[[], Any]
    is_async: bool


def define_resource(function: Any) -> ResourceDefinition:
    """Read what a generator function yields; refuse any other function."""
    # What `contextlib` has decorated is taken as it was before.
    function = inspect.unwrap(function)
    name = str(getattr(function, "__qualname__", function)).rpartition("<locals>.")[2]
    is_async = inspect.isasyncgenfunction(function)
    if not is_async and not inspect.isgeneratorfunction(function):
        raise ConfigurationError(
            f"resource '{name}' must be a generator function, `def` or `async def`,"
            " that yields once: the code before `yield` opens it, the code after it"
            " closes it"
        )
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is parameter.empty:
            raise ConfigurationError(
                f"resource '{name}' is called without arguments, and its parameter"
                f" '{parameter.name}' has no default"
            )
    return ResourceDefinition(name, _yielded(function, name), function, is_async)


def requested_resource(hint: Any) -> Any:
    """Return the type of the resource that a parameter asks for, or None."""
    if get_origin(hint) is Annotated:
        kind, *marks = get_args(hint)
        if any(mark is Resource or isinstance(mark, Resource) for mark in marks):
            return kind
        return None
    # Python 3.10 makes `X | None` of a parameter whose default is None.
    inner = [part for part in get_args(hint) if get_origin(part) is Annotated]
    return requested_resource(inner[0]) if len(inner) == 1 else None


_YIELDING = (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Iterator,
)


def _yielded(function: Any, name: str) -> Any:
    try:
        hint = get_type_hints(function).get("return")
    except (NameError, TypeError) as error:
        raise ConfigurationError(
            f"what resource '{name}' yields cannot be read: {error}; types must be"
            " importable at run time, from the top of their module"
        ) from error
    if get_origin(hint) not in _YIELDING:
        raise ConfigurationError(
            f"resource '{name}' must be annotated with what it yields, such as"
            " `-> Iterator[Database]`: tasks ask for that type. If it yields nothing,"
            " it is `-> Iterator[None]`"
        )
    kind = get_args(hint)[0]
    return None if kind is type(None) else kind
