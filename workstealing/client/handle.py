"""The handle of a submitted task: its state, its result, its log, and cancelling."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from workstealing._checks import checked_timeout
from workstealing.client.event_watch import EventWatch, TaskEvent
from workstealing.client.task_log import LoggingChannel, async_following, following
from workstealing.tasks.outcome import State, TaskState
from workstealing.tasks.output_capture import LogRecord
from workstealing.tasks.signature import decode_result

if TYPE_CHECKING:
    from workstealing.client.queue_internals import QueueInternals
    from workstealing.drivers.async_driver import AsyncDriver
    from workstealing.drivers.sync_driver import Driver
    from workstealing.queue.producer_calls import Cancelled
    from workstealing.tasks.submission import Submission

__all__ = (
    "AsyncTaskHandle",
    "TaskHandle",
    "handles_of",
    "internals_of_handle",
    "reader_of",
)

R = TypeVar("R")
H = TypeVar("H", bound="TaskHandle[Any] | AsyncTaskHandle[Any]")


class _AnyHandle(Generic[R]):
    """What a `TaskHandle` and an `AsyncTaskHandle` have in common."""

    # With slots, since `submit_many` makes one for each task.
    __slots__ = ("_internals", "_result_type", "found_ended", "id", "is_new")

    def __init__(
        self,
        internals: Any,
        task_id: str,
        result_type: Any,
        is_new: bool | None = None,
        found: str | None = None,
    ) -> None:
        self._internals = internals
        self._result_type = result_type
        self.id = task_id
        self.is_new = is_new
        self.found_ended = None if found is None else _state(found)

    def _read(self, result: msgspec.Raw) -> Any:
        return decode_result(result, self._result_type)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class TaskHandle(_AnyHandle[R]):
    """A task that was submitted.

    Attributes:
        id: of the task.
        is_new: whether this submission put the task into the queue. False if a task
            with the same id or unique key was there: nothing was submitted, and this is
            the handle of that earlier task. None for a handle from `queue.handle()`.
        found_ended: how the earlier task ended, if it had ended by then. In that case
            nothing will run; submit with `options(again=True)` to run it again.
    """

    __slots__ = ()
    _internals: QueueInternals[Driver]

    def state(self) -> TaskState:
        """Return where the task is."""
        return self._internals.driver.run(self._internals.state(self.id))

    def logs(self) -> list[LogRecord]:
        """Read what the task logged and printed so far, if that is kept."""
        return self._internals.driver.run(self._internals.log.read(self.id))

    def follow(self, channel: LoggingChannel) -> None:
        """Pass on what the task logs and prints until it has ended."""
        self._internals.driver.run(self._internals.log.follow(self.id, channel))

    def following(self, channel: LoggingChannel) -> AbstractContextManager[None]:
        """Pass on what the task logs and prints while a `with` block runs.

        A thread does it. What the task wrote by the end of the block is passed on
        before the block is left.
        """
        return following(self._internals.driver, self._internals.log, self.id, channel)

    def events(self, timeout: float | None = None) -> Iterator[TaskEvent]:
        """Iterate over what happens to the task: log records, progress, and its end.

        Log records appear only if they are kept (`log=True`). The last event is the
        `TaskState` with which the task ended.

        Raises:
            TaskNotFound: there is no such task, or its outcome has expired.
            ResultTimeout: it did not end in time.
        """
        watch = EventWatch(self._internals, self.id, checked_timeout(timeout))
        while not watch.is_over:
            yield from self._internals.driver.run(watch.look())

    def result(self, timeout: float | None = None) -> R:
        """Wait for the task to end, and return what it returned.

        If the server cannot be reached meanwhile, the wait goes on until the timeout.

        Raises:
            TaskFailed: it raised an error and is not tried again.
            TaskDead: it was given up for another reason, which the message names.
            TaskCancelled: it was cancelled.
            TaskExpired: it was not begun in time.
            TaskNotFound: there is no such task, or its outcome has expired.
            ResultTimeout: it did not end in time, or the server was away until then.
            ResultInvalid: the result does not match the task's return type.
        """
        flow = self._internals.result(self.id, timeout, self._read)
        result: R = self._internals.driver.run(flow)
        return result

    def cancel(self) -> Cancelled:
        """Cancel the task: at once if it waits, by asking if it runs.

        Returns:
            "cancelled" if it was cancelled at once, "asked" if it runs and was asked to
            stop, "ended" if it had ended, "unknown" if there is no such task.
        """
        return self._internals.driver.run(self._internals.cancel(self.id))


class AsyncTaskHandle(_AnyHandle[R]):
    """A task that was submitted; the asyncio twin of `TaskHandle`."""

    __slots__ = ()
    _internals: QueueInternals[AsyncDriver]

    async def state(self) -> TaskState:
        """Return where the task is."""
        return await self._internals.driver.run(self._internals.state(self.id))

    async def logs(self) -> list[LogRecord]:
        """Read what the task logged and printed so far, if that is kept."""
        return await self._internals.driver.run(self._internals.log.read(self.id))

    async def follow(self, channel: LoggingChannel) -> None:
        """Pass on what the task logs and prints until it has ended."""
        await self._internals.driver.run(self._internals.log.follow(self.id, channel))

    def following(self, channel: LoggingChannel) -> AbstractAsyncContextManager[None]:
        """Pass on what the task logs and prints while an `async with` block runs.

        What the task wrote by the end of the block is passed on before it is left.
        """
        return async_following(
            self._internals.driver, self._internals.log, self.id, channel
        )

    async def events(self, timeout: float | None = None) -> AsyncIterator[TaskEvent]:
        """Iterate over what happens to the task; see `TaskHandle.events`."""
        watch = EventWatch(self._internals, self.id, checked_timeout(timeout))
        while not watch.is_over:
            for event in await self._internals.driver.run(watch.look()):
                yield event

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the task to end; see `TaskHandle.result`."""
        flow = self._internals.result(self.id, timeout, self._read)
        result: R = await self._internals.driver.run(flow)
        return result

    async def cancel(self) -> Cancelled:
        """Cancel the task; see `TaskHandle.cancel`."""
        return await self._internals.driver.run(self._internals.cancel(self.id))


def handles_of(
    kind: type[H], internals: Any, result_type: Any, done: Submission
) -> list[H]:
    """Return the handles of the tasks of a submission, in order."""
    known, ended = done.known, done.ended
    if not known:
        return [kind(internals, task_id, result_type, True) for task_id in done.ids]
    return [
        kind(internals, task_id, result_type, place not in known, ended.get(place))
        for place, task_id in enumerate(done.ids)
    ]


def internals_of_handle(handle: TaskHandle[Any] | AsyncTaskHandle[Any]) -> Any:
    """Return what is inside of a handle's queue, for code of this package."""
    return handle._internals  # noqa: SLF001 - hidden from users, not from us


def reader_of(
    handle: TaskHandle[Any] | AsyncTaskHandle[Any],
) -> Callable[[msgspec.Raw], Any]:
    """Return what reads the result of a handle's task, for code of this package."""
    return handle._read  # noqa: SLF001 - hidden from users, not from us


def _state(found: str) -> State:
    try:
        return State(found)
    except ValueError:
        # A newer release may have states that this one does not know.
        return State.UNKNOWN
