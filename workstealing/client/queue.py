"""The task queue: where tasks are defined, submitted and waited for."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, overload

from workstealing.client.giving import Giving
from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.client.task import AsyncTask, Task
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.aio import AsyncClient, AsyncDriver
from workstealing.drivers.connect import async_driver, driver
from workstealing.drivers.sync import Client, Driver
from workstealing.drivers.target import target_of
from workstealing.errors import ConfigurationError
from workstealing.queue import producing, reading
from workstealing.queue.keys import QueueKeys
from workstealing.queue.reading import Counts
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.admission import Admission
from workstealing.tasks.checking import checked_seconds, checked_whole
from workstealing.tasks.envelope import NORMAL
from workstealing.tasks.naming import checked_id, checked_queue_name
from workstealing.tasks.permission import Policy
from workstealing.tasks.registry import Registry
from workstealing.tasks.restart import Restart
from workstealing.tasks.retry import RetryPolicy
from workstealing.tasks.signing import Keyring
from workstealing.tasks.task import define
from workstealing.tasks.upgrading import Upgrade

__all__ = ("AsyncTaskQueue", "TaskQueue")

P = ParamSpec("P")
R = TypeVar("R")

Seconds = float | timedelta
_DEFAULTS = QueueSettings()


class _QueueFace:
    """What both faces hold: names, numbers and the tasks that are known here."""

    def __init__(
        self,
        name: str,
        *,
        run: str = "default",
        retention: Seconds = _DEFAULTS.retention_ms / 1000,
        outcomes: int = _DEFAULTS.outcomes,
        max_length: int | None = None,
        max_payload: int = _DEFAULTS.max_payload,
        max_result: int = _DEFAULTS.max_result,
        lease: Seconds = _DEFAULTS.lease_ms / 1000,
        registry: Registry | None = None,
        policy: Policy | None = None,
        secret: str | bytes | None = None,
        keys: Keyring | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.name = checked_queue_name(name)
        self.run = checked_queue_name(run, "the name of a run")
        # An empty registry is false, and may be filled later.
        self.registry = Registry() if registry is None else registry
        keep_ms = round(checked_seconds(retention, "retention", zero=True) * 1000)
        self.settings = QueueSettings(
            retention_ms=keep_ms if outcomes else 0,
            outcomes=checked_whole(outcomes, "outcomes", 0),
            max_length=0
            if max_length is None
            else checked_whole(max_length, "max_length", 1),
            max_payload=checked_whole(max_payload, "max_payload", 1),
            max_result=checked_whole(max_result, "max_result", 1),
            lease_ms=max(1, round(checked_seconds(lease, "lease") * 1000)),
        )
        self.keys = QueueKeys(self.name, self.run)
        if secret is not None:
            if keys is not None:
                raise ConfigurationError("give secret= or keys=, not both")
            keys = Keyring(secret)
        if keys is not None and not isinstance(keys, Keyring):
            raise ConfigurationError("keys must be a Keyring; one secret is secret=")
        seal = None if keys is None else keys.seal(self.name, self.run)
        self.admission = Admission(self.registry, policy, seal)
        self.giving = Giving(self.keys, self.settings, self.admission, clock)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}/{self.run}>"


class TaskQueue(_QueueFace):
    """A named queue in Redis, and one run of it.

    Args:
        name: of the queue.
        redis: a redis-py client, a URL, or None for the environment's or the embedded
            server.
        run: each run has its own inbox, outbox and workers.
        retention: seconds that outcomes are kept; 0 keeps none.
        outcomes: how many are kept at most.
        max_length: tasks that wait or run at most; more are refused with `QueueFull`.
        max_payload: bytes of one payload.
        max_result: bytes of one result; a task that returns more has failed.
        lease: seconds after which a silent worker counts as dead.
        registry: the tasks that are known here, if they are to be shared.
        policy: which roles may call which tasks; with one, what is not granted is
            refused.
        secret: signs all that is submitted here, and lets workers refuse the rest.
        keys: the same with several secrets, or with those of a file.
        clock: where time comes from.
    """

    def __init__(
        self, name: str, redis: Client | str | None = None, **options: Any
    ) -> None:
        super().__init__(name, **options)
        self.redis = redis
        self._driver: Driver | None = None

    @property
    def driver(self) -> Driver:
        """What performs the calls; connected when first used."""
        if self._driver is None:
            self._driver = driver(self.redis, profile="tasks")
        return self._driver

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return target_of(self.driver.client)

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
                `workstealing.tasks.task.define`.
        """

        def make(function: Callable[P, R]) -> Task[P, R]:
            definition = define(function, **options)
            self.registry.add(definition)
            return Task(self, definition)

        return make if function is None else make(function)

    def handle(self, task_id: str) -> TaskHandle[Any]:
        """Return the handle of a task that was submitted earlier or elsewhere."""
        return TaskHandle(self, checked_id(task_id), Any)

    def counts(self) -> Counts:
        """Count what is where."""
        return self.driver.call(reading.counts(self.keys))

    def close(self) -> None:
        """Say that no more input comes: further submissions are refused."""
        self.driver.call(producing.close(self.keys, closed=True))

    def reopen(self) -> None:
        """Take input again."""
        self.driver.call(producing.close(self.keys, closed=False))

    def disconnect(self) -> None:
        """End its connections; a client that was given stays open. It may go on."""
        made, self._driver = self._driver, None
        if made is not None:
            made.close()
            if self.redis is None or isinstance(self.redis, str):
                made.client.close()

    def wait(self, timeout: float | None = None) -> Counts:
        """Wait until nothing is left that wants to be run."""
        return self.driver.run(self.giving.wait(timeout))

    def replay(self, task_id: str) -> bool:
        """Put a dead letter back into the queue, with a clean slate."""
        call = producing.replay(self.keys, checked_id(task_id), drop=False)
        return self.driver.call(call)

    def drop(self, task_id: str) -> bool:
        """Forget a dead letter for good."""
        call = producing.replay(self.keys, checked_id(task_id), drop=True)
        return self.driver.call(call)


class AsyncTaskQueue(_QueueFace):
    """A named queue in Redis, and one run of it; the asyncio face of `TaskQueue`."""

    def __init__(
        self, name: str, redis: AsyncClient | str | None = None, **options: Any
    ) -> None:
        super().__init__(name, **options)
        self.redis = redis
        self._driver: AsyncDriver | None = None

    @property
    def driver(self) -> AsyncDriver:
        """What performs the calls; connected when first used."""
        if self._driver is None:
            self._driver = async_driver(self.redis, profile="tasks")
        return self._driver

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return target_of(self.driver.client)

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
                `workstealing.tasks.task.define`.
        """

        def make(function: Callable[P, R]) -> AsyncTask[P, R]:
            definition = define(function, **options)
            self.registry.add(definition)
            return AsyncTask(self, definition)

        return make if function is None else make(function)

    def handle(self, task_id: str) -> AsyncTaskHandle[Any]:
        """Return the handle of a task that was submitted earlier or elsewhere."""
        return AsyncTaskHandle(self, checked_id(task_id), Any)

    async def counts(self) -> Counts:
        """Count what is where."""
        return await self.driver.call(reading.counts(self.keys))

    async def close(self) -> None:
        """Say that no more input comes: further submissions are refused."""
        await self.driver.call(producing.close(self.keys, closed=True))

    async def reopen(self) -> None:
        """Take input again."""
        await self.driver.call(producing.close(self.keys, closed=False))

    async def disconnect(self) -> None:
        """End its connections; a client that was given stays open. It may go on."""
        made, self._driver = self._driver, None
        if made is not None:
            await made.close()
            if self.redis is None or isinstance(self.redis, str):
                await made.client.aclose()

    async def wait(self, timeout: float | None = None) -> Counts:
        """Wait until nothing is left that wants to be run."""
        return await self.driver.run(self.giving.wait(timeout))

    async def replay(self, task_id: str) -> bool:
        """Put a dead letter back into the queue, with a clean slate."""
        call = producing.replay(self.keys, checked_id(task_id), drop=False)
        return await self.driver.call(call)

    async def drop(self, task_id: str) -> bool:
        """Forget a dead letter for good."""
        call = producing.replay(self.keys, checked_id(task_id), drop=True)
        return await self.driver.call(call)
