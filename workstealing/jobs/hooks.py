"""Calls the functions that users give to jobs, and attributes their errors to them.

A sink whose database is down raises a connection error of its own. It must not look
like an error of the Redis server that all other jobs of that server depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from workstealing.errors import Conflict, HookFailed
from workstealing.queue.steps import Flow, Invoke

__all__ = ("call_for_each", "call_hook", "hook_errors")

Arguments = tuple[Any, ...]


def call_hook(
    hook: Callable[..., Any], *arguments: Any, read: Callable[[Any], Any] | None = None
) -> Flow[Any]:
    """Call a hook; *read* converts its result, whose errors are the hook's too."""
    with hook_errors(hook):
        result = yield Invoke(hook, arguments)
        return result if read is None else read(result)


def call_for_each(
    hook: Callable[..., Any], calls: Iterable[Arguments]
) -> Flow[tuple[list[Arguments], Exception | None]]:
    """Call a hook for each; return the calls that succeeded, and the first error."""
    succeeded: list[Arguments] = []
    first: Exception | None = None
    for arguments in calls:
        try:
            yield from call_hook(hook, *arguments)
        except Exception as error:  # noqa: BLE001 - raised by the caller
            first = first or error
        else:
            succeeded.append(arguments)
    return succeeded, first


@contextmanager
def hook_errors(hook: Callable[..., Any]) -> Iterator[None]:
    """Raise what a hook raises as `HookFailed`, except for `Conflict`."""
    try:
        yield
    except Conflict:
        raise
    except Exception as error:
        name = getattr(hook, "__qualname__", type(hook).__qualname__)
        raise HookFailed(f"{name} raised {type(error).__name__}: {error}") from error
