"""The ticker for asyncio: a task that runs a slice every few seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType

from workstealing.recruiting.pace import Every, checked_interval

__all__ = ("AsyncTicker",)

logger = logging.getLogger(__name__)


class AsyncTicker:
    """A task that runs a slice every few seconds."""

    def __init__(self, run_now: Callable[[], Awaitable[object]], every: Every) -> None:
        self._run_now = run_now
        self._every = checked_interval(every)
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the task runs."""
        return self._task is not None and not self._task.done()

    def start(self) -> AsyncTicker:
        """Start the task, unless it runs; needs a running event loop."""
        if not self.is_running:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    async def stop(self) -> None:
        """End the task at once, and cancel the slice in flight."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def __aenter__(self) -> AsyncTicker:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._run_now()
            except Exception:
                logger.exception("a slice of side work failed; the ticker goes on")
