"""The task queue: where tasks are defined, submitted and waited for.

A queue connects when it is first used. `close()` and `with` release its connections
and change nothing in Redis; used again, it connects again. To tell all processes that
no more tasks will come, use `end_input()`.
"""

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
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from workstealing._checks import checked_id, checked_queue_name
from workstealing.client.bulk import BulkChanges, BulkResult, OnProgress, States
from workstealing.client.composed_handle import GroupHandle, group_handle
from workstealing.client.handle import TaskHandle
from workstealing.client.queue_internals import QueueInternals, Source
from workstealing.client.queue_options import (
    DEFAULTS,
    QueueOptions,
    Seconds,
    one_keyring,
)
from workstealing.client.schedule_handle import Every, ScheduleHandle, scheduled_task
from workstealing.client.schedule_state import ScheduleState
from workstealing.client.task import (
    Arguments,
    OnGiveUp,
    Task,
    TaskDecorator,
    task_or_decorator,
)
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.connect import Profile, driver_source
from workstealing.drivers.sync_driver import Client, Driver
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.limit_calls import LimitState
from workstealing.queue.pause_calls import Pauses
from workstealing.tasks.definition import Upgrade
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

if TYPE_CHECKING:
    from workstealing.client.task import CoroutineTask

__all__ = ("AnyTaskQueue", "TaskQueue")

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
D_co = TypeVar("D_co", covariant=True)
GivenClient = TypeVar("GivenClient")


class AnyTaskQueue(Generic[GivenClient, D_co]):
    """What a `TaskQueue` and an `AsyncTaskQueue` have in common."""

    _driver_source: Callable[[GivenClient | str | None, Profile], Source[D_co]]
    """Makes the source of the driver from the argument `redis`."""

    def __init__(
        self,
        name: str,
        redis: GivenClient | str | None = None,
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
        source = self._driver_source(redis, "tasks")
        self._internals = QueueInternals(name, options, source)

    def resource(self, function: F) -> F:
        """Let workers open what the decorated function yields, for tasks that ask.

        The function is a generator, `def` or `async def`, that yields once: the code
        before `yield` opens the resource, the code after it closes it. Tasks ask for
        the type that it is annotated to yield: `db: Annotated[Database, Resource]`.
        """
        return self.registry.resource(function)

    def use(self, middleware: Middleware) -> None:
        """Install a middleware, inside of those that are installed already.

        Call this where the queue is defined, so that every process does: workers that
        are already running do not notice.
        """
        self._internals.middleware.add(middleware)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}/{self.run}>"


class TaskQueue(AnyTaskQueue[Client, Driver]):
    """A named queue in Redis, and one run of it.

    Args:
        name: the name of the queue.
        redis: a redis-py client or a URL. None takes the URL from the environment, or
            else starts the embedded server.
        run: each run of a queue has its own tasks, outcomes and workers.
        lease: seconds without a sign of life after which a worker counts as dead.
        retention: seconds for which outcomes are kept; 0 keeps none.
        max_outcomes: how many outcomes are kept at most.
        max_dead: how many dead letters are kept at most, the newest ones; 10,000 by
            default.
        dead_retention: seconds for which a dead letter is kept; seven days by default.
        max_length: how many tasks may wait or run; more are refused with `QueueFull`.
        max_payload: the most bytes of one payload; checked on submission and by
            workers.
        max_result: the most bytes of one result; a task that returns more has failed.
        replicas: how many replicas must confirm a submission, or the outcome of a task,
            before it counts; not on a Cluster.
        shards: the least number of slots of a Cluster that the queue is spread over; it
            never shrinks. Give all processes the same number.
        registry: a registry of tasks, to share it between queues.
        policy: which roles may call which tasks; with a policy, a call that it does
            not allow is refused.
        secret: signs what is submitted here; workers with it refuse everything else.
        keyring: the same with several secrets, or with those of a file.
        release: a number that grows with each deploy, such as a build number: the
            newest release that is at work decides which schedules exist.
        middleware: hooks around each task, the outermost first; see `use`.
        carry: context variables whose values, strings, travel with tasks.
        clock: where the time comes from.
        observers: get an event for each task that is submitted here, and for each that
            workers of this queue run; see `workstealing.telemetry`.

    The attributes `name`, `run` and `registry` are these arguments.
    """

    _driver_source = staticmethod(driver_source)

    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> CoroutineTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
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
    ) -> TaskDecorator: ...
    def task(self, function: Any = None, **options: Any) -> Any:
        """Make a task of the decorated function: `@queue.task` or with options.

        Args:
            function: what the task runs; its signature is the type of the payload.
            name: `module.function` if it is not given. The module of a script that runs
                as `__main__` is named as if it were imported.
            version: what the payload means; raise it when the parameters change.
            retries: how often it is tried again. With a `RetryPolicy`, which says more
                about it, `retry_on` and `give_up_on` have no effect.
            retry_on: the errors after which it is tried again.
            give_up_on: those after which it is not, whatever `retry_on` says.
            timeout: how long one attempt may last; None is for ever.
            priority: 0 (urgent), 1 or 2 (whenever).
            accepts: older versions that it runs, too. Maps each to a function that
                turns its payload, a dict, into that of the next version named here; the
                last one into that of this version.
            restart: "always" (the default) tries it again as `retries` says, and after
                its worker died. "on-crash" only after its worker died, not after an
                error. "never" does not run it twice, whatever happens.
            idempotent: False means that it must not run twice: the same as
                `restart="never"`.
            permission: the permission that its callers need, if the queue has a policy;
                `PUBLIC` lets everybody call it.
            unique: what keeps a second task like it out of the queue; see `Unique`.
            expires: how long after it is due it may still start; later it ends as
                expired. None sets no limit.
            limit: how many may run at once, or start in a period: a `Limit`, or a list
                of limits that all apply.
            fair_key: the name of an argument, or a function of the arguments. Tasks
                with different keys take turns, however many of one key wait.
            fair_weight: how many turns a key gets, 1 if it is not given; a number, or a
                function of the arguments.
            on_give_up: a function that is called with the context and the reason once
                the task has failed for good. `@queue.task` takes a task, too: it is
                submitted with the id of the task that was given up, and the reason.
            formerly: names that the task had before: tasks submitted under them still
                run.
            brief: whether it takes only milliseconds, so that a process may run it in a
                spare moment; see `BriefTasks`.
        """
        return task_or_decorator(Task, self, function, options)

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
    ) -> Every:
        """Submit the decorated task again and again: a schedule declared in the code.

        Put it above `@queue.task`, or on a plain function, which becomes a task.
        Workers and recruits declare the schedule to the queue when they begin.

        Args:
            every: a cron expression, such as `"*/5 * * * *"`, or an interval.
            timezone: the time zone of the cron expression; UTC by default.
            name: the name of the schedule; by default that of the task.
            arguments: the arguments of each call, as a tuple by position or a dict by
                name.
            missed: what to do about ticks that came while no process ran: "skip" leaves
                them out, "once" makes up for the latest, "all" for the newest hundred.
            jitter: seconds over which tasks are spread, the same for all processes.
            keep: whether it stays when a newer release no longer declares it.
        """
        return Every(
            self,
            name,
            keep,
            arguments,
            every=every,
            timezone=timezone,
            missed=missed,
            jitter=jitter,
        )

    def schedule(
        self,
        task: Task[..., Any],
        *args: Any,
        every: str | Seconds,
        name: str,
        timezone: str | None = None,
        missed: Missed = "once",
        jitter: Seconds = 0.0,
        **kwargs: Any,
    ) -> ScheduleHandle:
        """Submit a task again and again from now on: a schedule that comes from data.

        It replaces a schedule of the same name. The other arguments are those of
        `task.submit`. If one has the name of a keyword here, such as `name`, declare
        the schedule with `@queue.every(…, arguments=…)` instead.
        """
        handle = ScheduleHandle(self._internals, name)
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
        self._internals.driver.run(
            self._internals.schedules.put(handle.name, definition)
        )
        return handle

    def schedules(self) -> tuple[ScheduleState, ...]:
        """Return all schedules as they stand in Redis, in the order of their names."""
        flow = self._internals.schedules.states()
        return self._internals.driver.run(flow)

    def schedule_handle(self, name: str) -> ScheduleHandle:
        """Return the handle of a schedule, to pause, change, run or remove it."""
        return ScheduleHandle(self._internals, name)

    def handle(self, task_id: str) -> TaskHandle[Any]:
        """Return the handle of a task that was submitted earlier or elsewhere.

        Where you have the task itself, `task.handle(id)` knows the type of the result.
        """
        return TaskHandle(self._internals, checked_id(task_id), Any)

    def group_handle(self, group_id: str) -> GroupHandle[Any]:
        """Return the handle of a group that was submitted earlier or elsewhere.

        Raises:
            TaskNotFound: there is no such group, or it ended so long ago that it was
                forgotten.
        """
        return group_handle(self._internals, group_id)

    def counts(self) -> Counts:
        """Count the tasks, by where they are."""
        return self._internals.driver.run(self._internals.controls.counts())

    def end_input(self) -> None:
        """Refuse further tasks, from any process: no more input is to come."""
        self._internals.driver.run(self._internals.controls.end_input(ended=True))

    def reopen_input(self) -> None:
        """Accept tasks again, from any process."""
        self._internals.driver.run(self._internals.controls.end_input(ended=False))

    def wait(self, timeout: float | None = None) -> Counts:
        """Wait until no task waits or runs any more; a paused task counts as waiting.

        Raises:
            ResultTimeout: some tasks still wait or run after *timeout* seconds.
        """
        return self._internals.driver.run(self._internals.controls.wait(timeout))

    def pause(self, task: Task[Any, Any] | str | None = None) -> bool:
        """Let no worker begin tasks until `resume`; tasks that run go on to their end.

        Args:
            task: pause only tasks of this name; by default the whole queue.

        Returns:
            False if it was paused already.
        """
        return self._internals.driver.run(self._internals.controls.pause(task))

    def resume(self, task: Task[Any, Any] | str | None = None) -> bool:
        """Begin tasks again, in the order in which they waited.

        Args:
            task: resume tasks of this name; by default the whole queue, except for
                names that were paused on their own.

        Returns:
            False if it was not paused.
        """
        return self._internals.driver.run(self._internals.controls.resume(task))

    def paused(self) -> Pauses:
        """Return what is paused, and since when; false if nothing is."""
        return self._internals.driver.run(self._internals.controls.pauses())

    def replay(self, task_id: str) -> bool:
        """Put a dead letter back into the queue, with a clean slate.

        Returns:
            False if there is no such dead letter.

        Raises:
            NotUnique: another task has its unique key meanwhile.
        """
        flow = self._internals.controls.end_letter(task_id, drop=False)
        return self._internals.driver.run(flow)

    def drop(self, task_id: str) -> bool:
        """Delete a dead letter for good.

        Returns:
            False if there is no such dead letter.
        """
        flow = self._internals.controls.end_letter(task_id, drop=True)
        return self._internals.driver.run(flow)

    def limits(
        self, name: str | None = None, *, key: Any = None
    ) -> tuple[LimitState, ...]:
        """Return the limits in force, and which keys hold tasks back.

        Args:
            name: only this limit.
            key: show how much of the limits this key uses, instead of the keys that
                hold tasks back; a value that the argument in `per=` may have.
        """
        return self._internals.driver.run(self._internals.controls.limits(name, key))

    def set_limit(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        rate: int | None = None,
        period: Seconds | None = None,
    ) -> None:
        """Set other numbers for a limit than the code has, at once, for all processes.

        They stay in force until `reset_limit`, even when new code is deployed.
        """
        numbers = numbers_text(concurrency, rate, period)
        self._internals.driver.run(self._internals.controls.set_limit(name, numbers))

    def reset_limit(self, name: str) -> None:
        """Go back to the numbers that the code has for a limit."""
        self._internals.driver.run(self._internals.controls.set_limit(name, ""))

    def count(
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
        return self._internals.driver.run(flow)

    def cancel_many(
        self,
        *,
        task: str | None = None,
        state: States = None,
        older_than: Seconds | None = None,
        on_progress: OnProgress | None = None,
    ) -> BulkResult:
        """Cancel tasks by name, state and age; without any, all that have not ended.

        Args:
            task: the name of the task, or `name@version`.
            state: one or more of waiting, delayed, paused, parked, assigned, running.
            older_than: the least age, in seconds since the task was submitted; for a
                dead letter since it was given up, for an outcome since the task ended.
            on_progress: called with how many tasks were looked at, and about how many
                there are.
        """
        changes = BulkChanges(self._internals, on_progress)
        flow = changes.cancel(task, state, older_than)
        return self._internals.driver.run(flow)

    def replay_many(
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
        return self._internals.driver.run(flow)

    def drop_many(
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
        return self._internals.driver.run(flow)

    def purge(
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
        return self._internals.driver.run(flow)

    def sync(self) -> TaskQueue:
        """Return the queue itself: the twin of `AsyncTaskQueue.sync()`."""
        return self

    def close(self) -> None:
        """Release the queue's connections; if it is used again, it connects again.

        A client that you passed in stays open. Nothing changes in Redis.
        """
        self._internals.source.close()

    def __enter__(self) -> TaskQueue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
