"""The task client: calls tasks by name, here or through a queue.

    client = TaskClient(queue)
    client.call(ClientContext("ann"), "images.resize", {…}, str, timeout=10)

A client needs contracts of tasks, not implementations. A request is checked before it
is sent, and again where it runs; each refusal has its own class of error. A caller that
waits gets a result or an error in time, whatever fails: see `call`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor as Threads
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    nullcontext,
)
from threading import TIMEOUT_MAX
from typing import Any, TypeVar

from workstealing._checks import checked_seconds, checked_whole
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.client.local import (
    AsyncLocalDriver,
    LocalDriver,
    LocalQueue,
    LocalTasks,
)
from workstealing.client.queue_internals import internals_of
from workstealing.client.queue_options import DEFAULTS
from workstealing.client.task_log import async_following, following
from workstealing.client.task_queue import TaskQueue
from workstealing.errors import ConfigurationError
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Flow
from workstealing.tasks.admission import Admission
from workstealing.tasks.envelope import LATEST_MS
from workstealing.tasks.policy import AccessPolicy
from workstealing.tasks.registry import Registry
from workstealing.tasks.signature import decode_result
from workstealing.tasks.submission import ClientContext, Submission, SubmitOptions

__all__ = ("AsyncTaskClient", "TaskClient")

D = TypeVar("D")
R = TypeVar("R")

# Threads cannot wait for a lock much longer than this, which is over a century.
_LONGEST_SECONDS = TIMEOUT_MAX / 2


class _Wait:
    """How long a caller waits, and how much of that is left."""

    def __init__(self, timeout: float, time_ns: int) -> None:
        self.seconds = checked_seconds(timeout, "timeout")
        self._end = time.monotonic() + min(self.seconds, _LONGEST_SECONDS)
        now_ms = time_ns // 1_000_000
        self._begun_ms = now_ms
        self._end_ms = round(min(now_ms + self.seconds * 1000, LATEST_MS))

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def deadline_ms(self, context: ClientContext) -> int:
        """Return when the caller stops waiting: the task must not start later."""
        own = context.deadline_ms(self._begun_ms)
        return self._end_ms if own is None else min(own, self._end_ms)


class _AnyClient:
    """What both clients share: they check a request, send it, and wait for its end."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._internals: Any = (
            queue if isinstance(queue, LocalQueue) else internals_of(queue)
        )
        self._admission: Admission = self._internals.admission

    def _give(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        version: int | None,
        wait: _Wait | None = None,
    ) -> Flow[str]:
        if not isinstance(context, ClientContext):
            raise ConfigurationError(
                f"context must be a ClientContext, not {context!r}"
            )
        task = self._admission.registry.interface(name, version)
        if isinstance(self._internals, LocalQueue):
            # A contract can be called, but what is run here must be implemented here.
            self._admission.registry.find(task.name, task.version)
        self._admission.permit(task, context)
        encoded = task.signature.encode_payload(payload)
        deadline_ms = None if wait is None else wait.deadline_ms(context)
        options = SubmitOptions(context=context, deadline_ms=deadline_ms)
        submission: Submission = yield from self._internals.submit(
            task, [encoded], options
        )
        return submission.ids[0]

    def _answer(self, task_id: str, result_type: Any, wait: _Wait) -> Flow[Any]:
        """Wait for the result; a server that is lost meanwhile may come back."""

        def read(result: Any) -> Any:
            return decode_result(result, result_type)

        flow = self._internals.result(task_id, wait.left, read, wait.seconds)
        return (yield from flow)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._queue!r}>"


class TaskClient(_AnyClient):
    """Calls tasks by name.

    Args:
        queue: takes the requests. Its registry says which tasks there are; give it
            `registry=` with contracts if the implementations are elsewhere.
    """

    def __init__(self, queue: TaskQueue | LocalQueue[LocalDriver]) -> None:
        super().__init__(queue)

    @classmethod
    def local(
        cls,
        registry: Registry,
        *,
        pool: Threads,
        policy: AccessPolicy | None = None,
        max_payload: int = DEFAULTS.max_payload,
        max_result: int = DEFAULTS.max_result,
    ) -> TaskClient:
        """Return a client that runs tasks in threads of this process.

        Args:
            registry: the tasks, implemented.
            pool: a `workstealing.pool.Pool`, or any executor of threads.
            policy: which roles may call which tasks.
            max_payload: bytes of one payload.
            max_result: bytes of one result; a task that returns more has failed.
        """
        limits = max_payload, max_result
        return cls(_local_queue(LocalDriver, registry, pool, policy, *limits))

    def call(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        result_type: type[R],
        timeout: float,
        version: int | None = None,
    ) -> R:
        """Call a task and wait for its result.

        It ends within `timeout` seconds, plus the time that the connection may wait for
        a reply. A task that has not started by then will not run. If the server cannot
        be reached when the request is made, that is raised at once; if it is lost
        later, the wait goes on.

        Args:
            context: on whose behalf the task is called.
            name: the name of the task.
            payload: a dict, argument name to value; or an object of the payload's type.
            result_type: the type to read the result as.
            timeout: seconds to wait.
            version: the version of the task; by default the newest in the registry.

        Raises:
            UnknownTask: there is no such task.
            NotPermitted: this principal may not call it.
            PayloadInvalid: the payload does not match the task.
            TaskFailed: the task raised an error and is not tried again.
            TaskDead: it was given up for another reason.
            TaskCancelled: it was cancelled.
            ResultInvalid: the result is not of this type.
            ResultTimeout: it did not end in time; the message says where it is.
            RedisUnavailable: the server cannot be reached.
        """
        wait = _Wait(timeout, self._internals.time_ns())
        run = self._internals.driver.run
        task_id = run(self._give(context, name, payload, version, wait))
        with self._received(context, task_id):
            result: R = run(self._answer(task_id, result_type, wait))
        return result

    def submit(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        result_type: type[R],
        version: int | None = None,
    ) -> TaskHandle[R]:
        """Call a task and return its handle; arguments as for `call`."""
        run = self._internals.driver.run
        task_id = run(self._give(context, name, payload, version))
        return TaskHandle(self._internals, task_id, result_type)

    def _received(
        self, context: ClientContext, task_id: str
    ) -> AbstractContextManager[None]:
        if context.logging is None:
            return nullcontext()
        return following(
            self._internals.driver, self._internals.log, task_id, context.logging
        )


class AsyncTaskClient(_AnyClient):
    """Calls tasks by name; the asyncio twin of `TaskClient`."""

    def __init__(self, queue: AsyncTaskQueue | LocalQueue[AsyncLocalDriver]) -> None:
        super().__init__(queue)

    @classmethod
    def local(
        cls,
        registry: Registry,
        *,
        pool: Threads,
        policy: AccessPolicy | None = None,
        max_payload: int = DEFAULTS.max_payload,
        max_result: int = DEFAULTS.max_result,
    ) -> AsyncTaskClient:
        """Return a client that runs tasks in threads; see `TaskClient.local`."""
        limits = max_payload, max_result
        return cls(_local_queue(AsyncLocalDriver, registry, pool, policy, *limits))

    async def call(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        result_type: type[R],
        timeout: float,
        version: int | None = None,
    ) -> R:
        """Call a task and wait for its result, without blocking the event loop.

        For arguments and errors see `TaskClient.call`.
        """
        wait = _Wait(timeout, self._internals.time_ns())
        run = self._internals.driver.run
        task_id = await run(self._give(context, name, payload, version, wait))
        async with self._received(context, task_id):
            result: R = await run(self._answer(task_id, result_type, wait))
        return result

    async def submit(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        result_type: type[R],
        version: int | None = None,
    ) -> AsyncTaskHandle[R]:
        """Call a task and return its handle; arguments as for `TaskClient.call`."""
        run = self._internals.driver.run
        task_id = await run(self._give(context, name, payload, version))
        return AsyncTaskHandle(self._internals, task_id, result_type)

    def _received(
        self, context: ClientContext, task_id: str
    ) -> AbstractAsyncContextManager[None]:
        if context.logging is None:
            return nullcontext()
        return async_following(
            self._internals.driver, self._internals.log, task_id, context.logging
        )


def _local_queue(
    driver: Callable[[LocalTasks], D],
    registry: Registry,
    threads: Threads,
    policy: AccessPolicy | None,
    max_payload: int,
    max_result: int,
) -> LocalQueue[D]:
    settings = QueueSettings(
        max_payload=checked_whole(max_payload, "max_payload", 1),
        max_result=checked_whole(max_result, "max_result", 1),
    )
    admission, tasks = Admission(registry, policy), LocalTasks()
    return LocalQueue(admission, settings, threads, tasks, driver(tasks))
