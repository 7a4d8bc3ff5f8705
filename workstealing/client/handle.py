"""The handle of a submitted task: where it is, what came of it, how to stop it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from workstealing.client.channel import LoggingChannel
from workstealing.tasks.logging import LogRecord
from workstealing.tasks.outcome import TaskState
from workstealing.tasks.signature import decode_result

if TYPE_CHECKING:
    from workstealing.client.queue import AsyncTaskQueue, TaskQueue
    from workstealing.queue.producing import Cancelled

__all__ = ("AsyncTaskHandle", "TaskHandle")

R = TypeVar("R")


class _HandleFace(Generic[R]):
    """What both faces hold."""

    # A thousand are made at a time.
    __slots__ = ("_queue", "_result_type", "id")

    def __init__(self, queue: Any, task_id: str, result_type: Any) -> None:
        self._queue = queue
        self._result_type = result_type
        self.id = task_id

    def _read(self, result: msgspec.Raw) -> Any:
        return decode_result(result, self._result_type)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class TaskHandle(_HandleFace[R]):
    """A task that was submitted."""

    __slots__ = ()
    _queue: TaskQueue

    def state(self) -> TaskState:
        """Tell where the task is."""
        return self._queue.driver.run(self._queue.giving.state(self.id))

    def logs(self) -> list[LogRecord]:
        """Read what the task logged and printed so far, if that is kept."""
        return self._queue.driver.run(self._queue.giving.logs(self.id))

    def follow(self, channel: LoggingChannel) -> None:
        """Pass on what the task logs and prints until it has ended."""
        self._queue.driver.run(self._queue.giving.follow(self.id, channel))

    def result(self, timeout: float | None = None) -> R:
        """Wait for the task to end, and return what it returned.

        Raises:
            TaskFailed: it raised, and is not tried again.
            TaskDead: it was given up.
            TaskCancelled: it was cancelled.
            TaskNotFound: there is no such task, or its outcome has expired.
            ResultTimeout: it did not end in time.
        """
        flow = self._queue.giving.result(self.id, timeout, self._read)
        result: R = self._queue.driver.run(flow)
        return result

    def cancel(self) -> Cancelled:
        """Cancel the task: at once if it waits, by asking if it runs."""
        return self._queue.driver.run(self._queue.giving.cancel(self.id))


class AsyncTaskHandle(_HandleFace[R]):
    """A task that was submitted; the asyncio face of `TaskHandle`."""

    __slots__ = ()
    _queue: AsyncTaskQueue

    async def state(self) -> TaskState:
        """Tell where the task is."""
        return await self._queue.driver.run(self._queue.giving.state(self.id))

    async def logs(self) -> list[LogRecord]:
        """Read what the task logged and printed so far, if that is kept."""
        return await self._queue.driver.run(self._queue.giving.logs(self.id))

    async def follow(self, channel: LoggingChannel) -> None:
        """Pass on what the task logs and prints until it has ended."""
        await self._queue.driver.run(self._queue.giving.follow(self.id, channel))

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the task to end, and return what it returned.

        Raises:
            TaskFailed: it raised, and is not tried again.
            TaskDead: it was given up.
            TaskCancelled: it was cancelled.
            TaskNotFound: there is no such task, or its outcome has expired.
            ResultTimeout: it did not end in time.
        """
        flow = self._queue.giving.result(self.id, timeout, self._read)
        result: R = await self._queue.driver.run(flow)
        return result

    async def cancel(self) -> Cancelled:
        """Cancel the task: at once if it waits, by asking if it runs."""
        return await self._queue.driver.run(self._queue.giving.cancel(self.id))
