"""The name under which a process runs brief tasks, and its reports that are not sent.

A name belongs to one process and one server. If a task ignores the end of its slice,
the process leaves the name to that task and takes another one: the lease of the name is
all that keeps workers from running the task, too.
"""

from __future__ import annotations

from typing import TypeVar

from workstealing.chance import SYSTEM_CHANCE
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import Clock
from workstealing.drivers.sync_driver import Driver, DriverSource
from workstealing.errors import RedisUnavailable
from workstealing.queue.steps import Call, RedisCommand
from workstealing.tasks.attempt import Attempt, Report
from workstealing.tasks.runner import TaskRunner
from workstealing.workers.engine import runner_of
from workstealing.workers.identity import default_pool, identity_of
from workstealing.workers.minute_recorder import MinuteRecorder
from workstealing.workers.task_output import TaskOutput

__all__ = ("SpareAlias",)

T = TypeVar("T")

# From one look at how long tasks waited to the next, as a worker has it.
_SAMPLE_SECONDS = 0.25


class SpareAlias:
    """A name that a process has at the queue, and the reports it has not sent yet.

    It is in one of four states, and each answered exchange changes the state:

    * *at rest*: it has no tasks, and `unsent` is empty.
    * *in hand*: the queue gave it tasks. `unsent` has a report on each. Until the task
      has ended, that report says that it goes back; so however a slice ends, it is
      enough to send the reports.
    * *overran*: it has tasks in hand, and one of them is not for spare moments.
    * *runs on*: that task still runs, without a report. The exchange leaves the name to
      it, and the process takes another name.

    In each state it may be *unsure*, after an exchange without an answer. Then the
    queue may have given it tasks that it never heard of. They go back with the next
    exchange under the same name.

    Args:
        queue: whose tasks it takes.
        source: of the driver that writes what tasks log and save.
        reraised: exceptions that are meant for the host, not for the task.
        clock: how long things take.
    """

    def __init__(
        self,
        queue: TaskQueue,
        source: DriverSource,
        reraised: tuple[type[BaseException], ...],
        clock: Clock,
    ) -> None:
        parts = internals_of(queue)
        self.source = source
        self.name = f"brief-{default_pool()}.0"
        self.identity = identity = identity_of(queue, self.name)
        self.output = _SideOutput(source.driver)
        self.runner: TaskRunner = runner_of(parts)(
            parts.admission,
            self.name,
            queue.name,
            SYSTEM_CHANCE,
            _SpareOutput(self.output, identity, clock),
            max_result=parts.settings.max_result,
            reraised=reraised,
            time_ns=parts.time_ns,
        )
        self.minutes = MinuteRecorder(
            lambda: identity.keys,
            self.runner.reports.ended,
            clock,
            sample_every=_SAMPLE_SECONDS,
        )
        self.unsent: dict[str, Report] = {}
        self.is_unsure = False
        self.overran = ""
        self.runs_on = False
        self.victim = ""
        """A worker that has many tasks, as the last answer said."""

    @property
    def owes(self) -> bool:
        """Whether it has reports to send, or may have tasks that it never heard of."""
        return bool(self.unsent) or self.is_unsure


class _SpareOutput(TaskOutput):
    """The output of brief tasks. It refuses those that must not be run twice."""

    def may_begin(self, attempt: Attempt) -> bool:  # noqa: ARG002
        """Refuse a task that must not be run twice: a slice may have to hand it back.

        No task of this library is brief as well, but the producer may be another
        program, or another release.
        """
        return False


class _SideOutput:
    """Passes on what tasks log and save, until Redis has failed once in a slice.

    A task that logs ten lines must not wait ten times for a server that hangs.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.has_failed = False

    def call(self, call: Call[T] | RedisCommand[T]) -> T:
        """Perform a call and return its answer."""
        if self.has_failed:
            raise RedisUnavailable("Redis did not answer a moment ago")
        try:
            return self._driver.call(call)
        except RedisUnavailable:
            self.has_failed = True
            raise
