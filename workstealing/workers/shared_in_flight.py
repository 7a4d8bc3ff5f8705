"""What one worker has in flight when it shares its slots with workers of other queues.

It has a slot to offer only while its share grants one. The loop asks for tasks as ever:
one for each idle slot, or 50 ms of quick ones, in proportion to the share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from workstealing.clock import Clock
from workstealing.tasks.attempt import Delivery, Ending
from workstealing.workers.batching import Batching
from workstealing.workers.in_flight import InFlight
from workstealing.workers.queue_shares import QueueShares

__all__ = ("SharedInFlight",)


class SharedInFlight(InFlight):
    """The tasks that a worker holds of one of several queues.

    Args:
        batching: how much a slot takes.
        clock: how old reports are.
        shares: who may use the slots.
        has_tasks: is called when the queue has brought tasks.
        wake: lets so many idle slots begin a task.
    """

    def __init__(
        self,
        batching: Batching,
        clock: Clock,
        shares: QueueShares,
        has_tasks: Callable[[], object],
        wake: Callable[[int], None],
    ) -> None:
        super().__init__(batching, clock)
        self._shares = shares
        self._share = shares.join(self)
        self._has_tasks = has_tasks
        self._wake = wake
        self._unfed: int | None = None
        self._has_shrunk = False

    # What its share asks.

    def in_hand(self) -> int:
        """Return how many tasks were taken and not begun."""
        return len(self._waiting)

    def is_closed(self) -> bool:
        """Return whether no further task is to begin."""
        return self._is_closed

    def has_granted(self, slots: int) -> None:
        """Have as many idle slots as are granted."""
        self._idle = slots

    def use_slots(self) -> None:
        """Begin what is in hand, or fetch something."""
        in_hand, slots = len(self._waiting), self._idle
        if in_hand:
            self._wake(min(in_hand, slots))
        if in_hand < slots:
            super().make_exchange_due()

    def slot_is_free(self) -> None:
        """Let the loop see whether it is to listen for wake-ups."""
        with self._mutex:
            self._changed.notify()

    # What slots do.

    def begin(self) -> Delivery | None:
        """Take the next task to run, if a slot is granted."""
        with self._shares.lock:
            if not self._idle:
                return None
            delivery = super().begin()
            if delivery is not None:
                self._share.begun()
            return delivery

    def finish(self, delivery: Delivery, ending: Ending, seconds: float) -> bool:
        """Record how a task ended; False if it was given up before."""
        if not super().finish(delivery, ending, seconds):
            return False
        if not self._waiting:
            # As when a slot falls idle: whoever waits for the result has it at once.
            super().make_exchange_due()
        # A slot that leaves begins nothing more, so another one must be told.
        self._share.ended(is_begun_next=not self._has_shrunk)
        return True

    @property
    def size(self) -> int:
        """How many slots there are, for all queues together."""
        return self._shares.size

    def resize(self, size: int) -> None:
        """Say how many slots there are, for all queues together."""
        self._has_shrunk = self._has_shrunk or size < self._shares.size
        self._shares.resize(size)

    def slot_is_idle(self) -> None:
        """Count nothing: how many may begin something is granted."""

    def slot_is_busy(self) -> None:
        """Count nothing."""

    # What the loop does.

    def room(self) -> int:
        """Return how many to ask for, with all free slots that nobody else wants."""
        self._unfed = self._share.look()
        self._size = self._share.portion()
        return super().room()

    def keep(self) -> int:
        """Return how many to have in the deque; none, if others come first."""
        if self._unfed is None:
            self._unfed = self._share.unfed()
        return super().keep() if self._size else 0

    def take(self, deliveries: Sequence[Delivery], cancelled: Iterable[str]) -> int:
        """Hold more tasks; return how many granted slots can begin something."""
        super().take(deliveries, cancelled)
        if deliveries:
            self._has_tasks()
            self._unfed = (self._unfed or 0) - len(deliveries)
        self._share.answered(brought=bool(deliveries))
        return min(self._idle, len(self._waiting))

    def wait_until_due(self, seconds: float, when_lacking: Callable[[], None]) -> None:
        """Give back the slots for which there was no task, then wait."""
        if self._unfed is not None:
            unfed, self._unfed = self._unfed, None
            self._share.give_back(unfed)
        if super().lacks_tasks():
            # These slots were granted when the last exchange was on its way.
            super().make_exchange_due()
        super().wait_until_due(seconds, when_lacking)

    def make_exchange_due(self) -> bool:
        """Let the loop exchange now, and expect it to bring something."""
        super().make_exchange_due()
        self._share.heard()
        return self.lacks_tasks()

    def doubt(self) -> None:
        """Name what is held, next time; and leave the slots to other queues."""
        super().doubt()
        self._share.could_not_reach()

    def lacks_tasks(self) -> bool:
        """Return whether a slot has nothing to do, whichever queue it is granted to."""
        return self._shares.free() > 0 or super().lacks_tasks()
