"""The inside of a queue: its keys, settings and driver, and its operations as flows.

The sync and the asyncio queue share it; their drivers perform the steps of the flows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload
from weakref import WeakSet

import msgspec

from workstealing.client.event_watch import TaskSnapshot
from workstealing.client.queue_controls import QueueControls
from workstealing.client.queue_options import QueueOptions
from workstealing.client.queue_outcomes import QueueOutcomes
from workstealing.client.queue_schedules import QueueSchedules
from workstealing.client.queue_submissions import QueueSubmissions
from workstealing.client.shards import Shards
from workstealing.client.task_log import QueueLog
from workstealing.clock import Clock, time_of_day
from workstealing.drivers.address import target_of
from workstealing.errors import ConfigurationError
from workstealing.queue.keys import QueueKeys
from workstealing.queue.producer_calls import Cancelled
from workstealing.queue.steps import Flow
from workstealing.tasks.carried_context import CarriedContext
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.outcome import TaskState
from workstealing.tasks.submission import Submission, SubmitOptions
from workstealing.telemetry.task_observers import task_observers

if TYPE_CHECKING:
    from workstealing.client.async_task_queue import AsyncTaskQueue
    from workstealing.client.task_queue import TaskQueue
    from workstealing.drivers.async_driver import AsyncDriver
    from workstealing.drivers.sync_driver import Driver

__all__ = ("QueueInternals", "Source", "internals_of")

D_co = TypeVar("D_co", covariant=True)


class Source(Protocol[D_co]):
    """Where a queue gets its driver from."""

    redis: Any

    @property
    def driver(self) -> D_co:
        """Return the driver; connect if there is none."""

    def close(self) -> Any:
        """Release its connections; awaited under asyncio."""


class QueueInternals(Generic[D_co]):
    """The inside of a queue; `internals_of(queue)` returns it."""

    def __init__(self, name: str, options: QueueOptions, source: Source[D_co]) -> None:
        self.source = source
        """Makes the driver, and keeps the client or URL that the user gave."""
        self.options = options
        """The options that the user gave; `AsyncTaskQueue.sync()` passes them on."""
        self.settings = options.settings()
        self.shards = Shards(
            name, options.run, options.shards, self.settings, options.clock
        )
        self.keys = self.shards.all[0]
        """The keys of the first shard, which is mostly the only one."""
        self.admission = options.admission(name)
        self.middleware = options.middleware
        self.carried = CarriedContext(options.carry) if options.carry else None
        self.log = QueueLog(self.keys_of)
        self.full_name = f"{name}/{options.run}"
        self.schedules = QueueSchedules(
            self.full_name,
            self.keys,
            self.settings,
            self.admission.signer,
            options.release,
        )
        """Shared with the sync twin of an asyncio queue."""
        self.clock = options.clock
        self.time_ns = time_of_day(options.clock)
        """Tells the time of day, also to the workers of the queue."""
        self.twins: WeakSet[QueueInternals[Any]] = WeakSet()
        """The internals of the sync queues that an asyncio queue has made."""
        self.observers = task_observers(name, options.observers, options.clock)
        """The observers of this queue; None if there are none."""
        self.submissions = QueueSubmissions(self)
        self.outcomes = QueueOutcomes(self)
        self.controls = QueueControls(self)

    def become_twin_of(self, other: QueueInternals[Any]) -> None:
        """Belong to the sync queue that an asyncio queue, the *other*, has made."""
        self.schedules = other.schedules
        self.clock, self.time_ns = other.clock, other.time_ns
        other.twins.add(self)

    @contextmanager
    def moved_to(self, source: Source[Any], clock: Clock) -> Iterator[None]:
        """Use another server and clock while the context lasts."""
        before = self.source, self.clock, self.time_ns, self.shards
        self.source, self.clock = source, clock
        self.time_ns = time_of_day(clock)
        self.shards = self.shards.anew(clock)
        try:
            yield
        finally:
            self.source, self.clock, self.time_ns, self.shards = before

    def keys_of(self, task_id: str) -> Flow[QueueKeys]:
        """Return the keys of the shard that has a task."""
        # An id that was drawn for a shard has a dot, even if this process does not know
        # yet that there are shards.
        if not self.shards.are_several and "." not in task_id:
            return self.keys
        return (yield from self.shards.find(task_id))

    @property
    def driver(self) -> D_co:
        """The driver that performs calls and flows; it connects when first used."""
        return self.source.driver

    @property
    def target(self) -> str:
        """The name of the server; jobs on one server share a breaker."""
        driver: Any = self.driver
        return target_of(driver.client)

    # Tasks, handles and clients use these methods, here or of a `LocalQueue`.

    def submit(
        self,
        task: TaskInterface,
        payloads: Sequence[bytes],
        options: SubmitOptions,
        ids: Sequence[str] | None = None,
    ) -> Flow[Submission]:
        """Put tasks into the queue, a round trip per thousand, or per 4 MiB."""
        return self.submissions.submit(task, payloads, options, ids)

    def state(self, task_id: str) -> Flow[TaskState]:
        """Return where a task is."""
        return self.outcomes.state(task_id)

    def result(
        self,
        task_id: str,
        timeout: float | None,
        read: Callable[[msgspec.Raw], Any],
        whole: float | None = None,
    ) -> Flow[Any]:
        """Wait for a task to end; a timeout error names *whole* as the time waited."""
        return self.outcomes.result(task_id, timeout, read, whole)

    def snapshot(self, task_id: str, envelope: bytes) -> Flow[TaskSnapshot]:
        """Return the state and progress of a task, even if it has just ended."""
        return self.outcomes.snapshot(task_id, envelope)

    def wait_for_end(self, task_id: str, seconds: float) -> Flow[None]:
        """Wait until the task ends, for so many seconds at most."""
        return self.outcomes.wait_for_end(task_id, seconds)

    def cancel(self, task_id: str) -> Flow[Cancelled]:
        """Cancel a task, even if it moves from worker to worker meanwhile."""
        return self.outcomes.cancel(task_id)


@overload
def internals_of(queue: TaskQueue) -> QueueInternals[Driver]: ...
@overload
def internals_of(queue: AsyncTaskQueue) -> QueueInternals[AsyncDriver]: ...
def internals_of(queue: TaskQueue | AsyncTaskQueue) -> QueueInternals[Any]:
    """Return the internals of a queue, for code of this package."""
    try:
        return queue._internals  # noqa: SLF001 - hidden from users, not from us
    except AttributeError:
        raise ConfigurationError(
            f"expected a TaskQueue or an AsyncTaskQueue, not {queue!r}"
        ) from None
