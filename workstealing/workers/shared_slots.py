"""What the engines of one process need to share their slots among several queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from workstealing.clock import Clock
from workstealing.workers.all_empty import AllEmpty
from workstealing.workers.engine import WorkerEngine
from workstealing.workers.queue_shares import QueueShares
from workstealing.workers.shared_in_flight import SharedInFlight

__all__ = ("SharedSlots",)


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
        self._all_in_flight: list[SharedInFlight] = []

    def options(self, place: int, tick: Callable[[], object]) -> dict[str, Any]:
        """Return options of the engine for the queue at this place.

        One of the engines calls *tick*, for all of them.
        """
        options: dict[str, Any] = {
            "new_in_flight": partial(
                SharedInFlight,
                shares=self._shares,
                place=place,
                all_empty=self._all_empty,
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
        for engine in engines:
            assert isinstance(engine.in_flight, SharedInFlight)
            engine.in_flight.wake = engine.slots.wake
            self._all_in_flight.append(engine.in_flight)
        self._shares.skip(turns)

    def _may_end(self, place: int, is_empty: bool) -> bool:
        may_end = self._all_empty.sees(place, is_empty=is_empty)
        if is_empty and not may_end and self._all_empty.seems_so():
            for other, in_flight in enumerate(self._all_in_flight):
                if other != place:
                    in_flight.make_exchange_due()
        return may_end

    def _tick(self, tick: Callable[[], object]) -> None:
        self._shares.look_at_clock()
        tick()
