"""An arq worker enlists after each job, and musters now and then by itself.

After a job means after its result was recorded. arq has no hook for an idle worker, so
a task that its startup begins and its shutdown ends does a slice every few seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from workstealing.errors import ConfigurationError
from workstealing.recruiting.aio import AsyncRecruiter
from workstealing.recruiting.pacing import Every
from workstealing.recruiting.patrol_aio import AsyncPatrol

__all__ = ("enlists",)

Settings = TypeVar("Settings", bound="type | dict[str, Any]")
Hook = Callable[[dict[Any, Any]], Awaitable[object]]

_PATROL = "workstealing_patrol"


def enlists(
    recruiter: AsyncRecruiter, *, idle_every: Every | None = 5.0
) -> Callable[[Settings], Settings]:
    """Decorate a `WorkerSettings`, a class or a dictionary, so that its worker enlists.

    Hooks that it has already are called first. Each *idle_every* seconds a slice is
    done without a job; None leaves that out.
    """
    if not isinstance(recruiter, AsyncRecruiter):
        raise ConfigurationError(
            f"an arq worker enlists with an AsyncRecruiter, not with {recruiter!r}"
        )

    async def enlist(_: dict[Any, Any]) -> None:
        await recruiter.enlist()

    async def begin(context: dict[Any, Any]) -> None:
        if idle_every is not None:
            context[_PATROL] = recruiter.patrol(idle_every).start()

    async def end(context: dict[Any, Any]) -> None:
        patrol = context.pop(_PATROL, None)
        if isinstance(patrol, AsyncPatrol):
            await patrol.stop()

    def decorate(settings: Settings) -> Settings:
        _add(settings, "after_job_end", enlist)
        _add(settings, "on_startup", begin)
        _add(settings, "on_shutdown", end)
        return settings

    return decorate


def _add(settings: type | dict[str, Any], name: str, ours: Hook) -> None:
    # As arq reads it: what a class inherits does not count.
    present = settings if isinstance(settings, dict) else vars(settings)
    theirs: Hook | None = present.get(name)

    async def both(context: dict[Any, Any]) -> None:
        if theirs is not None:
            await theirs(context)
        await ours(context)

    hook = ours if theirs is None else both
    if isinstance(settings, dict):
        settings[name] = hook
    else:
        setattr(settings, name, hook)
