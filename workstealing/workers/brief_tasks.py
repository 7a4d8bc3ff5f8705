"""Runs brief tasks as side work: a few short ones, when its host has a spare moment.

The process needs no worker. It takes only tasks that are marked `brief=True`, and only
if they usually end in the time that is left. A task is taken under a lease, run and
reported in one slice. If the process dies, workers get its tasks as from a dead worker.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from math import inf
from threading import Thread
from typing import Any

from workstealing._logs import BackgroundLogger
from workstealing._stop_requests import is_stop_request
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.connect import async_driver_source
from workstealing.errors import RedisError, SliceOverdue, StopWork
from workstealing.recruiting.job import Duty
from workstealing.tasks.attempt import (
    Attempt,
    Delivery,
    Ending,
    Report,
    ValueOrError,
    value_or_error,
)
from workstealing.workers.inline_slot import SlotEventLoop
from workstealing.workers.side_connection import SideConnection
from workstealing.workers.spare_moment import is_in_event_loop
from workstealing.workers.spare_worker import SpareWorker

__all__ = ("AsyncBriefTasks", "BriefTasks")

logger = BackgroundLogger(__name__)

# How long a cancelled coroutine may take to end, where a slice may end a little late.
_GRACE_SECONDS = 0.02
# How long a slice may take to end when its job is closed.
_CLOSE_SECONDS = 1.0
_CLOSE_LOOKS = 100


class BriefTasks:
    """Runs brief tasks of a queue as a `Job`, one after another while there is time.

    It runs plain functions and coroutine functions, the latter not in a thread that has
    a running event loop. Unless the queue was given a client, it connects for itself,
    and waits no longer for a reply than other side work does.
    """

    def __init__(self, queue: TaskQueue, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._worker = SpareWorker(
            queue, clock, is_async=False, reraised=(_NotTheTask, SliceOverdue)
        )
        # By process: a forked child must not even close the loop of its parent, for
        # both have the same epoll.
        self._loops: dict[int, SlotEventLoop] = {}

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return self._worker.connection.target

    def recruited(self) -> Duty:
        """Run tasks that fit into the slice, or none."""
        worker = self._worker
        with worker.turn() as is_free:
            if not is_free:
                return Duty.DISMISSED
            try:
                return worker.connection.source.driver.run(worker.work(self._execute))
            except BaseException as error:
                if is_stop_request(error):
                    # The host may have no other moment.
                    self._hand_back()
                raise

    def close(self) -> None:
        """Hand back what is left, if Redis answers, and release connections."""
        worker = self._worker
        # A slice that is under way in another thread reports for itself.
        with worker.turn(_CLOSE_SECONDS) as is_free:
            if is_free:
                self._hand_back()
                loop = self._loops.pop(os.getpid(), None)
                if loop is not None:
                    _close_loop(loop)
        worker.close()

    def _hand_back(self) -> None:
        try:
            self._worker.connection.source.driver.run(self._worker.hand_back())
        except RedisError as error:
            _tell_of_rest(error)

    def _execute(self, delivery: Delivery, seconds: float, _: float) -> Ending:
        loop = self._loops.setdefault(os.getpid(), SlotEventLoop())

        def call(attempt: Attempt) -> Any:
            try:
                with self._worker.in_hand(attempt):
                    value = attempt.definition.function(**attempt.arguments)
                    if attempt.definition.is_coroutine:
                        ended = _within(value, attempt, seconds, _GRACE_SECONDS)
                        value = _returned(loop.complete(ended))
                    return value
            except BaseException as error:
                if is_stop_request(error) and not isinstance(error, StopWork):
                    # The coroutine does not notice before the loop runs again.
                    loop.cancel()
                    raise _HostStops(error) from None
                raise

        try:
            return self._worker.runner.execute(delivery, call, loop.complete)
        except SliceOverdue:
            return Report(delivery.id, delivery.token, "back")
        except _NotTheTask as reason:
            return _settled(self._worker, delivery, reason)


class AsyncBriefTasks:
    """Runs brief coroutine functions of a queue; for an `AsyncRecruiter`.

    For plain functions, install `BriefTasks(queue.sync())` there, too: it runs in a
    thread.
    """

    def __init__(self, queue: AsyncTaskQueue, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = SideConnection(internals_of(queue), async_driver_source)
        self._twin = queue.sync()
        self._worker = SpareWorker(
            self._twin, clock, is_async=True, reraised=(_NotTheTask,)
        )

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return self._connection.target

    async def recruited(self) -> Duty:
        """Run tasks that fit into the slice, or none."""
        worker = self._worker
        with worker.turn() as is_free:
            if not is_free:
                return Duty.DISMISSED
            driver = self._connection.source.driver
            return await driver.run(worker.work(self._execute))

    async def close(self) -> None:
        """Hand back what is left, if Redis answers, and release connections."""
        source = self._connection.source
        # A slice that is under way reports for itself, in the same event loop.
        for _ in range(_CLOSE_LOOKS):
            with self._worker.turn() as is_free:
                if is_free:
                    await self._hand_back()
                    break
            await asyncio.sleep(_CLOSE_SECONDS / _CLOSE_LOOKS)
        # It may wait for the reply to a renewal of the lease.
        await asyncio.to_thread(self._worker.close)
        self._twin.close()
        await source.close()

    async def _hand_back(self) -> None:
        try:
            await self._connection.source.driver.run(self._worker.hand_back())
        except RedisError as error:
            _tell_of_rest(error)

    async def _execute(
        self, delivery: Delivery, seconds: float, grace: float
    ) -> Ending:
        async def call(attempt: Attempt) -> Any:
            with self._worker.in_hand(attempt):
                coroutine = attempt.definition.function(**attempt.arguments)
                return _returned(await _within(coroutine, attempt, seconds, grace))

        try:
            return await self._worker.runner.execute_async(delivery, call)
        except _NotTheTask as reason:
            return _settled(self._worker, delivery, reason)


class _NotTheTask(BaseException):
    """Passes through a runner, which takes other errors for errors of the task.

    Args:
        request: the exception that asks the host to stop, if there is one.
    """

    def __init__(self, request: BaseException | None) -> None:
        super().__init__()
        self.request = request


class _HostStops(_NotTheTask):
    """The host was asked to stop, so the task goes back."""


class _RunsOn(_NotTheTask):
    """The task ignored its cancellation and runs on."""


def _settled(worker: SpareWorker, delivery: Delivery, reason: _NotTheTask) -> Ending:
    if isinstance(reason, _RunsOn):
        worker.abandon(delivery)
    if reason.request is not None:
        raise reason.request from None
    return None


def _close_loop(loop: SlotEventLoop) -> None:
    """Close an event loop, which has to run once more for that.

    It cannot in a thread in which another one runs, such as that of an asyncio host.
    """
    if is_in_event_loop():
        closing = Thread(target=loop.close, name="workstealing-brief-close")
        closing.start()
        closing.join()
    else:
        loop.close()


def _tell_of_rest(error: RedisError) -> None:
    logger.debug("brief tasks are not handed back before their lease ends: %r", error)


async def _within(
    coroutine: Coroutine[Any, Any, Any],
    attempt: Attempt,
    seconds: float,
    grace: float,
) -> ValueOrError:
    """Await a coroutine, and cancel it when the slice is over, or the host stops."""
    limit = min(seconds, attempt.timeout or inf)
    running, request = asyncio.ensure_future(value_or_error(coroutine)), None
    try:
        # Most end within one turn of the loop, and asyncio.wait() takes two more.
        await asyncio.sleep(0)
        if not running.done():
            await asyncio.wait({running}, timeout=None if limit == inf else limit)
    except asyncio.CancelledError as error:
        request = error
    if not running.done():
        attempt.is_interrupted = True
        attempt.is_overdue = request is None and limit == attempt.timeout
        running.cancel()
        try:
            await asyncio.wait({running}, timeout=grace)
        except asyncio.CancelledError as error:
            request = error
    if not running.done():
        raise _RunsOn(request)
    if request is not None:
        # Read its error, or asyncio logs that nobody did.
        running.cancelled() or running.exception()
        raise _HostStops(request)
    return running.result()


def _returned(ended: ValueOrError) -> Any:
    value, error = ended
    if error is not None:
        raise error
    return value
