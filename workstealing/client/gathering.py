"""Waits for the results of many tasks at once, with few round trips.

It waits for the message that the last task has ended, and then reads the outcomes of
all others at once: tasks that were submitted together mostly end together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar, overload

from workstealing._checks import checked_timeout
from workstealing.client.handle import (
    AsyncTaskHandle,
    TaskHandle,
    internals_of_handle,
    reader_of,
)
from workstealing.client.queue_internals import QueueInternals
from workstealing.errors import ConfigurationError
from workstealing.queue.steps import Flow

__all__ = ("async_gather_results", "gather_results")

R = TypeVar("R")


@overload
def gather_results(
    handles: Iterable[TaskHandle[R]],
    timeout: float | None = None,
    *,
    return_exceptions: Literal[False] = False,
) -> list[R]: ...
@overload
def gather_results(
    handles: Iterable[TaskHandle[R]],
    timeout: float | None = None,
    *,
    return_exceptions: bool,
) -> list[R | BaseException]: ...
def gather_results(
    handles: Iterable[TaskHandle[Any]],
    timeout: float | None = None,
    *,
    return_exceptions: bool = False,
) -> list[Any]:
    """Wait for the results of many tasks of one queue, in the order of their handles.

    Args:
        handles: what `submit` and `submit_many` returned.
        timeout: seconds for all of them together.
        return_exceptions: return errors in the place of results, a `ResultTimeout` for
            a task that did not end in time. Otherwise the first error that is found is
            raised.
    """
    tasks = tuple(handles)
    if not tasks:
        return []
    internals = _one_queue(tasks, TaskHandle, "await async_gather_results(handles)")
    flow = _gathered(internals, tasks, timeout, return_exceptions)
    results: list[Any] = internals.driver.run(flow)
    return results


@overload
async def async_gather_results(
    handles: Iterable[AsyncTaskHandle[R]],
    timeout: float | None = None,
    *,
    return_exceptions: Literal[False] = False,
) -> list[R]: ...
@overload
async def async_gather_results(
    handles: Iterable[AsyncTaskHandle[R]],
    timeout: float | None = None,
    *,
    return_exceptions: bool,
) -> list[R | BaseException]: ...
async def async_gather_results(
    handles: Iterable[AsyncTaskHandle[Any]],
    timeout: float | None = None,
    *,
    return_exceptions: bool = False,
) -> list[Any]:
    """Wait for the results of many tasks; the asyncio twin of `gather_results`."""
    tasks = tuple(handles)
    if not tasks:
        return []
    internals = _one_queue(tasks, AsyncTaskHandle, "gather_results(handles)")
    flow = _gathered(internals, tasks, timeout, return_exceptions)
    results: list[Any] = await internals.driver.run(flow)
    return results


def _one_queue(handles: Sequence[Any], kind: type[Any], instead: str) -> Any:
    """Return the internals of the queue that all handles are of."""
    for one in handles:
        if not isinstance(one, TaskHandle | AsyncTaskHandle):
            raise ConfigurationError(
                f"expected the handle of a task, not {one!r}; a group has results() of"
                " its own"
            )
        if not isinstance(one, kind):
            raise ConfigurationError(f"{one!r} is of another kind of queue: {instead}")
    found = [internals_of_handle(one) for one in handles]
    queues = {id(one): one for one in found}
    if len(queues) > 1:
        raise ConfigurationError(
            "the handles are of several queues: gather the results of each queue"
        )
    (internals,) = queues.values()
    if not isinstance(internals, QueueInternals):
        raise ConfigurationError(
            "tasks that run in this process cannot be gathered: call result() of each"
        )
    if not internals.settings.retention_ms:
        raise ConfigurationError(
            "this queue has retention=0, so it keeps no results to gather: call"
            " result() of each handle, or give the queue a retention"
        )
    return internals


def _gathered(
    internals: Any,
    handles: Sequence[Any],
    timeout: float | None,
    return_exceptions: bool,
) -> Flow[list[Any]]:
    seconds = checked_timeout(timeout)
    ids = [one.id for one in handles]
    readers = {one.id: reader_of(one) for one in handles}
    found: dict[str, Any] = yield from internals.outcomes.results(
        ids, seconds, readers, is_tolerant=return_exceptions
    )
    return [found[name] for name in ids]
