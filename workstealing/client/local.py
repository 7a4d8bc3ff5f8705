"""The other place to run tasks: threads of this process.

It stands where a queue stands, and does the same with a request: writes its envelope,
checks it as a worker would, runs it, writes its outcome and reads that. So what works
here works there; only nothing outlives the process, and nothing is shared. The last
10,000 outcomes are kept.

A task whose time is over, or that is cancelled while it runs, is asked to stop by its
context. If it does not heed that, a caller is told all the same, and its thread stays
busy until it ends.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor as Threads
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from itertools import islice
from threading import TIMEOUT_MAX, Lock
from typing import Any, Generic, TypeVar, cast

import msgspec

from workstealing.chance import SYSTEM_CHANCE
from workstealing.client.giving import SubmitOptions, written
from workstealing.client.local_job import LocalJob
from workstealing.errors import ResultTimeout, TaskNotFound
from workstealing.queue.call import Flow, Hear, Step
from workstealing.queue.producing import Cancelled
from workstealing.tasks.admission import Admission
from workstealing.tasks.attempt import Taken
from workstealing.tasks.calling import Callee, Channel, ClientContext
from workstealing.tasks.envelope import Letterhead
from workstealing.tasks.executing import Executor
from workstealing.tasks.logging import LogRecord
from workstealing.tasks.naming import new_ids
from workstealing.tasks.outcome import State, TaskOutcome, TaskState
from workstealing.tasks.registry import Registry

__all__ = ("AsyncLocalDriver", "LocalDriver", "LocalGiving", "LocalPlace")

D = TypeVar("D")
T = TypeVar("T")

_KEPT = 10_000
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class LocalPlace(Generic[D]):
    """What a client needs of a queue, without a queue."""

    registry: Registry
    giving: LocalGiving
    driver: D

    def __repr__(self) -> str:
        return "<LocalPlace>"


class LocalGiving:
    """Runs, looks, waits and cancels, as flows; the local counterpart of `Giving`."""

    def __init__(self, admission: Admission, threads: Threads) -> None:
        self._admission = admission
        self._threads = threads
        self._executor = Executor(admission, "local", "local", SYSTEM_CHANCE)
        self._jobs: OrderedDict[str, LocalJob] = OrderedDict()
        self._lock = Lock()

    def permit(self, callee: Callee, context: ClientContext) -> None:
        """Refuse what is not known, and who may not call it, before the payload."""
        # A contract can be called, but what is run here must be implemented here.
        self._admission.registry.find(callee.name, callee.version)
        self._admission.permit(callee, context.principal, context.roles)

    def submit(
        self, callee: Callee, payloads: Sequence[bytes], options: SubmitOptions
    ) -> Flow[list[str]]:
        """Give tasks to the threads; return their ids."""
        yield from ()
        names = new_ids(len(payloads))
        around = Letterhead.of(written(callee, options)).around
        for name, payload in zip(names, payloads, strict=True):
            task = Taken(name, "local", 1, around(payload))
            job = LocalJob(task, self._executor, self._threads)
            job.start()
            self._keep(name, job)
        return names

    def state(self, task_id: str) -> Flow[TaskState]:
        """Tell where a task is."""
        yield from ()
        job = self._jobs.get(task_id)
        return TaskState(State.UNKNOWN) if job is None else job.state()

    def result(
        self, task_id: str, timeout: float | None, read: Callable[[msgspec.Raw], Any]
    ) -> Flow[Any]:
        """Wait for a task to end."""
        self._found(task_id)
        seconds = TIMEOUT_MAX if timeout is None else min(timeout, TIMEOUT_MAX)
        told = yield Hear("local", task_id, seconds)
        if told is None:
            state, waited = self._found(task_id).state(), round(seconds, 3)
            raise ResultTimeout(
                f"task {task_id} did not end within {waited:g} s: it is {state}"
            )
        outcome = TaskOutcome.read(told)
        problem = outcome.problem(task_id)
        if problem is not None:
            raise problem
        return read(outcome.result)

    def logs(self, task_id: str) -> Flow[list[LogRecord]]:
        """Return what the task logged and printed so far."""
        yield from ()
        return list(self._found(task_id).records)

    def follow(
        self,
        task_id: str,
        channel: Channel,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Flow[None]:
        """Pass on what a task tells until it has ended, or is not wanted any more."""
        job, seen = self._found(task_id), 0
        while True:
            is_last = job.ended.done() or not is_wanted()
            for record in job.records[seen:]:
                channel.take(record)
                seen += 1
            if is_last:
                return
            yield Hear("local", task_id, _LOOK_SECONDS)

    def cancel(self, task_id: str) -> Flow[Cancelled]:
        """Cancel a task."""
        yield from ()
        job = self._jobs.get(task_id)
        return "unknown" if job is None else job.cancel()

    def ended(self, task_id: str) -> Future[bytes]:
        """Return what will have the outcome of a task."""
        return self._found(task_id).ended

    def _found(self, task_id: str) -> LocalJob:
        try:
            return self._jobs[task_id]
        except KeyError:
            raise TaskNotFound(
                f"there is no task {task_id}, or its outcome has expired"
            ) from None

    def _keep(self, name: str, job: LocalJob) -> None:
        with self._lock:
            self._jobs[name] = job
            surplus = len(self._jobs) - _KEPT
            if surplus > 0:
                ended = (old for old, job in self._jobs.items() if job.ended.done())
                for old in list(islice(ended, surplus)):
                    del self._jobs[old]


class LocalDriver:
    """Performs the steps of local flows, in the calling thread."""

    def __init__(self, giving: LocalGiving) -> None:
        self._giving = giving

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
        assert isinstance(step, Hear)
        try:
            return self._giving.ended(step.task_id).result(step.seconds)
        except FutureTimeout:
            return None


class AsyncLocalDriver:
    """Performs the steps of local flows; the asyncio face of `LocalDriver`."""

    def __init__(self, giving: LocalGiving) -> None:
        self._giving = giving

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
        assert isinstance(step, Hear)
        ended = self._giving.ended(step.task_id)
        await asyncio.wait([asyncio.wrap_future(ended)], timeout=step.seconds)
        return ended.result() if ended.done() else None
