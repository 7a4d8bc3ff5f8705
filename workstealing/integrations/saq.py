"""A SAQ worker enlists after each job, and runs slices while it is idle.

After a job means after it was finished in the queue. Idle means that no job is being
processed; then an asyncio task that starts and ends with the worker runs the slices.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

from workstealing.integrations.conditions import checked_recruiter
from workstealing.recruiting.async_recruiter import AsyncRecruiter, AsyncTicker
from workstealing.recruiting.job import Every, checked_interval

__all__ = ("enlist_after_tasks",)

Hook = Callable[[Any], Awaitable[None]]

_TICKER = "workstealing_ticker"


def enlist_after_tasks(
    settings: dict[str, Any],
    recruiter: AsyncRecruiter,
    *,
    idle_every: Every | None = 5.0,
) -> dict[str, Any]:
    """Let a worker enlist after each job; returns the same settings.

    Hooks that the settings already have are called first. An idle worker runs a slice
    every *idle_every* seconds; None leaves it alone.
    """
    checked_recruiter(recruiter, AsyncRecruiter, "a SAQ worker")
    every = None if idle_every is None else checked_interval(idle_every, "idle_every=")

    async def enlist(_: Any) -> None:
        await recruiter.enlist()

    async def start(context: Any) -> None:
        worker = context["worker"]

        async def run_if_idle() -> None:
            if not worker.job_task_contexts:
                await recruiter.run_now()

        if every is not None:
            context[_TICKER] = AsyncTicker(run_if_idle, every).start()

    async def stop(context: Any) -> None:
        ticker = context.pop(_TICKER, None)
        if isinstance(ticker, AsyncTicker):
            await ticker.stop()

    for name, hook in (
        ("after_process", enlist),
        ("startup", start),
        ("shutdown", stop),
    ):
        settings[name] = _after(settings.get(name), hook)
    return settings


def _after(theirs: Any, ours: Hook) -> Any:
    """Return hooks as SAQ takes them: one coroutine function, or later a list."""
    if theirs is None:
        return ours
    if not iscoroutinefunction(theirs):
        return [*([theirs] if callable(theirs) else theirs), ours]

    async def both(context: Any) -> None:
        await theirs(context)
        await ours(context)

    return both
