"""How a worker parts with tasks that it holds and does not run.

A task behind a long one goes back into the worker's own deque, where thieves reach it;
one that this process does not know goes to a worker that does, or is parked; and a
worker that takes no more tasks hands back all that it has not begun. The parent of a
child process that died hands back what it held.
"""

from __future__ import annotations

from collections.abc import Sequence

from workstealing._logs import BackgroundLogger
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import RedisError
from workstealing.queue import worker_calls
from workstealing.queue.keys import QueueKeys
from workstealing.tasks.attempt import Delivery, Unroutable
from workstealing.telemetry.task_events import TaskParked
from workstealing.telemetry.task_observers import TaskObservers
from workstealing.workers.identity import WorkerIdentity, identity_of
from workstealing.workers.in_flight import InFlight
from workstealing.workers.upkeep import tell_given_up, tell_rescued

__all__ = ("HandingBack", "hand_back_all", "hand_back_for")

logger = BackgroundLogger(__name__)


class HandingBack:
    """Gives away tasks of one worker.

    Args:
        identity: which worker.
        in_flight: what it holds.
        observers: are told of parked tasks, if there are any.
    """

    def __init__(
        self,
        identity: WorkerIdentity,
        in_flight: InFlight,
        observers: TaskObservers | None,
    ) -> None:
        self._identity = identity
        self._in_flight = in_flight
        self._observers = observers

    def all_waiting(self, driver: Driver, *, final: bool) -> None:
        """Hand back what is not begun; if *final*, what runs, too, and leave."""
        identity = self._identity
        self.release(driver, self._in_flight.release_all())
        hand_back_all(
            driver,
            identity.keys,
            identity.name,
            identity.incarnation,
            final=final,
            observers=self._observers,
        )

    def release(self, driver: Driver, deliveries: Sequence[Delivery]) -> None:
        """Put tasks back to the front of the worker's own deque."""
        if deliveries:
            identity = self._identity
            try:
                driver.call(
                    worker_calls.release(identity.keys, identity.name, deliveries)
                )
            except BaseException:
                # The next exchange clears up whether Redis has them.
                self._in_flight.doubt()
                raise

    def route_unknown(self, driver: Driver) -> None:
        """Give away what this process does not know."""
        # Each goes to the front of a deque, so the first of them comes last.
        for unroutable in reversed(self._in_flight.take_unroutable()):
            self._route(driver, unroutable)

    def _route(self, driver: Driver, unroutable: Unroutable) -> None:
        """Give a task to a live worker that can run it, or park it until one joins.

        No attempt is counted. So old and new releases may run side by side.
        """
        identity, call = self._identity, driver.call
        keys, task, ability = identity.keys, unroutable.task, unroutable.ability
        capable = call(worker_calls.find_capable(keys, ability, but=identity.name))
        if capable and call(worker_calls.route(keys, identity.name, task, capable)):
            logger.debug("task %s needs %s: routed to %s", task.id, ability, capable)
        elif call(worker_calls.park(keys, identity.name, task, ability)):
            logger.warning(
                "task %s is parked: no live worker can run %s", task.id, ability
            )
            if self._observers is not None:
                name, _, version = ability.rpartition("@")
                queue = self._observers.queue
                self._observers.emit(TaskParked(queue, name, task.id, int(version)))


def hand_back_all(
    driver: Driver,
    keys: QueueKeys,
    worker: str,
    incarnation: str,
    *,
    final: bool,
    observers: TaskObservers | None = None,
) -> None:
    """Hand back the tasks in a worker's deque; if *final*, running ones, and leave.

    One call hands back some hundred tasks, so this calls until none is left. A running
    task that must not run twice is given up, which the log and *observers* are told.
    """
    left = 1
    while left:
        call = worker_calls.leave(keys, worker, incarnation, final=final)
        departure = driver.call(call)
        if departure.given_up:
            tell_given_up(observers, worker, departure.given_up)
        left = departure.left


def hand_back_for(queue: TaskQueue, worker: str, killed: str | None) -> None:
    """Hand back what a worker held that has died, in whichever shards that was.

    Its death is counted, unless it was *killed*: then this is its incarnation.
    """
    for keys in internals_of(queue).shards.all:
        try:
            _hand_back_in(keys, queue, worker, killed)
        except RedisError as error:
            logger.warning(
                "could not hand back the tasks of worker %s, which others take over"
                " when its lease ends: %s",
                worker,
                error,
            )


def _hand_back_in(
    keys: QueueKeys, queue: TaskQueue, worker: str, killed: str | None
) -> None:
    parts, incarnation = internals_of(queue), killed
    if keys.shard and not parts.driver.call(worker_calls.is_known(keys, worker)):
        return
    if incarnation is None:
        # Joining under a name takes over its tasks, and counts the death.
        heir = identity_of(queue, worker)
        incarnation = heir.incarnation
        call = worker_calls.join(
            keys, parts.settings, worker, incarnation, heir.description
        )
        rescued = parts.driver.call(call)
        tell_rescued(parts.observers, worker, rescued, "none takes its place")
    hand_back_all(
        parts.driver,
        keys,
        worker,
        incarnation,
        final=True,
        observers=parts.observers,
    )
