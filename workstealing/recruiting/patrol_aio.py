"""The patrol for asyncio: a slice every few seconds, by a task."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType

from workstealing.recruiting.pacing import Every, interval

__all__ = ("AsyncPatrol",)

logger = logging.getLogger(__name__)


class AsyncPatrol:
    """A task that musters every few seconds."""

    def __init__(self, muster: Callable[[], Awaitable[object]], every: Every) -> None:
        self._muster = muster
        self._every = interval(every)
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the task is at work."""
        return self._task is not None and not self._task.done()

    def start(self) -> AsyncPatrol:
        """Begin, unless it has begun; needs a running event loop."""
        if not self.is_running:
            self._task = asyncio.get_running_loop().create_task(self._walk())
        return self

    async def stop(self) -> None:
        """End at once, cancelling the slice in flight."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def __aenter__(self) -> AsyncPatrol:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _walk(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._muster()
            except Exception:
                logger.exception("a patrol failed; it goes on")
