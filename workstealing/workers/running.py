"""Runs attempts in the calling thread; coroutines too, in an event loop of its own."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any

from workstealing.errors import RedisError, StopWork
from workstealing.tasks.attempt import Attempt, Report, Taken, Unable
from workstealing.tasks.context import enter, leave
from workstealing.tasks.executing import Executor
from workstealing.workers.scribe import Scribe

__all__ = ("Runner", "end_if_forked")

logger = logging.getLogger(__name__)


class Runner:
    """Runs one attempt after the other.

    Args:
        executor: what the tasks are.
        begin: is asked before a task is run that must not be run twice.
        scribe: writes down what tasks tell.
        is_interruptible: whether a `KeyboardInterrupt` may be meant for the worker.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        begin: Callable[[Attempt], bool] | None = None,
        scribe: Scribe | None = None,
        is_interruptible: bool = True,
    ) -> None:
        self._executor = executor
        self._begin = begin
        self._scribe = scribe
        self._is_interruptible = is_interruptible
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()
        self.attempt: Attempt | None = None
        """What runs now, if anything; for those who watch."""
        self.announce: Callable[[Attempt], None] | None = None
        """Is told of an attempt with a time limit before it runs."""

    def execute(self, task: Taken) -> Report | Unable | None:
        """Run a task; return its report, or None if it is another's by now."""
        attempt = self._executor.prepare(task)
        return self.run(attempt) if isinstance(attempt, Attempt) else attempt

    def run(self, attempt: Attempt) -> Report | None:
        """Run an attempt; return its report, or None if it is another's by now."""
        if attempt.runs_once and self._begin is not None:
            try:
                if not self._begin(attempt):
                    return None
            except RedisError as error:
                # Whether Redis heard of it or not, it was not begun.
                task = attempt.task
                logger.warning("task %s must wait for Redis: %s", task.id, error)
                return Report(task.id, task.token, "back")
        report = self._run(attempt)
        end_if_forked(self._pid)
        if attempt.context.has_notes and self._scribe is not None:
            self._scribe.settle(attempt, report)
        return report

    def close(self) -> None:
        """End the event loop in which coroutines ran."""
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._loop = None

    def _run(self, attempt: Attempt) -> Report | None:
        executor, scribe = self._executor, self._scribe
        self.attempt = attempt
        if self.announce is not None and attempt.timeout is not None:
            self.announce(attempt)
        token = enter(attempt.context)
        try:
            if scribe is None:
                value = self._call(attempt)
            elif attempt.envelope.log:
                with scribe.beside(attempt):
                    value = self._call(attempt)
            else:
                scribe.attend(attempt)
                value = self._call(attempt)
        except StopWork as request:
            return executor.stopped(attempt, str(request))
        except KeyboardInterrupt as interrupt:
            if self._is_interruptible:
                # Meant for the worker, wherever it happened to be.
                raise
            return executor.raised(attempt, interrupt)
        except BaseException as error:  # noqa: BLE001 - it is the task's own
            if attempt.is_interrupted and isinstance(error, asyncio.CancelledError):
                return executor.stopped(attempt, "it was told to stop")
            return executor.raised(attempt, error)
        finally:
            leave(token)
            self.attempt = None
        return executor.returned(attempt, value)

    def _call(self, attempt: Attempt) -> Any:
        definition = attempt.definition
        value = definition.function(**attempt.arguments)
        return self._awaited(value, attempt) if definition.is_coroutine else value

    def _awaited(self, coroutine: Any, attempt: Attempt) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        if attempt.timeout is not None:
            coroutine = _limited(coroutine, attempt, attempt.timeout)
        return self._loop.run_until_complete(coroutine)


def end_if_forked(pid: int) -> None:
    """End a process that a task has forked and let run on.

    It would go on as a second worker of the same name, and fork again.
    """
    if os.getpid() != pid:
        os._exit(0)


async def _limited(coroutine: Any, attempt: Attempt, seconds: float) -> Any:
    """Await it, and cancel it when its time is over."""
    awaiting = asyncio.current_task()
    assert awaiting is not None

    def end() -> None:
        attempt.is_interrupted = attempt.is_overdue = True
        awaiting.cancel()

    limit = asyncio.get_running_loop().call_later(seconds, end)
    try:
        return await coroutine
    finally:
        limit.cancel()
