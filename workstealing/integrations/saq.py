"""A SAQ worker enlists after each job, and musters while it has none.

After a job means after it was finished in the queue. While idle means that no job is
being processed; then a task that the worker's startup begins does the slices.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

from workstealing.errors import ConfigurationError
from workstealing.recruiting.aio import AsyncRecruiter
from workstealing.recruiting.pacing import Every
from workstealing.recruiting.patrol_aio import AsyncPatrol

__all__ = ("enlists",)

Hook = Callable[[Any], Awaitable[None]]

_PATROL = "workstealing_patrol"


def enlists(
    recruiter: AsyncRecruiter, *, idle_every: Every | None = 5.0
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Add to the settings of a worker, so that it enlists; returns the same dictionary.

    Hooks that it has already are called first. An idle worker does a slice every
    *idle_every* seconds; None leaves it alone.
    """
    if not isinstance(recruiter, AsyncRecruiter):
        raise ConfigurationError(
            f"a SAQ worker enlists with an AsyncRecruiter, not with {recruiter!r}"
        )

    async def enlist(_: Any) -> None:
        await recruiter.enlist()

    async def begin(context: Any) -> None:
        worker = context["worker"]

        async def muster_if_idle() -> None:
            if not worker.job_task_contexts:
                await recruiter.muster()

        if idle_every is not None:
            context[_PATROL] = AsyncPatrol(muster_if_idle, idle_every).start()

    async def end(context: Any) -> None:
        patrol = context.pop(_PATROL, None)
        if isinstance(patrol, AsyncPatrol):
            await patrol.stop()

    def add(settings: dict[str, Any]) -> dict[str, Any]:
        for name, hook in (
            ("after_process", enlist),
            ("startup", begin),
            ("shutdown", end),
        ):
            settings[name] = _after(settings.get(name), hook)
        return settings

    return add


def _after(theirs: Any, ours: Hook) -> Any:
    """Return hooks as SAQ takes them: one, or in later versions several, also plain."""
    if theirs is None:
        return ours
    if not iscoroutinefunction(theirs):
        return [*([theirs] if callable(theirs) else theirs), ours]

    async def both(context: Any) -> None:
        await theirs(context)
        await ours(context)

    return both
