"""Runs attempts in the calling thread; coroutines too, in an event loop of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from workstealing.errors import StopWork
from workstealing.queue.consuming import Report, Taken
from workstealing.tasks.context import enter, leave
from workstealing.workers.executing import Attempt, Executor, Unable

__all__ = ("Runner",)


class Runner:
    """Runs one attempt after the other."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._loop: asyncio.AbstractEventLoop | None = None
        self.attempt: Attempt | None = None
        """What runs now, if anything; for those who watch."""

    def execute(self, task: Taken) -> Report | Unable | None:
        """Run a task; return its report, or None if it is another's by now."""
        attempt = self._executor.prepare(task)
        return self.run(attempt) if isinstance(attempt, Attempt) else attempt

    def run(self, attempt: Attempt) -> Report | None:
        """Run an attempt; return its report, or None if it is another's by now."""
        executor, definition = self._executor, attempt.definition
        self.attempt = attempt
        token = enter(attempt.context)
        try:
            value = definition.function(**attempt.arguments)
            if definition.is_coroutine:
                value = self._awaited(value, attempt.timeout)
        except StopWork as request:
            return executor.stopped(attempt, str(request))
        except KeyboardInterrupt:
            # Meant for the worker, wherever it happened to be.
            raise
        except BaseException as error:  # noqa: BLE001 - it is the task's own
            return executor.raised(attempt, error)
        finally:
            leave(token)
            self.attempt = None
        return executor.returned(attempt, value)

    def close(self) -> None:
        """End the event loop in which coroutines ran."""
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._loop = None

    def _awaited(self, coroutine: Any, timeout: float | None) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        if timeout is not None:
            coroutine = asyncio.wait_for(coroutine, timeout)
        return self._loop.run_until_complete(coroutine)
