"""Slots, the places where tasks run, as the rest of a worker sees them.

A slot takes a task from `InFlight`, lets the `TaskRunner` run it, and gives the ending
back. `InlineSlot` is the loop's own thread. `ResizableSlots` is what threads and
coroutines have in common: a new kind needs a slot, a way to start it, and a way to wake
the idle ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Condition
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.drivers.connect import dedicated
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import PoolBroken
from workstealing.queue.steps import RedisCommand
from workstealing.tasks.attempt import Attempt, Delivery
from workstealing.tasks.context import control_of
from workstealing.tasks.runner import TaskRunner
from workstealing.workers.in_flight import InFlight
from workstealing.workers.lifespan import Lifespan
from workstealing.workers.redis_threads import WakeUpListener

__all__ = (
    "AnySlots",
    "ResizableSlot",
    "ResizableSlots",
    "Slot",
    "SlotClosed",
    "SlotParts",
    "Slots",
    "abandon_running",
    "log_cut_off",
    "log_late_end",
    "out_of_threads",
    "tell_lease_lost",
)

logger = BackgroundLogger(__name__)


class Slot(Protocol):
    """A place where one task runs at a time; what a supervisor needs of it."""

    @property
    def attempt(self) -> Attempt | None:
        """The attempt that runs there now."""
        ...

    def interrupt(self, attempt: Attempt) -> bool:
        """Stop an attempt if it still runs; return whether it was asked to stop."""
        ...

    def retry_interrupt(self) -> bool:
        """Retry an interrupt that was not safe before; True if none is pending."""
        ...

    def where(self, attempt: Attempt) -> TracebackType | None:
        """Return where an attempt is that is about to be given up, if that is seen."""
        ...


class Slots(Protocol):
    """The slots of one worker; what its loop and its engine need of them."""

    def start(self, heartbeat: Callable[[], None]) -> None:
        """Begin; *heartbeat* is for slots whose tasks keep the loop from its work."""
        ...

    def all(self) -> Iterable[Slot]:
        """Return every slot, including those that leave after their current task."""
        ...

    def wake(self, number: int) -> None:
        """Let up to *number* idle slots begin a task."""
        ...

    def work(self, seconds: float = math.inf) -> None:
        """Run tasks, or wait while they run, until an exchange is due.

        A wait ends after *seconds* at the latest.
        """
        ...

    def rest(self, seconds: float) -> RedisCommand[Any] | None:
        """Wait for a wake-up, or for anything else that makes an exchange due.

        Or else return a command: the loop then waits for that on the server.
        """
        ...

    def has_moved(self) -> None:
        """Listen for wake-ups of another shard."""
        ...

    def stop_listening(self) -> None:
        """Leave wake-ups to workers that take tasks, and let the loop look at once."""
        ...

    def close(self) -> None:
        """Release threads and event loops; running tasks are left alone."""
        ...


@dataclass(frozen=True, slots=True)
class SlotParts:
    """What the engine gives to its slots."""

    worker: str
    runner: TaskRunner
    in_flight: InFlight
    driver: Driver
    """Shared by all threads of the process."""
    bell: Callable[[], str]
    """Returns the key of the list of wake-ups, of the shard that the worker is in."""
    rest_seconds: float
    renew_seconds: float
    clock: Clock
    lifespan: Lifespan | None = None
    """What opens resources in an event loop; None: there are none."""

    def new_listener(self) -> WakeUpListener:
        """Make what waits for wake-ups, on a connection of its own."""
        return WakeUpListener(
            dedicated(self.driver),
            self.bell,
            self.rest_seconds,
            self.in_flight.make_exchange_due,
        )


class SlotClosed(BaseException):
    """Ends a slot together with its task; never reported as the task's own error."""


def tell_lease_lost(slots: Slots) -> None:
    """Let every running task know that other workers may have it."""
    for slot in slots.all():
        if (attempt := slot.attempt) is not None:
            control_of(attempt.context).is_lease_lost = True


def abandon_running(slots: Slots) -> None:
    """Have running tasks report nothing more: their worker hands them back now."""
    for slot in slots.all():
        if (attempt := slot.attempt) is not None:
            control_of(attempt.context).is_abandoned = True


def log_cut_off(attempt: Attempt) -> None:
    """Say which task a stop has interrupted."""
    logger.warning(
        "task %s (%s) was interrupted by the stop and %s",
        attempt.task.id,
        attempt.definition.ability,
        "must not run twice: it is given up"
        if attempt.runs_once
        else "goes back to the queue",
    )


def log_late_end(task: Delivery) -> None:
    """Say that a task has ended which was given up, and whose slot was replaced."""
    logger.warning(
        "task %s ended after it was given up; its report is dropped", task.id
    )


def out_of_threads(who: str) -> PoolBroken:
    """Return what ends a pool for which the system starts no further thread."""
    return PoolBroken(
        f"{who} cannot start another thread, because the system refuses it: use fewer"
        " workers, or raise the limits of processes and of memory"
    )


class ResizableSlot(Slot, Protocol):
    """A slot that can be added and removed while the others work."""

    is_leaving: bool
    """Set from outside: end after the current task."""
    is_gone: bool
    """Set by the slot when it has ended."""


S = TypeVar("S", bound=ResizableSlot)


class ResizableSlots(ABC, Generic[S]):
    """Slots beside the loop's own thread; their number may change at any time.

    The loop waits until an exchange is due, and a listener waits for wake-ups of the
    queue while slots are idle.
    """

    def __init__(self, parts: SlotParts) -> None:
        self._parts = parts
        self._in_flight = parts.in_flight
        self._wake_ups = parts.new_listener()
        # Slots wait here for a task; it also guards the lists below.
        self._changed = Condition()
        self._slots: list[S] = []
        self._leaving: list[S] = []

    @abstractmethod
    def wake(self, number: int) -> None:
        """Let up to *number* idle slots begin a task."""

    def wait_until_open(self) -> None:
        """Wait until each has its resources; `ResourceFailed` if one has not."""

    @abstractmethod
    def close(self) -> None:
        """Release threads and event loops; running tasks are left alone."""

    @abstractmethod
    def _new_slot(self) -> S:
        """Make a slot that has not begun."""

    @abstractmethod
    def _start_slot(self, slot: S) -> None:
        """Let a slot begin."""

    def start(self, heartbeat: Callable[[], None]) -> None:  # noqa: ARG002
        """Listen for wake-ups; the loop's own thread is free to renew the lease."""
        self._wake_ups.start()

    def stop_listening(self) -> None:
        """Leave wake-ups to workers that take tasks, and let the loop look at once."""
        self._wake_ups.stop()
        self._in_flight.make_exchange_due()

    def has_moved(self) -> None:
        """Listen for wake-ups of another shard."""
        self._wake_ups.move()

    def all(self) -> tuple[S, ...]:
        """Return every slot, including those that leave after their current task."""
        return (*self._slots, *self._still_leaving())

    def work(self, seconds: float = math.inf) -> None:
        """Wait until an exchange is due, at the latest to renew the lease."""
        self.rest(min(seconds, self._parts.renew_seconds))

    def rest(self, seconds: float) -> None:
        """Wait for a wake-up, or until an exchange is due."""
        self._in_flight.wait_until_due(seconds, self._wake_ups.listen)

    def scale(self, number: int) -> list[S]:
        """Resize to *number* slots; return those that leave after their task."""
        with self._changed:
            leaving = self._slots[number:]
            del self._slots[number:]
            self._leaving = [*self._still_leaving(), *leaving]
            for slot in leaving:
                slot.is_leaving = True
            new = [self._new_slot() for _ in range(number - len(self._slots))]
            self._slots += new
            self._in_flight.resize(number)
        for slot in new:
            self._start_slot(slot)
        self.wake(number + len(leaving))
        return leaving

    def replace(self, stuck: Slot) -> None:
        """Put a new slot in the place of one whose task cannot be stopped."""
        with self._changed:
            for place, slot in enumerate(self._slots):
                if slot is stuck:
                    slot.is_leaving = True
                    self._slots[place] = new = self._new_slot()
                    break
            else:
                return
        self._start_slot(new)

    def _still_leaving(self) -> list[S]:
        # A slot that has just begun a task runs nothing yet, but is not gone either.
        return [slot for slot in self._leaving if not slot.is_gone]


AnySlots = ResizableSlots[Any]
"""Slots of whatever kind."""
