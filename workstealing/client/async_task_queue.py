"""The task queue for asyncio, the twin of `workstealing.client.task_queue`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from workstealing._checks import checked_id
from workstealing.client.bulk import BulkChanges, BulkResult, OnProgress, States
from workstealing.client.composed_handle import AsyncGroupHandle, async_group_handle
from workstealing.client.handle import AsyncTaskHandle
from workstealing.client.queue_internals import internals_of
from workstealing.client.queue_options import Seconds
from workstealing.client.schedule_handle import (
    AsyncEvery,
    AsyncScheduleHandle,
    scheduled_task,
)
from workstealing.client.schedule_state import ScheduleState
from workstealing.client.task import (
    Arguments,
    AsyncTask,
    AsyncTaskDecorator,
    OnGiveUp,
    task_or_decorator,
)
from workstealing.client.task_queue import AnyTaskQueue, TaskQueue
from workstealing.drivers.async_driver import AsyncClient, AsyncDriver
from workstealing.drivers.connect import async_driver_source
from workstealing.errors import ConfigurationError
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.limit_calls import LimitState
from workstealing.queue.pause_calls import Pauses
from workstealing.tasks.definition import Upgrade
from workstealing.tasks.envelope import NORMAL
from workstealing.tasks.limits import KeySource, Limit, numbers_text
from workstealing.tasks.retry import Restart, RetryPolicy
from workstealing.tasks.schedule import Missed
from workstealing.tasks.unique import Unique

if TYPE_CHECKING:
    from workstealing.client.task import AsyncCoroutineTask

__all__ = ("AsyncTaskQueue",)

P = ParamSpec("P")
R = TypeVar("R")


class AsyncTaskQueue(AnyTaskQueue[AsyncClient, AsyncDriver]):
    """A named queue in Redis, and one run of it; the asyncio twin of `TaskQueue`.

    It has the same arguments and attributes. Each event loop that uses it gets a client
    of its own, unless a client was given.
    """

    _driver_source = staticmethod(async_driver_source)

    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncCoroutineTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> AsyncTask[P, R]: ...
    @overload
    def task(
        self,
        *,
        name: str | None = None,
        version: int = 1,
        retries: int | RetryPolicy = 0,
        retry_on: tuple[type[BaseException], ...] = (Exception,),
        give_up_on: tuple[type[BaseException], ...] = (),
        timeout: Seconds | None = None,
        priority: int = NORMAL,
        permission: str | None = None,
        accepts: Mapping[int, Upgrade] | None = None,
        restart: Restart | None = None,
        idempotent: bool = True,
        unique: Unique | None = None,
        expires: Seconds | None = None,
        limit: Limit | Sequence[Limit] | None = None,
        fair_key: KeySource | None = None,
        fair_weight: float | Callable[..., Any] | None = None,
        on_give_up: OnGiveUp | None = None,
        formerly: Collection[str] = (),
        brief: bool = False,
    ) -> AsyncTaskDecorator: ...
    def task(self, function: Any = None, **options: Any) -> Any:
        """Make a task of the decorated function; see `TaskQueue.task`."""
        return task_or_decorator(AsyncTask, self, function, options)

    def every(
        self,
        every: str | Seconds,
        /,
        *,
        timezone: str | None = None,
        name: str | None = None,
        arguments: Arguments = (),
        missed: Missed = "once",
        jitter: Seconds = 0.0,
        keep: bool = False,
    ) -> AsyncEvery:
        """Submit the decorated task again and again; see `TaskQueue.every`."""
        return AsyncEvery(
            self,
            name,
            keep,
            arguments,
            every=every,
            timezone=timezone,
            missed=missed,
            jitter=jitter,
        )

    async def schedule(
        self,
        task: AsyncTask[..., Any],
        *args: Any,
        every: str | Seconds,
        name: str,
        timezone: str | None = None,
        missed: Missed = "once",
        jitter: Seconds = 0.0,
        **kwargs: Any,
    ) -> AsyncScheduleHandle:
        """Submit a task again and again from now on; see `TaskQueue.schedule`."""
        handle = AsyncScheduleHandle(self._internals, name)
        definition = scheduled_task(
            self,
            task,
            args,
            kwargs,
            every=every,
            timezone=timezone,
            missed=missed,
            jitter=jitter,
        )
        await self._internals.driver.run(
            self._internals.schedules.put(handle.name, definition)
        )
        return handle

    async def schedules(self) -> tuple[ScheduleState, ...]:
        """Return all schedules as they stand in Redis, in the order of their names."""
        flow = self._internals.schedules.states()
        return await self._internals.driver.run(flow)

    def schedule_handle(self, name: str) -> AsyncScheduleHandle:
        """Return the handle of a schedule, to pause, change, run or remove it."""
        return AsyncScheduleHandle(self._internals, name)

    def handle(self, task_id: str) -> AsyncTaskHandle[Any]:
        """Return the handle of a task that was submitted earlier or elsewhere."""
        return AsyncTaskHandle(self._internals, checked_id(task_id), Any)

    async def group_handle(self, group_id: str) -> AsyncGroupHandle[Any]:
        """Return the handle of a group; see `TaskQueue.group_handle`."""
        return await async_group_handle(self._internals, group_id)

    async def counts(self) -> Counts:
        """Count the tasks, by where they are."""
        return await self._internals.driver.run(self._internals.controls.counts())

    async def end_input(self) -> None:
        """Refuse further tasks, from any process: no more input is to come."""
        await self._internals.driver.run(self._internals.controls.end_input(ended=True))

    async def reopen_input(self) -> None:
        """Accept tasks again, from any process."""
        await self._internals.driver.run(
            self._internals.controls.end_input(ended=False)
        )

    async def wait(self, timeout: float | None = None) -> Counts:
        """Wait until no task waits or runs any more; see `TaskQueue.wait`."""
        return await self._internals.driver.run(self._internals.controls.wait(timeout))

    async def pause(self, task: AsyncTask[Any, Any] | str | None = None) -> bool:
        """Let no worker begin tasks until `resume`; see `TaskQueue.pause`."""
        return await self._internals.driver.run(self._internals.controls.pause(task))

    async def resume(self, task: AsyncTask[Any, Any] | str | None = None) -> bool:
        """Begin tasks again; see `TaskQueue.resume`."""
        return await self._internals.driver.run(self._internals.controls.resume(task))

    async def paused(self) -> Pauses:
        """Return what is paused, and since when; false if nothing is."""
        return await self._internals.driver.run(self._internals.controls.pauses())

    async def replay(self, task_id: str) -> bool:
        """Put a dead letter back into the queue; see `TaskQueue.replay`."""
        flow = self._internals.controls.end_letter(task_id, drop=False)
        return await self._internals.driver.run(flow)

    async def drop(self, task_id: str) -> bool:
        """Delete a dead letter for good; see `TaskQueue.drop`."""
        flow = self._internals.controls.end_letter(task_id, drop=True)
        return await self._internals.driver.run(flow)

    async def limits(
        self, name: str | None = None, *, key: Any = None
    ) -> tuple[LimitState, ...]:
        """Return the limits in force; see `TaskQueue.limits`."""
        return await self._internals.driver.run(
            self._internals.controls.limits(name, key)
        )

    async def set_limit(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        rate: int | None = None,
        period: Seconds | None = None,
    ) -> None:
        """Set other numbers for a limit; see `TaskQueue.set_limit`."""
        numbers = numbers_text(concurrency, rate, period)
        await self._internals.driver.run(
            self._internals.controls.set_limit(name, numbers)
        )

    async def reset_limit(self, name: str) -> None:
        """Go back to the numbers that the code has for a limit."""
        await self._internals.driver.run(self._internals.controls.set_limit(name, ""))

    async def count(
        self,
        *,
        task: str | None = None,
        state: States = None,
        older_than: Seconds | None = None,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Count tasks by name, state and age; see `TaskQueue.count`."""
        changes = BulkChanges(self._internals, on_progress)
        flow = changes.count(task, state, older_than)
        return await self._internals.driver.run(flow)

    async def cancel_many(
        self,
        *,
        task: str | None = None,
        state: States = None,
        older_than: Seconds | None = None,
        on_progress: OnProgress | None = None,
    ) -> BulkResult:
        """Cancel tasks by name, state and age; see `TaskQueue.cancel_many`."""
        changes = BulkChanges(self._internals, on_progress)
        flow = changes.cancel(task, state, older_than)
        return await self._internals.driver.run(flow)

    async def replay_many(
        self,
        *,
        task: str | None = None,
        state: States = None,
        older_than: Seconds | None = None,
        on_progress: OnProgress | None = None,
    ) -> BulkResult:
        """Put dead letters back into the queue; see `TaskQueue.replay_many`."""
        changes = BulkChanges(self._internals, on_progress)
        flow = changes.replay(task, state, older_than)
        return await self._internals.driver.run(flow)

    async def drop_many(
        self,
        *,
        task: str | None = None,
        state: States = None,
        older_than: Seconds | None = None,
        on_progress: OnProgress | None = None,
    ) -> BulkResult:
        """Delete dead letters for good; see `TaskQueue.drop_many`."""
        changes = BulkChanges(self._internals, on_progress)
        flow = changes.drop(task, state, older_than)
        return await self._internals.driver.run(flow)

    async def purge(
        self,
        *,
        task: str | None = None,
        state: States = None,
        older_than: Seconds | None = None,
        on_progress: OnProgress | None = None,
    ) -> BulkResult:
        """Forget outcomes; see `TaskQueue.purge`."""
        changes = BulkChanges(self._internals, on_progress)
        flow = changes.purge(task, state, older_than)
        return await self._internals.driver.run(flow)

    def sync(self) -> TaskQueue:
        """Return a `TaskQueue` of the same tasks and options, with a client of its own.

        Each call returns another; close it when it is no longer needed.
        """
        redis = self._internals.source.redis
        if redis is not None and not isinstance(redis, str):
            raise ConfigurationError(
                f"{self!r} was given an asyncio client, which sync code cannot use:"
                " give it a URL, or define a TaskQueue(…, registry=queue.registry)"
                " beside it"
            )
        twin = TaskQueue(self.name, redis, **self._internals.options.keywords())
        internals_of(twin).become_twin_of(self._internals)
        return twin

    async def close(self) -> None:
        """Release the queue's connections; see `TaskQueue.close`."""
        await self._internals.source.close()

    async def __aenter__(self) -> AsyncTaskQueue:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
