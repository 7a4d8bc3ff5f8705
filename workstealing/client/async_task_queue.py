"""The task queue for asyncio, the twin of `workstealing.client.task_queue`."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, overload

from workstealing._checks import checked_id, checked_queue_name
from workstealing.client.bulk import BulkChanges, BulkResult, OnProgress, States
from workstealing.client.composed_handle import AsyncGroupHandle, async_group_handle
from workstealing.client.handle import AsyncTaskHandle
from workstealing.client.queue_internals import QueueInternals, internals_of
from workstealing.client.queue_options import (
    DEFAULTS,
    QueueOptions,
    Seconds,
    one_keyring,
)
from workstealing.client.queue_schedules import ScheduleState
from workstealing.client.schedule_handle import (
    AsyncEvery,
    AsyncScheduleHandle,
    scheduled_task,
)
from workstealing.client.task import (
    Arguments,
    AsyncTask,
    OnGiveUp,
    show_parameters,
    with_listener,
)
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.connect import async_driver_source
from workstealing.errors import ConfigurationError
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.limit_calls import LimitState
from workstealing.queue.pause_calls import Pauses
from workstealing.tasks.definition import Upgrade, define
from workstealing.tasks.envelope import NORMAL
from workstealing.tasks.hooks import Middleware, MiddlewareStack
from workstealing.tasks.limits import KeySource, Limit, numbers_text
from workstealing.tasks.policy import AccessPolicy
from workstealing.tasks.registry import Registry
from workstealing.tasks.retry import Restart, RetryPolicy
from workstealing.tasks.schedule import Missed
from workstealing.tasks.signing import Keyring
from workstealing.tasks.unique import Unique
from workstealing.telemetry.observers import Observer

__all__ = ("AsyncTaskQueue",)

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class AsyncTaskQueue:
    """A named queue in Redis, and one run of it; the asyncio twin of `TaskQueue`.

    It has the same arguments and attributes. Each event loop that uses it gets a client
    of its own, unless a client was given.
    """

    def __init__(
        self,
        name: str,
        redis: AsyncClient | str | None = None,
        *,
        run: str = "default",
        lease: Seconds = DEFAULTS.lease_ms / 1000,
        retention: Seconds = DEFAULTS.retention_ms / 1000,
        max_outcomes: int = DEFAULTS.outcomes,
        max_dead: int = DEFAULTS.dead_letters,
        dead_retention: Seconds = DEFAULTS.dead_retention_ms / 1000,
        max_length: int | None = None,
        max_payload: int = DEFAULTS.max_payload,
        max_result: int = DEFAULTS.max_result,
        replicas: int = DEFAULTS.replicas,
        shards: int = 1,
        registry: Registry | None = None,
        policy: AccessPolicy | None = None,
        secret: str | bytes | None = None,
        keyring: Keyring | None = None,
        release: int | None = None,
        middleware: Iterable[Middleware] = (),
        carry: Iterable[ContextVar[Any]] = (),
        clock: Clock = SYSTEM_CLOCK,
        observers: Iterable[Observer] = (),
    ) -> None:
        self.name = checked_queue_name(name)
        self.run = run
        # An empty registry is false, and may be filled later.
        self.registry = Registry() if registry is None else registry
        options = QueueOptions(
            run=run,
            lease=lease,
            retention=retention,
            max_outcomes=max_outcomes,
            max_dead=max_dead,
            dead_retention=dead_retention,
            max_length=max_length,
            max_payload=max_payload,
            max_result=max_result,
            replicas=replicas,
            shards=shards,
            registry=self.registry,
            policy=policy,
            keyring=one_keyring(secret, keyring),
            release=0 if release is None else release,
            middleware=MiddlewareStack.of(middleware),
            carry=tuple(carry),
            clock=clock,
            observers=tuple(observers),
        )
        source = async_driver_source(redis, "tasks")
        self._internals = QueueInternals(name, options, source)

    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
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
    ) -> Callable[[Callable[P, R]], AsyncTask[P, R]]: ...
    def task(self, function: Any = None, **options: Any) -> Any:
        """Make a task of the decorated function: `@queue.task` or with options.

        Args:
            function: what the task runs; its signature is the type of the payload.
            options: `name`, `version`, `retries`, `retry_on`, `give_up_on`, `timeout`,
                `priority`, `permission`, `accepts`, `restart`, `idempotent`,
                `unique`, `expires`, `limit`, `fair_key`, `fair_weight`, `on_give_up`,
                `formerly`, `brief`; see `workstealing.tasks.definition.define`.
        """

        def make(function: Callable[P, R]) -> AsyncTask[P, R]:
            definition = define(function, **with_listener(options))
            self.registry.add(definition)
            task: AsyncTask[P, R] = AsyncTask(self, definition)
            show_parameters(task)
            return task

        return make if function is None else make(function)

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
        """Submit the decorated task again and again: a schedule of the code.

        It is put above `@queue.task`, or on a function, which becomes a task. Workers
        and recruits make it known when they begin.

        Args:
            every: a cron expression, such as `"*/5 * * * *"`, or an interval.
            timezone: of the cron expression; UTC unless it is given.
            name: of the schedule; the name of the task unless it is given.
            arguments: of each call, as a tuple by position or a dict by name.
            missed: what becomes of ticks while nothing runs: "skip" leaves them out,
                "once" makes up for the latest, "all" for the newest hundred.
            jitter: seconds over which tasks are spread, the same for all processes.
            keep: it stays when a newer release no longer has it.
        """
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
        """Submit a task again and again, from now on: a schedule that comes from data.

        One of the same name is replaced. `task.submit` takes the same arguments; one
        that is called like a keyword of ours is given in `@queue.every` instead.
        """
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

    def resource(self, function: F) -> F:
        """Let workers open what the decorated function yields, for tasks that ask.

        It is a generator function, `def` or `async def`, that yields once: what stands
        before `yield` opens the resource, what stands after closes it. Tasks ask for
        the type that it is annotated to yield: `db: Annotated[Database, Resource]`.
        """
        return self.registry.resource(function)

    def use(self, middleware: Middleware) -> None:
        """Install a middleware, inside of those that are installed already.

        Do it where the queue is defined, so that each process does it: workers that
        run already do not notice.
        """
        self._internals.middleware.add(middleware)

    def handle(self, task_id: str) -> AsyncTaskHandle[Any]:
        """Return the handle of a task that was submitted earlier or elsewhere."""
        return AsyncTaskHandle(self._internals, checked_id(task_id), Any)

    async def group_handle(self, group_id: str) -> AsyncGroupHandle[Any]:
        """Return the handle of a group that was submitted earlier or elsewhere.

        Raises:
            TaskNotFound: there is no such group, or it was forgotten since its end.
        """
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
        """Wait until no task is left that waits or runs; paused ones wait, too."""
        return await self._internals.driver.run(self._internals.controls.wait(timeout))

    async def pause(self, task: AsyncTask[Any, Any] | str | None = None) -> bool:
        """Begin no more tasks, of any worker, until `resume`; what runs ends.

        Args:
            task: pause only tasks of this name; all of the queue if it is not given.

        Returns:
            False if it was paused already.
        """
        return await self._internals.driver.run(self._internals.controls.pause(task))

    async def resume(self, task: AsyncTask[Any, Any] | str | None = None) -> bool:
        """Begin tasks again, in the order in which they waited.

        Args:
            task: resume tasks of this name; the whole queue if it is not given, but not
                the names that were paused by themselves.

        Returns:
            False if it was not paused.
        """
        return await self._internals.driver.run(self._internals.controls.resume(task))

    async def paused(self) -> Pauses:
        """Return what is paused, and since when; false if nothing is."""
        return await self._internals.driver.run(self._internals.controls.pauses())

    async def replay(self, task_id: str) -> bool:
        """Put a dead letter back into the queue, with a clean slate."""
        flow = self._internals.controls.end_letter(task_id, drop=False)
        return await self._internals.driver.run(flow)

    async def drop(self, task_id: str) -> bool:
        """Delete a dead letter for good."""
        flow = self._internals.controls.end_letter(task_id, drop=True)
        return await self._internals.driver.run(flow)

    async def limits(
        self, name: str | None = None, *, key: Any = None
    ) -> tuple[LimitState, ...]:
        """Return the limits in force, and which keys hold tasks back.

        Args:
            name: only this limit.
            key: how much of them this key uses, instead; a text or a number, as in the
                argument that the limit is per.
        """
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
        """Set other numbers for a limit than the code has, at once and for all.

        They stay in force until `reset_limit`, whatever is deployed.
        """
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
        """Count tasks by name, state and age; see `cancel_many`."""
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
        """Cancel tasks by name, state and age: all that are not over if none is given.

        Args:
            task: the name of the task, or `name@version`.
            state: one or more of waiting, delayed, paused, parked, assigned, running.
            older_than: seconds since the task was submitted; of a dead letter since it
                was given up, of an outcome since the task ended.
            on_progress: called with how many tasks were looked at, and how many there
                are.
        """
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
        """Put dead letters, failed or dead, back into the queue; see `cancel_many`."""
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
        """Delete dead letters, failed or dead, for good; see `cancel_many`."""
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
        """Forget outcomes: done, cancelled or expired; see `cancel_many`."""
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
        """Release its connections; it connects again if it is used afterwards.

        A client that was given stays open. Nothing changes in Redis.
        """
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}/{self.run}>"
