"""An event loop in a thread of its own, which no task can end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from threading import Thread
from typing import Any

from workstealing._logs import BackgroundLogger

__all__ = ("CLOSE_SECONDS", "LoopThread", "cancel_tasks")

logger = BackgroundLogger(__name__)

CLOSE_SECONDS = 5.0
_CANCEL_SECONDS = 2.0


class LoopThread:
    """Runs an event loop from its creation until it is closed.

    Args:
        worker: the name that logs and the thread have.
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._is_closing = False
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name=worker, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self.loop.close()
            raise

    def is_alive(self) -> bool:
        """Return whether it runs."""
        return self._thread.is_alive()

    def close(
        self, last: Coroutine[Any, Any, None], seconds: float = CLOSE_SECONDS
    ) -> None:
        """Run a coroutine, and end the loop; leave both alone if it takes too long."""
        self._is_closing = True
        try:
            asyncio.run_coroutine_threadsafe(last, self.loop).result(seconds)
        except FutureTimeout:
            logger.error(
                "the event loop of worker %s did not end within %g s, since a task"
                " blocks it; it is left running",
                self._worker,
                seconds,
            )
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _run(self) -> None:
        """Run the event loop, again if a task has stopped it."""
        while not self._is_closing and not self.loop.is_closed():
            try:
                self.loop.run_forever()
            except Exception as error:  # noqa: BLE001 - the loop itself is broken
                logger.error(
                    "the event loop of worker %s failed", self._worker, error=error
                )
                return
            except BaseException as error:  # noqa: BLE001 - of a task's callback
                logger.error(
                    "a callback tried to end the event loop of worker %s, which"
                    " continues",
                    self._worker,
                    error=error,
                )
            else:
                if not self._is_closing and not self.loop.is_closed():
                    logger.warning(
                        "a task stopped the event loop of worker %s, which continues",
                        self._worker,
                    )


async def cancel_tasks(*spared: asyncio.Task[Any] | None) -> None:
    """Cancel all other tasks of this event loop, and give them a moment to end."""
    rest = asyncio.all_tasks() - {asyncio.current_task(), *spared}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=_CANCEL_SECONDS)
