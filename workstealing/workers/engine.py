"""One worker, assembled: the loop, what it holds, its slots and its supervisor.

`Worker`, a pool of slots and a child process have the same engine. They differ in their
slots, and in what else they do every 50 ms or in an idle moment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from workstealing._checks import threads_are_greenlets
from workstealing._logs import flush_logs
from workstealing.chance import Chance
from workstealing.client.queue_internals import QueueInternals, internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import Clock
from workstealing.drivers.connect import dedicated
from workstealing.drivers.connection import is_plain
from workstealing.drivers.reconnecting import shut_down_sockets
from workstealing.errors import ConfigurationError
from workstealing.recruiting.recruiter import Recruiter
from workstealing.tasks.attempt import Attempt
from workstealing.tasks.carried_context import CarriedContext
from workstealing.tasks.hooked_runner import HookedRunner
from workstealing.tasks.observed_runner import ObservedHookedRunner, ObservedRunner
from workstealing.tasks.runner import NoThread, TaskRunner
from workstealing.workers.batching import Batching
from workstealing.workers.descriptor_guard import DescriptorGuard
from workstealing.workers.identity import Phase, UntilEmpty, identity_of
from workstealing.workers.in_flight import InFlight
from workstealing.workers.lease import Lease
from workstealing.workers.lifespan import Lifespan
from workstealing.workers.loop import WorkerLoop, rest_seconds
from workstealing.workers.minute_recorder import MinuteRecorder
from workstealing.workers.slots import (
    Slot,
    SlotClosed,
    SlotParts,
    Slots,
    tell_lease_lost,
)
from workstealing.workers.supervisor import Supervisor
from workstealing.workers.task_output import TaskOutput
from workstealing.workers.worker_stats import LoopStats

__all__ = ("WorkerEngine", "check_threads", "runner_of")

S = TypeVar("S", bound=Slots)


def _do_nothing(*_: object) -> None:
    pass


def check_threads() -> None:
    """Refuse to work where threads are greenlets.

    While a task computes, no greenlet can renew the lease or stop the task; nor can
    two event loops of asyncio run in one real thread.
    """
    if threads_are_greenlets():
        raise ConfigurationError(
            "gevent has replaced threads by greenlets in this process, in which neither"
            " a time limit nor a lease can be kept: submit tasks from here, and run"
            " them in a process without gevent, for instance by `workstealing worker`"
        )


class WorkerEngine(Generic[S]):
    """Everything that one worker consists of.

    Args:
        queue: whose tasks.
        name: of the worker.
        new_slots: makes the slots.
        batch: tasks that a slot takes at once, at most.
        until_empty: when to end without being asked to.
        chance: where randomness comes from.
        clock: where time comes from.
        incarnation: tells it from an earlier worker of this name; None: a new one.
        recruiter: whose jobs may run in a spare moment, before a rest.
        tick: is called every 50 ms by the supervisor.
        give_up: is told of a slot and an attempt that cannot be stopped.
        reraised: exceptions that are meant for the worker, not for the task.
        may_end: is told whether nothing is left, and returns whether to end then.
        new_in_flight: makes what holds its tasks.
        overlaps: an exchange is to be under way while quick tasks run, where the
            connection allows that.
    """

    def __init__(
        self,
        queue: TaskQueue,
        name: str,
        new_slots: Callable[[SlotParts], S],
        *,
        batch: int,
        until_empty: UntilEmpty,
        chance: Chance,
        clock: Clock,
        incarnation: str | None = None,
        recruiter: Recruiter | None = None,
        tick: Callable[[], object] = _do_nothing,
        give_up: Callable[[Slot, Attempt], object] = _do_nothing,
        reraised: tuple[type[BaseException], ...] = (),
        may_end: Callable[[bool], bool] = bool,
        new_in_flight: Callable[[Batching, Clock], InFlight] = InFlight,
        overlaps: bool = False,
    ) -> None:
        check_threads()
        internals, identity = internals_of(queue), identity_of(queue, name, incarnation)
        driver = internals.driver
        rest = rest_seconds(driver, has_side_work=recruiter is not None)
        self._own_driver = dedicated(driver)
        self._descriptors = DescriptorGuard(name)
        self._lifespan: Lifespan | None = None
        if queue.registry.uses_resources:
            self._lifespan = Lifespan(name, queue.registry.resources())
        self.lease = Lease(identity.lease, clock)
        overlaps = overlaps and self._own_driver.can_send_ahead
        self.in_flight = new_in_flight(Batching(batch, overlaps=overlaps), clock)
        self._observers = observers = internals.observers
        self.runner = runner_of(internals)(
            internals.admission,
            name,
            queue.name,
            chance,
            TaskOutput(driver, identity, clock),
            max_result=internals.settings.max_result,
            reraised=(SlotClosed, NoThread, *reraised),
            resources=None if self._lifespan is None else self._lifespan.given,
            time_ns=internals.time_ns,
        )
        self.slots = new_slots(
            SlotParts(
                name,
                self.runner,
                self.in_flight,
                driver,
                lambda: identity.keys.bell,
                rest,
                self.lease.renew_seconds,
                clock,
                self._lifespan,
            )
        )
        self._supervisor = Supervisor(
            name,
            self.slots.all,
            self.lease,
            lease_lost=partial(tell_lease_lost, self.slots),
            give_up=give_up,
            shut_down=partial(shut_down_sockets, driver.client),
            tick=tick,
            clock=clock,
        )
        self.loop = WorkerLoop(
            identity,
            self._own_driver,
            driver,
            self.in_flight,
            self.slots,
            self.lease,
            internals.schedules,
            idle=_do_nothing if recruiter is None else recruiter.enlist,
            is_supervised=self._supervisor.answers,
            check_descriptors=self._descriptors.check,
            until_empty=until_empty,
            may_end=may_end,
            rest=rest,
            may_repeat=not is_plain(driver.client),
            chance=chance,
            clock=clock,
            observers=observers,
            minutes=MinuteRecorder(
                lambda: identity.keys, self.runner.reports.ended, clock
            ),
        )

    @property
    def stats(self) -> LoopStats:
        """What the loop has counted."""
        return self.loop.stats

    def start(self) -> None:
        """Open resources, and start the threads beside the loop.

        `ResourceFailed` if a resource cannot be opened; then it must be closed.
        """
        if self._lifespan is not None:
            self._lifespan.open()
        self._descriptors.open()
        self._supervisor.start()
        self.slots.start(self.loop.heartbeat)

    def run(self) -> None:
        """Work until the end, in this thread; hand back what is left."""
        try:
            self.loop.run()
        except BaseException as error:
            # If two connections share a descriptor by now, each reads the other's
            # replies: that is what went wrong, and nothing more may be sent on them.
            self._descriptors.check(error)
            # What it holds need not wait for the lease to end.
            self.loop.leave()
            raise
        finally:
            self._own_driver.close()
            # Other workers have what still runs.
            tell_lease_lost(self.slots)

    def enter(self, phase: Phase) -> None:
        """Go on to a later phase, in which no task begins; from any thread."""
        self.loop.enter(phase)

    def close_resources(self) -> None:
        """Close what can be closed while a task runs, in a process that ends."""
        if self._lifespan is not None:
            self._lifespan.close_all_at_once()

    def close(self) -> None:
        """End the threads beside the loop, and close resources."""
        self.slots.stop_listening()
        self._supervisor.stop()
        self.slots.close()
        if self._lifespan is not None:
            self._lifespan.close()
        self._descriptors.close()
        self.flush()

    def flush(self) -> None:
        """Wait a moment for logs and observers, before the process may end."""
        flush_logs()
        if self._observers is not None:
            self._observers.flush()


def runner_of(internals: QueueInternals[Any]) -> Callable[..., TaskRunner]:
    """Return what makes the runner: a queue pays only for what it has."""
    observers, middleware = internals.observers, internals.middleware
    carried = internals.carried
    if not middleware.all and carried is None:
        if observers is None:
            return TaskRunner
        return partial(ObservedRunner, observers)
    carried = carried or CarriedContext(())
    if observers is None:
        return partial(HookedRunner, middleware, carried)
    return partial(ObservedHookedRunner, observers, middleware, carried)
