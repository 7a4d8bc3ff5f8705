"""The task client: calls tasks by name, here or through a queue.

    client = TaskClient(queue)
    client.exec_blocking(ClientContext("ann"), "images.resize", {…}, str, timeout=10)

It needs contracts, not implementations. A request is checked before it is sent, and
again where it is run; each refusal is an error of its own. A caller that waits is
answered or told that it waited in vain, whatever fails: see `exec_blocking`.
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

from workstealing.client.channel import afollowing, following
from workstealing.client.giving import Giving, SubmitOptions
from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.client.local import (
    AsyncLocalDriver,
    LocalDriver,
    LocalGiving,
    LocalPlace,
)
from workstealing.client.queue import AsyncTaskQueue, TaskQueue
from workstealing.errors import ConfigurationError, RedisUnavailable, ResultTimeout
from workstealing.queue.call import Flow, Nap
from workstealing.tasks.admission import Admission
from workstealing.tasks.calling import ClientContext
from workstealing.tasks.checking import checked_seconds
from workstealing.tasks.envelope import LATEST_MS
from workstealing.tasks.permission import Policy
from workstealing.tasks.registry import Registry
from workstealing.tasks.signature import decode_result

__all__ = ("AsyncTaskClient", "TaskClient")

R = TypeVar("R")

# A server that restarts is back soon; one that is gone need not be asked more often.
_PAUSE_SECONDS = 0.2
# A lock cannot be waited for much longer; it is a century and more.
_LONGEST_SECONDS = TIMEOUT_MAX / 2


class _Wait:
    """How long a caller waits, and how much of that is left."""

    def __init__(self, timeout: float) -> None:
        self.seconds = checked_seconds(timeout, "timeout")
        self._end = time.monotonic() + min(self.seconds, _LONGEST_SECONDS)
        now_ms = time.time_ns() // 1_000_000
        self._begun_ms = now_ms
        self._end_ms = round(min(now_ms + self.seconds * 1000, LATEST_MS))

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def deadline_ms(self, context: ClientContext) -> int:
        """When nobody waits for it any longer, it need not be begun any more."""
        own = context.deadline_ms(self._begun_ms)
        return self._end_ms if own is None else min(own, self._end_ms)


class _ClientFace:
    """What both faces do: check a request, send it, wait for what comes of it."""

    def __init__(self, place: Any) -> None:
        self._registry: Registry = place.registry
        self._giving: Giving | LocalGiving = place.giving
        self._place = place

    def _give(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        version: int | None,
        wait: _Wait | None = None,
    ) -> Flow[str]:
        if not isinstance(context, ClientContext):
            raise ConfigurationError(f"give a ClientContext, not {context!r}")
        callee = self._registry.callee(name, version)
        self._giving.permit(callee, context)
        encoded = callee.signature.encode_payload(payload)
        deadline_ms = None if wait is None else wait.deadline_ms(context)
        options = SubmitOptions(context=context, deadline_ms=deadline_ms)
        (task_id,) = yield from self._giving.submit(callee, [encoded], options)
        return task_id

    def _answer(self, task_id: str, result_type: Any, wait: _Wait) -> Flow[Any]:
        """Wait for the result; a server that is lost meanwhile may come back."""

        def read(result: Any) -> Any:
            return decode_result(result, result_type)

        while True:
            try:
                return (yield from self._result(task_id, wait, read))
            except RedisUnavailable as error:
                if wait.left <= _PAUSE_SECONDS:
                    raise ResultTimeout(
                        f"task {task_id} did not end within {wait.seconds:g} s, as far"
                        f" as is known, for the server is out of reach: {error}"
                    ) from error
            yield Nap(_PAUSE_SECONDS)

    def _result(
        self, task_id: str, wait: _Wait, read: Callable[[Any], Any]
    ) -> Flow[Any]:
        try:
            return (yield from self._giving.result(task_id, wait.left, read))
        except ResultTimeout:
            # It knows only what was left of the wait, not what the caller gave.
            state = yield from self._giving.state(task_id)
            raise ResultTimeout(
                f"task {task_id} did not end within {wait.seconds:g} s: it is {state}"
            ) from None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._place!r}>"


class TaskClient(_ClientFace):
    """Calls tasks by name.

    Args:
        queue: where the requests go. Its registry says which tasks there are; give it
            `registry=` with contracts if the implementations live elsewhere.
    """

    def __init__(self, queue: TaskQueue | LocalPlace[LocalDriver]) -> None:
        super().__init__(queue)

    @classmethod
    def local(
        cls, registry: Registry, *, pool: Threads, policy: Policy | None = None
    ) -> TaskClient:
        """Return a client that runs tasks in threads of this process.

        Args:
            registry: the tasks, implemented.
            pool: a `workstealing.pool.Pool`, or any executor of threads.
            policy: which roles may call which tasks.
        """
        giving = LocalGiving(Admission(registry, policy), pool)
        return cls(LocalPlace(registry, giving, LocalDriver(giving)))

    def exec_blocking(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        result_type: type[R],
        timeout: float,
        version: int | None = None,
    ) -> R:
        """Call a task and wait for its result.

        It ends within `timeout` seconds, and what the connection itself may take for
        a reply. A task that was not begun by then is not begun any more. A server that
        is out of reach when the request is made raises at once; when it is lost
        afterwards, the wait goes on.

        Args:
            context: on whose behalf.
            name: of the task.
            payload: a dict, argument name to value; or an object of the payload's type.
            result_type: what the result is read as.
            timeout: seconds to wait.
            version: of the task; the newest that is known here unless given.

        Raises:
            UnknownTask: there is no such task.
            NotPermitted: this principal may not call it.
            PayloadInvalid: the payload does not match.
            TaskFailed: it raised, and is not tried again.
            TaskDead: it was given up.
            TaskCancelled: it was cancelled.
            ResultInvalid: the result is of another type.
            ResultTimeout: it did not end in time; says where it is.
            RedisUnavailable: the server is out of reach.
        """
        wait, run = _Wait(timeout), self._place.driver.run
        task_id = run(self._give(context, name, payload, version, wait))
        with self._received(context, task_id):
            result: R = run(self._answer(task_id, result_type, wait))
        return result

    def exec_async(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        result_type: type[R],
        version: int | None = None,
    ) -> TaskHandle[R]:
        """Call a task and return its handle; arguments as of `exec_blocking`."""
        run = self._place.driver.run
        task_id = run(self._give(context, name, payload, version))
        return TaskHandle(self._place, task_id, result_type)

    def _received(
        self, context: ClientContext, task_id: str
    ) -> AbstractContextManager[None]:
        if context.logging is None:
            return nullcontext()
        return following(self._place, task_id, context.logging)


class AsyncTaskClient(_ClientFace):
    """Calls tasks by name; the asyncio face of `TaskClient`."""

    def __init__(self, queue: AsyncTaskQueue | LocalPlace[AsyncLocalDriver]) -> None:
        super().__init__(queue)

    @classmethod
    def local(
        cls, registry: Registry, *, pool: Threads, policy: Policy | None = None
    ) -> AsyncTaskClient:
        """Return a client that runs tasks in threads of this process.

        Args:
            registry: the tasks, implemented.
            pool: a `workstealing.pool.Pool`, or any executor of threads.
            policy: which roles may call which tasks.
        """
        giving = LocalGiving(Admission(registry, policy), pool)
        return cls(LocalPlace(registry, giving, AsyncLocalDriver(giving)))

    async def exec_blocking(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        result_type: type[R],
        timeout: float,
        version: int | None = None,
    ) -> R:
        """Call a task and wait for its result; it blocks nothing but who awaits it.

        For arguments and errors see `TaskClient.exec_blocking`.
        """
        wait, run = _Wait(timeout), self._place.driver.run
        task_id = await run(self._give(context, name, payload, version, wait))
        async with self._received(context, task_id):
            result: R = await run(self._answer(task_id, result_type, wait))
        return result

    async def exec_async(
        self,
        context: ClientContext,
        name: str,
        payload: Any,
        result_type: type[R],
        version: int | None = None,
    ) -> AsyncTaskHandle[R]:
        """Call a task and return its handle; arguments as of `exec_blocking`."""
        run = self._place.driver.run
        task_id = await run(self._give(context, name, payload, version))
        return AsyncTaskHandle(self._place, task_id, result_type)

    def _received(
        self, context: ClientContext, task_id: str
    ) -> AbstractAsyncContextManager[None]:
        if context.logging is None:
            return nullcontext()
        return afollowing(self._place, task_id, context.logging)
