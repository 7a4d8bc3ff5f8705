"""Queues without a server, for tests: the same scripts, the same worker, no waiting.

`MemoryQueue` is a `TaskQueue` of its own. `in_memory` takes the queues that a program
has, whatever URL they were given, into memory and back. Both have the same controls:
run what waits, move the time, see what was submitted, let workers crash and steal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Any, Literal

from workstealing._checks import checked_seconds, checked_time, checked_whole
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.connect import async_driver_source, driver_source
from workstealing.errors import ConfigurationError
from workstealing.testing.draining import Disturbance, MemoryWorkers, Ran, Until
from workstealing.testing.memory_server import MemoryServer
from workstealing.testing.submitted_tasks import (
    AnyTask,
    SubmittedTask,
    TaskPattern,
    moment_of,
    not_found,
    read_submitted,
    unexpected,
)

__all__ = ("Memory", "MemoryQueue", "in_memory")

_MOST = 10_000


class Memory:
    """The controls of one or more queues that are in memory."""

    _server: MemoryServer
    _workers: MemoryWorkers

    @property
    def url(self) -> str:
        """The URL of the server, for whatever takes one in this process."""
        return self._server.url

    @property
    def now(self) -> datetime:
        """The time here, in UTC: it stands still until it is moved."""
        return moment_of(self._server.clock.time_ns())

    @property
    def submitted(self) -> list[SubmittedTask]:
        """All tasks that were ever submitted, in order, also those that have ended.

        It includes those of schedules and those that other tasks submitted.
        """
        queues = {
            keys.task: one
            for one in self._workers.queues
            for keys in internals_of(one).shards.all
        }
        return [
            read_submitted(one, queues[one.key].name, queues[one.key].registry)
            for one in tuple(self._server.written)
            if one.key in queues
        ]

    def drain(
        self, *, until: Until = "now", raises: bool = False, most: int = _MOST
    ) -> list[Ran]:
        """Run all tasks that can run now, and those that they submit, in this thread.

        Args:
            until: "all" also moves the time on to whatever is due later: retries,
                delays, rates, leases of workers that died. It never moves the time for
                a schedule alone. Outcomes may have expired by then: look at what is
                returned.
            raises: raise the error of the first task that failed for good.
            most: how many attempts are allowed; more raise a `ConfigurationError`.

        Returns:
            An entry for each attempt, in order.
        """
        if until not in ("now", "all"):
            raise ConfigurationError(f'until must be "now" or "all", got {until!r}')
        _refuse_event_loop()
        ran = self._workers.run(until, checked_whole(most, "most", 1))
        if raises:
            for one in ran:
                if one.outcome in ("failed", "dead") and one.error is not None:
                    raise one.error
        return ran

    async def drain_async(
        self, *, until: Until = "now", raises: bool = False, most: int = _MOST
    ) -> list[Ran]:
        """Do what `drain` does, in a thread; for tests in an event loop."""
        return await asyncio.to_thread(
            self.drain, until=until, raises=raises, most=most
        )

    def advance(self, by: float | timedelta) -> None:
        """Move the time on; what is due by then runs in the next `drain()`."""
        seconds = checked_seconds(by, "by", zero=True)
        self._workers.move_to(self._server.clock.time_ns() + round(seconds * 1e9))

    def travel_to(self, moment: datetime) -> None:
        """Move the time to a moment, as `advance` does.

        It moves back only while nothing has been submitted, as if it had begun there.
        """
        time_ns = _time_ns(moment, "moment")
        if time_ns < self._server.clock.time_ns():
            if self._server.written:
                raise ConfigurationError(
                    f"{moment} is before {self.now}, and tasks were submitted: travel"
                    " back first, or clear()"
                )
            self._server.clear()
        self._workers.move_to(time_ns)

    def assert_submitted(
        self, task: AnyTask, *args: Any, **kwargs: Any
    ) -> SubmittedTask:
        """Fail unless a task was submitted, with these arguments if any are given.

        Arguments that are not given may be anything. Returns the first that matches.
        """
        __tracebackhide__ = True
        pattern, submitted = TaskPattern.of(task, args, kwargs), self.submitted
        for one in submitted:
            if pattern.matches(one):
                return one
        raise AssertionError(not_found(pattern, submitted))

    def assert_not_submitted(self, task: AnyTask, *args: Any, **kwargs: Any) -> None:
        """Fail if a task was submitted, with these arguments if any are given."""
        __tracebackhide__ = True
        pattern = TaskPattern.of(task, args, kwargs)
        found = [one for one in self.submitted if pattern.matches(one)]
        if found:
            raise AssertionError(unexpected(pattern, found))

    def crash(
        self, task: AnyTask | None = None, *, at: Literal["begin", "end"] = "end"
    ) -> None:
        """Let the worker of the next task die, so that nobody learns what became of it.

        Its lease has to end before another worker takes the task over: `advance()` by
        the lease, or `drain(until="all")`.

        Args:
            task: whose worker dies; by default, that of the next task, whichever it is.
            at: "end" is when the function has returned or raised, "begin" before it is
                called.
        """
        if at not in ("begin", "end"):
            raise ConfigurationError(f'at must be "begin" or "end", got {at!r}')
        self._workers.disturbances.append(Disturbance("crash", _name_of(task), at))

    def steal(self, task: AnyTask | None = None) -> None:
        """Let a second worker take what the first has, while its next task runs.

        Args:
            task: which task must run then; by default the next, whichever it is.
        """
        self._workers.disturbances.append(Disturbance("steal", _name_of(task)))

    def clear(self) -> None:
        """Forget all tasks, outcomes, schedules and plans; the time stays."""
        self._server.clear()
        self._workers.disturbances.clear()

    def _begin(self, now: datetime | None) -> None:
        self._server = MemoryServer()
        self._workers = MemoryWorkers(self._server)
        if now is not None:
            self._server.clock.move_to(_time_ns(now, "now"))


class MemoryQueue(Memory, TaskQueue):
    """A `TaskQueue` without a server, for a test.

    Args:
        name: the name of the queue.
        now: the time at the start, with a time zone; by default that of the machine.
        options: all that `TaskQueue` takes, except `redis` and `clock`.
    """

    def __init__(
        self, name: str = "memory", *, now: datetime | None = None, **options: Any
    ) -> None:
        for own in options.keys() & {"redis", "clock"}:
            raise ConfigurationError(
                f"a MemoryQueue has a server and a clock of its own: leave out {own}=,"
                " or take a TaskQueue"
            )
        self._begin(now)
        TaskQueue.__init__(
            self, name, self._server.url, clock=self._server.clock, **options
        )
        self._workers.queues.append(self)

    def close(self) -> None:
        """Forget everything, and refuse all later calls."""
        TaskQueue.close(self)
        self._server.close()


@contextmanager
def in_memory(
    *queues: TaskQueue | AsyncTaskQueue, now: datetime | None = None
) -> Iterator[Memory]:
    """Take queues into memory and back, with the tasks and handles that they have.

    They share one server and one time. The URLs and clients that they were given are
    not used meanwhile, even if they were in use before.

    Args:
        queues: which ones.
        now: the time at the start, with a time zone; by default that of the machine.
    """
    if not queues:
        raise ConfigurationError("in_memory() takes queues, and was given none")
    memory = _MovedQueues(now)
    with ExitStack() as stack:
        stack.callback(memory.close)
        for queue in queues:
            stack.enter_context(memory.taking(queue))
        yield memory


class _MovedQueues(Memory):
    def __init__(self, now: datetime | None) -> None:
        self._begin(now)

    @contextmanager
    def taking(self, queue: TaskQueue | AsyncTaskQueue) -> Iterator[None]:
        url, clock = self._server.url, self._server.clock
        with ExitStack() as stack:
            if isinstance(queue, TaskQueue):
                moved, twin = driver_source(url, "tasks"), queue
                stack.callback(moved.close)
                stack.enter_context(internals_of(queue).moved_to(moved, clock))
            elif isinstance(queue, AsyncTaskQueue):
                own = internals_of(queue)
                # Event loops close their clients; those of ended tests are refused.
                others = async_driver_source(url, "tasks")
                stack.enter_context(own.moved_to(others, clock))
                for known in tuple(own.twins):
                    source = driver_source(url, "tasks")
                    stack.callback(source.close)
                    stack.enter_context(known.moved_to(source, clock))
                twin = queue.sync()
                stack.callback(twin.close)
            else:
                raise ConfigurationError(
                    "in_memory() takes TaskQueue and AsyncTaskQueue, not"
                    f" {type(queue).__name__}"
                )
            self._workers.queues.append(twin)
            yield

    def close(self) -> None:
        self._server.close()


def _time_ns(moment: datetime, what: str) -> int:
    # Whole milliseconds, as scripts count.
    return round(checked_time(moment, what).timestamp() * 1000) * 1_000_000


def _name_of(task: AnyTask | None) -> str | None:
    return task if task is None or isinstance(task, str) else task.name


def _refuse_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigurationError(
        "drain() cannot run in the thread of an event loop, because tasks may need an"
        " event loop of their own: await drain_async() instead"
    )
