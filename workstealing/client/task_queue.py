"""The task queue: where tasks are defined, submitted and waited for.

A queue connects when it is first used. `close()` and `with` release its connections,
and change nothing in Redis; it connects again if it is used afterwards. That no more
tasks are to come is another matter, said to the whole fleet: `end_input()`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, overload

from workstealing._checks import (
    checked_id,
    checked_queue_name,
    checked_seconds,
    checked_whole,
)
from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.client.operations import QueueOperations, QueueParts, Source, parts_of
from workstealing.client.task import AsyncTask, Task
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.async_driver import AsyncClient, AsyncDriverSource
from workstealing.drivers.connect import async_driver_source, driver_source
from workstealing.drivers.sync_driver import Client, DriverSource
from workstealing.errors import ConfigurationError
from workstealing.queue import inspection_calls, producer_calls
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.admission import Admission
from workstealing.tasks.definition import Upgrade, define
from workstealing.tasks.envelope import NORMAL
from workstealing.tasks.policy import AccessPolicy
from workstealing.tasks.registry import Registry
from workstealing.tasks.retry import Restart, RetryPolicy
from workstealing.tasks.signing import Keyring

__all__ = ("AsyncTaskQueue", "TaskQueue", "parts_of")

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
S = TypeVar("S", bound=Source[Any])

Seconds = float | timedelta
_DEFAULTS = QueueSettings()


class _AnyQueue(Generic[C, S]):
    """The options of a queue, and what is made of them; see `TaskQueue`."""

    _new_source: ClassVar[Callable[..., Any]]
    """Returns what connects it."""

    def __init__(
        self,
        name: str,
        redis: C | str | None = None,
        *,
        run: str = "default",
        lease: Seconds = _DEFAULTS.lease_ms / 1000,
        retention: Seconds = _DEFAULTS.retention_ms / 1000,
        max_outcomes: int = _DEFAULTS.outcomes,
        max_length: int | None = None,
        max_payload: int = _DEFAULTS.max_payload,
        max_result: int = _DEFAULTS.max_result,
        registry: Registry | None = None,
        policy: AccessPolicy | None = None,
        secret: str | bytes | None = None,
        keyring: Keyring | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.name = checked_queue_name(name)
        self.run = checked_queue_name(run, "the name of a run")
        # An empty registry is false, and may be filled later.
        self.registry = Registry() if registry is None else registry
        if secret is not None:
            if keyring is not None:
                raise ConfigurationError("give secret= or keyring=, not both")
            keyring = Keyring(secret)
        if keyring is not None and not isinstance(keyring, Keyring):
            raise ConfigurationError("keyring must be a Keyring; one secret is secret=")
        keep_ms = round(checked_seconds(retention, "retention", zero=True) * 1000)
        settings = QueueSettings(
            retention_ms=keep_ms if max_outcomes else 0,
            outcomes=checked_whole(max_outcomes, "max_outcomes", 0),
            max_length=0
            if max_length is None
            else checked_whole(max_length, "max_length", 1),
            max_payload=checked_whole(max_payload, "max_payload", 1),
            max_result=checked_whole(max_result, "max_result", 1),
            lease_ms=max(1, round(checked_seconds(lease, "lease") * 1000)),
        )
        signer = None if keyring is None else keyring.signer(self.name, self.run)
        admission = Admission(self.registry, policy, signer)
        redis_keys = QueueKeys(self.name, self.run)
        self._source: S = self._new_source(redis, "tasks")
        self._parts: QueueParts[Any] = QueueParts(
            self._source,
            redis_keys,
            settings,
            admission,
            QueueOperations(
                f"{self.name}/{self.run}", redis_keys, settings, admission, clock
            ),
        )
        self._options: dict[str, Any] = {
            "run": run,
            "lease": lease,
            "retention": retention,
            "max_outcomes": max_outcomes,
            "max_length": max_length,
            "max_payload": max_payload,
            "max_result": max_result,
            "registry": self.registry,
            "policy": policy,
            "keyring": keyring,
            "clock": clock,
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}/{self.run}>"


class TaskQueue(_AnyQueue[Client, DriverSource]):
    """A named queue in Redis, and one run of it.

    Args:
        name: the name of the queue.
        redis: a redis-py client, a URL, or None for what the environment names, and
            without that for the embedded server.
        run: each run of a queue has its own tasks, outcomes and workers.
        lease: seconds without a sign of life after which a worker counts as dead.
        retention: seconds for which outcomes are kept; 0 keeps none.
        max_outcomes: how many outcomes are kept at most.
        max_length: how many tasks may wait or run; more are refused with `QueueFull`.
        max_payload: bytes of one payload.
        max_result: bytes of one result; a task that returns more has failed.
        registry: the tasks that are known here, if queues are to share them.
        policy: which roles may call which tasks; with a policy, a call that it does
            not allow is refused.
        secret: signs what is submitted here; workers with it refuse everything else.
        keyring: the same with several secrets, or with those of a file.
        clock: where the time comes from.

    The attributes `name`, `run` and `registry` are these arguments.
    """

    _new_source = staticmethod(driver_source)

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
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
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def task(self, function: Any = None, **options: Any) -> Any:
        """Make a task of the decorated function: `@queue.task` or with options.

        Args:
            function: what the task runs; its signature is the type of the payload.
            options: `name`, `version`, `retries`, `retry_on`, `give_up_on`, `timeout`,
                `priority`, `permission`, `accepts`, `restart`, `idempotent`; see
                `workstealing.tasks.definition.define`.
        """

        def make(function: Callable[P, R]) -> Task[P, R]:
            definition = define(function, **options)
            self.registry.add(definition)
            return Task(self, definition)

        return make if function is None else make(function)

    def handle(self, task_id: str) -> TaskHandle[Any]:
        """Return the handle of a task that was submitted earlier or elsewhere."""
        return TaskHandle(self._parts, checked_id(task_id), Any)

    def counts(self) -> Counts:
        """Count the tasks, by where they are."""
        return self._source.driver.call(inspection_calls.counts(self._parts.keys))

    def end_input(self) -> None:
        """Refuse further tasks, from any process: no more input is to come."""
        call = producer_calls.end_input(self._parts.keys, ended=True)
        self._source.driver.call(call)

    def reopen_input(self) -> None:
        """Accept tasks again, from any process."""
        call = producer_calls.end_input(self._parts.keys, ended=False)
        self._source.driver.call(call)

    def wait(self, timeout: float | None = None) -> Counts:
        """Wait until no task is left that waits or runs."""
        return self._source.driver.run(self._parts.operations.wait(timeout))

    def replay(self, task_id: str) -> bool:
        """Put a dead letter back into the queue, with a clean slate."""
        keys, task_id = self._parts.keys, checked_id(task_id)
        return self._source.driver.call(
            producer_calls.replay(keys, task_id, drop=False)
        )

    def drop(self, task_id: str) -> bool:
        """Delete a dead letter for good."""
        keys, task_id = self._parts.keys, checked_id(task_id)
        return self._source.driver.call(producer_calls.replay(keys, task_id, drop=True))

    def sync(self) -> TaskQueue:
        """Return the queue itself: the twin of `AsyncTaskQueue.sync()`."""
        return self

    def close(self) -> None:
        """Release its connections; it connects again if it is used afterwards.

        A client that was given stays open. Nothing changes in Redis.
        """
        self._source.close()

    def __enter__(self) -> TaskQueue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncTaskQueue(_AnyQueue[AsyncClient, AsyncDriverSource]):
    """A named queue in Redis, and one run of it; the asyncio twin of `TaskQueue`.

    It has the same arguments and attributes. Each event loop that uses it gets a client
    of its own, unless a client was given.
    """

    _new_source = staticmethod(async_driver_source)

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
    ) -> Callable[[Callable[P, R]], AsyncTask[P, R]]: ...
    def task(self, function: Any = None, **options: Any) -> Any:
        """Make a task of the decorated function: `@queue.task` or with options.

        Args:
            function: what the task runs; its signature is the type of the payload.
            options: `name`, `version`, `retries`, `retry_on`, `give_up_on`, `timeout`,
                `priority`, `permission`, `accepts`, `restart`, `idempotent`; see
                `workstealing.tasks.definition.define`.
        """

        def make(function: Callable[P, R]) -> AsyncTask[P, R]:
            definition = define(function, **options)
            self.registry.add(definition)
            return AsyncTask(self, definition)

        return make if function is None else make(function)

    def handle(self, task_id: str) -> AsyncTaskHandle[Any]:
        """Return the handle of a task that was submitted earlier or elsewhere."""
        return AsyncTaskHandle(self._parts, checked_id(task_id), Any)

    async def counts(self) -> Counts:
        """Count the tasks, by where they are."""
        return await self._source.driver.call(inspection_calls.counts(self._parts.keys))

    async def end_input(self) -> None:
        """Refuse further tasks, from any process: no more input is to come."""
        call = producer_calls.end_input(self._parts.keys, ended=True)
        await self._source.driver.call(call)

    async def reopen_input(self) -> None:
        """Accept tasks again, from any process."""
        call = producer_calls.end_input(self._parts.keys, ended=False)
        await self._source.driver.call(call)

    async def wait(self, timeout: float | None = None) -> Counts:
        """Wait until no task is left that waits or runs."""
        return await self._source.driver.run(self._parts.operations.wait(timeout))

    async def replay(self, task_id: str) -> bool:
        """Put a dead letter back into the queue, with a clean slate."""
        keys, task_id = self._parts.keys, checked_id(task_id)
        return await self._source.driver.call(
            producer_calls.replay(keys, task_id, drop=False)
        )

    async def drop(self, task_id: str) -> bool:
        """Delete a dead letter for good."""
        keys, task_id = self._parts.keys, checked_id(task_id)
        return await self._source.driver.call(
            producer_calls.replay(keys, task_id, drop=True)
        )

    def sync(self) -> TaskQueue:
        """Return a `TaskQueue` of the same tasks and options, with a client of its own.

        Each call returns another; close it when it is no longer needed.
        """
        redis = self._source.redis
        if redis is not None and not isinstance(redis, str):
            raise ConfigurationError(
                f"{self!r} was given an asyncio client, which sync code cannot use:"
                " give it a URL, or define a TaskQueue(…, registry=queue.registry)"
                " beside it"
            )
        return TaskQueue(self.name, redis, **self._options)

    async def close(self) -> None:
        """Release its connections; it connects again if it is used afterwards.

        A client that was given stays open. Nothing changes in Redis.
        """
        await self._source.close()

    async def __aenter__(self) -> AsyncTaskQueue:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
