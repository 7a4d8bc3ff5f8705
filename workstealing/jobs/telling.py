"""Calls the functions that users give to jobs, and blames them for what they raise.

A sink whose database is away raises a connection error of its own. It must not look
like one of the Redis server that all the other jobs of that server depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from workstealing.errors import Conflict, HookFailed
from workstealing.queue.call import Consult, Flow

__all__ = ("blaming", "consult", "tell_each")

Fact = tuple[Any, ...]


def consult(
    hook: Callable[..., Any], *arguments: Any, read: Callable[[Any], Any] | None = None
) -> Flow[Any]:
    """Return the hook's answer; *read* is for one that may break off when read."""
    with blaming(hook):
        answer = yield Consult(hook, arguments)
        return answer if read is None else read(answer)


def tell_each(
    hook: Callable[..., Any], facts: Iterable[Fact]
) -> Flow[tuple[list[Fact], Exception | None]]:
    """Return what was told and the first error; a failure does not stop the rest."""
    told: list[Fact] = []
    first: Exception | None = None
    for fact in facts:
        try:
            yield from consult(hook, *fact)
        except Exception as error:  # noqa: BLE001 - raised later
            first = first or error
        else:
            told.append(fact)
    return told, first


@contextmanager
def blaming(hook: Callable[..., Any]) -> Iterator[None]:
    """Raise what a hook raises as `HookFailed`; only `Conflict` speaks for itself."""
    try:
        yield
    except Conflict:
        raise
    except Exception as error:
        name = getattr(hook, "__qualname__", type(hook).__qualname__)
        raise HookFailed(f"{name} raised {type(error).__name__}: {error}") from error
