"""Runs the tasks of a `TaskClient` in threads of this process, without Redis.

It takes the place of a queue and treats a request as a queue and a worker would:
writes its envelope, checks it, runs it, writes its outcome and reads that. So what
works here works with Redis; but tasks end with the process, and no other process sees
them. The last 10,000 outcomes are kept.

A task that runs into its timeout is interrupted; one that is cancelled while it runs is
asked to stop through its context. If it goes on, it keeps its thread, and has no
outcome, until it ends; callers wait no longer than their own timeout.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor as Threads
from concurrent.futures import TimeoutError as FutureTimeout
from itertools import islice
from threading import TIMEOUT_MAX, Lock
from typing import Any, Generic, TypeVar, cast

import msgspec

from workstealing.chance import SYSTEM_CHANCE
from workstealing.client.event_watch import TaskSnapshot
from workstealing.client.local_task import LocalTask
from workstealing.client.queue_submissions import check_payloads
from workstealing.errors import ResultTimeout, TaskNotFound
from workstealing.queue.producer_calls import Cancelled
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import AwaitOutcome, Flow, Step
from workstealing.tasks.admission import Admission
from workstealing.tasks.attempt import Delivery
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.envelope import EnvelopeTemplate
from workstealing.tasks.outcome import State, TaskOutcome, TaskState
from workstealing.tasks.output_capture import LogRecord
from workstealing.tasks.runner import AttemptOutput, TaskRunner
from workstealing.tasks.submission import (
    LogSink,
    Submission,
    SubmitOptions,
    envelope_without_payload,
    new_ids,
)

__all__ = ("AsyncLocalDriver", "LocalDriver", "LocalLog", "LocalQueue", "LocalTasks")

D = TypeVar("D")
T = TypeVar("T")

_KEPT = 10_000
_LOOK_SECONDS = 0.05


class LocalQueue(Generic[D]):
    """Stands in for `QueueInternals`: runs tasks in this process, as flows.

    Args:
        admission: which tasks are implemented here, and who may call them.
        settings: how large a payload and a result may be.
        threads: the executor that runs the tasks.
        tasks: keeps the tasks.
        driver: performs the flows, on the same tasks.
    """

    def __init__(
        self,
        admission: Admission,
        settings: QueueSettings,
        threads: Threads,
        tasks: LocalTasks,
        driver: D,
    ) -> None:
        self.admission = admission
        self.driver = driver
        self.log = LocalLog(tasks)
        self.time_ns = time.time_ns
        self._settings = settings
        self._threads = threads
        self._tasks = tasks

    def submit(
        self, task: TaskInterface, payloads: Sequence[bytes], options: SubmitOptions
    ) -> Flow[Submission]:
        """Give tasks to the threads."""
        yield from ()
        check_payloads(task.name, payloads, self._settings.max_payload)
        names = new_ids(len(payloads))
        envelope = envelope_without_payload(task, options, time_ns=self.time_ns)
        around = EnvelopeTemplate.of(envelope).around
        for name, payload in zip(names, payloads, strict=True):
            delivery = Delivery(name, "local", 1, around(payload))
            local = LocalTask(delivery, self._runner, self._threads)
            local.start()
            self._tasks.keep(name, local)
        return Submission(names)

    def state(self, task_id: str) -> Flow[TaskState]:
        """Return where a task is."""
        yield from ()
        task = self._tasks.get(task_id)
        return TaskState(State.UNKNOWN) if task is None else task.state()

    def result(
        self,
        task_id: str,
        timeout: float | None,
        read: Callable[[msgspec.Raw], Any],
        whole: float | None = None,
    ) -> Flow[Any]:
        """Wait for a task to end; a timeout error names *whole* as the time waited."""
        self._tasks.found(task_id)
        seconds = TIMEOUT_MAX if timeout is None else min(timeout, TIMEOUT_MAX)
        found = yield AwaitOutcome("local", task_id, seconds)
        if found is None:
            state = self._tasks.found(task_id).state()
            waited = whole or round(seconds, 3)
            raise ResultTimeout(
                f"task {task_id} did not end within {waited:g} s: it is {state}"
            )
        return TaskOutcome.read(found).value(task_id, read)

    def snapshot(self, task_id: str, envelope: bytes) -> Flow[TaskSnapshot]:
        """Return the state and progress of a task."""
        state = yield from self.state(task_id)
        task = self._tasks.get(task_id)
        return TaskSnapshot(state, None if task is None else task.shown, envelope)

    def wait_for_end(self, task_id: str, seconds: float) -> Flow[None]:
        """Wait until the task ends, for so many seconds at most."""
        yield AwaitOutcome("local", task_id, seconds)

    def cancel(self, task_id: str) -> Flow[Cancelled]:
        """Cancel a task."""
        yield from ()
        task = self._tasks.get(task_id)
        return "unknown" if task is None else task.cancel()

    def _runner(self, output: AttemptOutput) -> TaskRunner:
        return TaskRunner(
            self.admission,
            "local",
            "local",
            SYSTEM_CHANCE,
            output,
            max_result=self._settings.max_result,
        )

    def __repr__(self) -> str:
        return "<LocalQueue>"


class LocalLog:
    """The logs of the tasks that run in this process."""

    def __init__(self, tasks: LocalTasks) -> None:
        self._tasks = tasks

    def read(self, task_id: str) -> Flow[list[LogRecord]]:
        """Return what the task logged and printed so far."""
        yield from ()
        return list(self._tasks.found(task_id).records)

    def page(self, task_id: str, after: str) -> Flow[tuple[list[LogRecord], str]]:
        """Read the records after a place, and the next place."""
        yield from ()
        seen = int(after.partition("-")[0])
        records = self._tasks.found(task_id).records[seen:]
        return records, f"{seen + len(records)}-0"

    def follow(
        self,
        task_id: str,
        sink: LogSink,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Flow[None]:
        """Pass on what a task logs until it ends, or *is_wanted* returns False."""
        task, seen = self._tasks.found(task_id), 0
        while True:
            is_last = task.ended.done() or not is_wanted()
            for record in task.records[seen:]:
                sink.take(record)
                seen += 1
            if is_last:
                return
            yield AwaitOutcome("local", task_id, _LOOK_SECONDS)


class LocalTasks:
    """The tasks of this process, by id; only the newest of those that have ended."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, LocalTask] = OrderedDict()
        self._lock = Lock()

    def get(self, task_id: str) -> LocalTask | None:
        """Return a task, if it is known."""
        return self._tasks.get(task_id)

    def found(self, task_id: str) -> LocalTask:
        """Return a task; `TaskNotFound` if it is not known."""
        try:
            return self._tasks[task_id]
        except KeyError:
            raise TaskNotFound.of(task_id) from None

    def keep(self, task_id: str, task: LocalTask) -> None:
        """Keep a task; forget those that ended long ago."""
        with self._lock:
            self._tasks[task_id] = task
            surplus = len(self._tasks) - _KEPT
            if surplus > 0:
                ended = (old for old, task in self._tasks.items() if task.ended.done())
                for old in list(islice(ended, surplus)):
                    del self._tasks[old]


class LocalDriver:
    """Performs the steps of local flows, in the calling thread."""

    def __init__(self, tasks: LocalTasks) -> None:
        self._tasks = tasks

    def run(self, flow: Flow[T]) -> T:
        """Perform each step of a flow."""
        try:
            step = next(flow)
            while True:
                step = flow.send(self._perform(step))
        except StopIteration as end:
            return cast("T", end.value)
        finally:
            flow.close()

    def _perform(self, step: Step) -> bytes | None:
        assert isinstance(step, AwaitOutcome)
        try:
            return self._tasks.found(step.task_id).ended.result(step.seconds)
        except FutureTimeout:
            return None


class AsyncLocalDriver:
    """Performs the steps of local flows; the asyncio twin of `LocalDriver`."""

    def __init__(self, tasks: LocalTasks) -> None:
        self._tasks = tasks

    async def run(self, flow: Flow[T]) -> T:
        """Perform each step of a flow."""
        try:
            step = next(flow)
            while True:
                step = flow.send(await self._perform(step))
        except StopIteration as end:
            return cast("T", end.value)
        finally:
            flow.close()

    async def _perform(self, step: Step) -> bytes | None:
        assert isinstance(step, AwaitOutcome)
        ended = self._tasks.found(step.task_id).ended
        await asyncio.wait([asyncio.wrap_future(ended)], timeout=step.seconds)
        return ended.result() if ended.done() else None
