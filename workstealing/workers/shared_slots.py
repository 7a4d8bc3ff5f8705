"""What the engines of one process need to share their slots among several queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Lock
from typing import Any

from workstealing.clock import Clock
from workstealing.workers.engine import WorkerEngine
from workstealing.workers.queue_shares import QueueShares
from workstealing.workers.shared_in_flight import SharedInFlight

__all__ = ("AllEmpty", "SharedSlots")


class SharedSlots:
    """Makes the engines of several queues share slots.

    Args:
        weights: of the queues, in their order.
        strict: an earlier queue comes first, whatever the weights.
        clock: where time comes from.
    """

    def __init__(self, weights: Sequence[float], *, strict: bool, clock: Clock) -> None:
        self._shares = QueueShares(weights, strict=strict, clock=clock)
        self._all_empty = AllEmpty(len(weights))
        self._engines: list[WorkerEngine[Any]] = []

    def options(self, place: int, tick: Callable[[], object]) -> dict[str, Any]:
        """Return options of the engine for the queue at this place.

        One of the engines calls *tick*, for all of them.
        """
        options: dict[str, Any] = {
            "new_in_flight": partial(
                SharedInFlight,
                shares=self._shares,
                has_tasks=partial(self._all_empty.has_tasks, place),
                wake=partial(self._wake, place),
            ),
            "may_end": partial(self._may_end, place),
        }
        if not place:
            options["tick"] = partial(self._tick, tick)
        return options

    def connect(self, engines: Iterable[WorkerEngine[Any]], turns: int = 0) -> None:
        """Let engines that were made with these options wake each other's slots.

        They start as if so many *turns* had been taken.
        """
        self._engines = list(engines)
        self._shares.skip(turns)

    def _wake(self, place: int, number: int) -> None:
        self._engines[place].slots.wake(number)

    def _may_end(self, place: int, is_empty: bool) -> bool:
        may_end = self._all_empty.sees(place, is_empty=is_empty)
        if is_empty and not may_end and self._all_empty.seems_so():
            for other, engine in enumerate(self._engines):
                if other != place:
                    engine.in_flight.make_exchange_due()
        return may_end

    def _tick(self, tick: Callable[[], object]) -> None:
        self._shares.look_at_clock()
        tick()


class AllEmpty:
    """Tells when a worker that ends "until empty" has nothing left in any queue.

    A task of one queue may submit to another queue that was seen empty before. So all
    queues are looked at once more after the last of them became empty.

    Args:
        queues: how many there are.
    """

    def __init__(self, queues: int) -> None:
        self._mutex = Lock()
        # Counts how often a queue became empty.
        self._round = 0
        self._known = [0] * queues
        self._confirmed: list[int | None] = [None] * queues
        self._is_over = False

    def has_tasks(self, place: int) -> None:
        """Note that a queue is not empty."""
        self._confirmed[place] = None

    def seems_so(self) -> bool:
        """Return whether each was seen empty, maybe not at the same time."""
        return None not in self._confirmed

    def sees(self, place: int, *, is_empty: bool) -> bool:
        """Note what a loop has just seen of its queue; return whether it may end."""
        with self._mutex:
            if not is_empty:
                self.has_tasks(place)
                return False
            if self._confirmed[place] is None:
                self._round += 1
                self._confirmed[place] = 0
            else:
                # This look began after the one before had ended, but maybe soon after.
                self._confirmed[place] = self._known[place]
            self._known[place] = self._round
            if all(one == self._round for one in self._confirmed):
                self._is_over = True
            return self._is_over
