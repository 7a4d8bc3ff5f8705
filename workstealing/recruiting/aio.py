"""The recruiter for asyncio: the same roster and protections, awaited.

A coroutine job is cancelled at the end of its slice's time, so a hanging await cannot
hold its host. A plain function runs in a thread, which cannot be cancelled: the host
goes on at the deadline, and the job counts as busy until the thread is done.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import wraps
from threading import Event
from typing import Any, ClassVar, ParamSpec, TypeVar

from workstealing.errors import ConfigurationError
from workstealing.recruiting.face import RecruiterFace
from workstealing.recruiting.job import Duty
from workstealing.recruiting.pacing import Every
from workstealing.recruiting.patrol_aio import AsyncPatrol
from workstealing.recruiting.slicing import Slice, time_left
from workstealing.telemetry.events import Outcome

__all__ = ("AsyncRecruiter",)

P = ParamSpec("P")
T = TypeVar("T")


class AsyncRecruiter(RecruiterFace):
    """Recruits tasks with a spare moment; see `Office` for the arguments."""

    _takes_coroutines: ClassVar[bool] = True

    async def enlist(
        self, spare: float | None = None, rtt: float | None = None
    ) -> Duty:
        """Offer a moment: mostly dismissed at once, now and then recruited.

        Args:
            spare: how many seconds the caller can spare, if less than the deadline.
            rtt: seconds of a round trip to the store that the caller just saw; the
                store gate listens to a sample of these.
        """
        for dismissed in self._stride:
            return dismissed
        return await self._draw(spare, rtt)

    async def muster(self, name: str | None = None) -> Outcome | None:
        """Do a slice of one job, or of the one that has waited longest.

        For callers who have the time: no lottery, no budget. None without jobs.
        """
        await self._set_up()
        called = self._call_up(name)
        if isinstance(called, Slice):
            await self._work(called)
            return called.outcome
        return called

    def patrol(self, every: Every = 5.0) -> AsyncPatrol:
        """Return a task, to be started, that musters every few seconds.

        For hosts without traffic: nothing starves at night.
        """
        return AsyncPatrol(self.muster, every)

    def enlists(self, function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        """Enlist each time after the decorated coroutine function has returned."""
        if not inspect.iscoroutinefunction(function):
            raise ConfigurationError(
                f"{function!r} is not a coroutine function: use Recruiter.enlists"
            )

        @wraps(function)
        async def enlisting(*args: P.args, **kwargs: P.kwargs) -> T:
            result = await function(*args, **kwargs)
            await self.enlist()
            return result

        return enlisting

    @asynccontextmanager
    async def enlisting(self) -> AsyncIterator[None]:
        """Enlist after the block, unless it raises."""
        yield
        await self.enlist()

    async def hook(self, *_: object, **__: object) -> None:
        """Enlist, whatever a framework passes to its hooks."""
        await self.enlist()

    async def _draw(self, spare: float | None, rtt: float | None) -> Duty:
        try:
            if self._has_setups:
                await self._set_up()
            drawn = self._admit(spare, rtt)
            return Duty.DISMISSED if drawn is None else await self._work(drawn)
        except Exception as error:  # noqa: BLE001 - nothing reaches the host
            self._fault(error)
            return Duty.DISMISSED

    async def _work(self, drawn: Slice) -> Duty:
        with drawn:
            while drawn.goes_on(await self._round(drawn)):
                pass
        return drawn.duty

    async def _set_up(self) -> None:
        functions = self._begin_setups()
        if not functions:
            return
        try:
            for function in functions:
                with self._setting_up(function):
                    answer = function(self)
                    if inspect.isawaitable(answer):
                        await answer
        finally:
            self._end_setups()

    async def _round(self, drawn: Slice) -> Any:
        limit = None if drawn.deadline is None else time_left()
        if drawn.entry.is_coroutine:
            answer: Any = drawn.entry.recruited()
            return await asyncio.wait_for(answer, limit)
        # The thread says so itself: it may outlive this event loop.
        done = drawn.entry.thread_done = Event()
        work = copy_context().run

        def recruited() -> Any:
            try:
                return work(drawn.entry.recruited)
            finally:
                done.set()

        thread = asyncio.get_running_loop().run_in_executor(None, recruited)
        return await asyncio.wait_for(asyncio.shield(thread), limit)
