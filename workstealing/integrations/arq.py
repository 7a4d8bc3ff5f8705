"""An arq worker enlists after each job, and also runs a slice every few seconds.

After a job means after its result was recorded. arq has no hook for an idle worker, so
an asyncio task that starts and ends with the worker runs the other slices.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from workstealing.integrations.conditions import checked_recruiter
from workstealing.recruiting.async_recruiter import AsyncRecruiter, AsyncTicker
from workstealing.recruiting.job import Every, checked_interval

__all__ = ("enlist_after_tasks",)

Settings = TypeVar("Settings", bound="type | dict[str, Any]")
Hook = Callable[[dict[Any, Any]], Awaitable[object]]

_TICKER = "workstealing_ticker"


def enlist_after_tasks(
    settings: Settings, recruiter: AsyncRecruiter, *, idle_every: Every | None = 5.0
) -> Settings:
    """Let a worker enlist after each job; returns the same settings.

    The settings are a `WorkerSettings` class or a dictionary. Hooks that they already
    have are called first. Every *idle_every* seconds a slice runs, idle or not; None
    leaves that out.
    """
    checked_recruiter(recruiter, AsyncRecruiter, "an arq worker")
    every = None if idle_every is None else checked_interval(idle_every, "idle_every=")

    async def enlist(_: dict[Any, Any]) -> None:
        await recruiter.enlist()

    async def start(context: dict[Any, Any]) -> None:
        if every is not None:
            context[_TICKER] = recruiter.ticker(every).start()

    async def stop(context: dict[Any, Any]) -> None:
        ticker = context.pop(_TICKER, None)
        if isinstance(ticker, AsyncTicker):
            await ticker.stop()

    _add(settings, "after_job_end", enlist)
    _add(settings, "on_startup", start)
    _add(settings, "on_shutdown", stop)
    return settings


def _add(settings: type | dict[str, Any], name: str, ours: Hook) -> None:
    # As arq reads it: inherited attributes of a class do not count.
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
