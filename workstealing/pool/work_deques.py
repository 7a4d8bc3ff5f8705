"""One deque per worker: its owner takes at the front, thieves at the back.

Items are opaque (but not None). An item is waiting in exactly one deque, or in flight
with the worker that took it, until that worker is `done` with it or hands it back. So
nothing is lost and nothing is handed out twice while workers come and go.

Each deque has a lock of its own, held for a few steps: nothing here relies on the GIL.
A lock is taken inside another only if the outer one is that of the membership.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Generic, TypeVar

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.errors import ConfigurationError, UnknownWorker
from workstealing.pool.work_deque import DequeCounts, StolenWork, WorkDeque

__all__ = ("WorkDeques",)

Item = TypeVar("Item")


class WorkDeques(Generic[Item]):
    """The deques of some workers, each known by any name that can be hashed.

    Args:
        workers: those that are there from the start.
        chance: draws the victims of thieves.
        in_a_row: how many items are spread to one worker before it is the next one's
            turn. Objects made one after the other lie side by side in memory, so a
            worker is quicker with a few in a row.
    """

    def __init__(
        self,
        workers: Iterable[Hashable] = (),
        *,
        chance: Chance = SYSTEM_CHANCE,
        in_a_row: int = 1,
    ) -> None:
        self._chance = chance
        self._in_a_row = in_a_row
        # Guards which workers there are. The dictionary is replaced, never changed, so
        # that it can be read without the lock.
        self._membership = Lock()
        self._deques: dict[Hashable, WorkDeque[Item]] = {}
        self._in_turn: tuple[WorkDeque[Item], ...] = ()
        self._leaving: dict[Hashable, WorkDeque[Item]] = {}
        self._unassigned: WorkDeque[Item] = WorkDeque()
        self._gone_counts = DequeCounts()
        self._turn = 0
        for worker in workers:
            self.add(worker)

    def add(self, worker: Hashable) -> None:
        """Add a worker; the first one gets what was spread while there was none."""
        with self._membership:
            if worker in self._deques or worker in self._leaving:
                raise ConfigurationError(
                    f"worker {worker!r} has already joined: choose another name"
                )
            deque: WorkDeque[Item] = WorkDeque()
            with self._unassigned.lock:
                deque.items.extend(self._unassigned.items)
                self._unassigned.items.clear()
            self._replace({**self._deques, worker: deque})

    def remove(self, worker: Hashable) -> int:
        """Remove a worker; return how many of its items went to others.

        What it has in flight stays so until it is done or hands it back.
        """
        with self._membership:
            deque = self._deque(worker)
            self._replace(
                {name: kept for name, kept in self._deques.items() if kept is not deque}
            )
            with deque.lock:
                deque.is_gone = True
                items = tuple(deque.items)
                deque.items.clear()
                if deque.in_flight:
                    self._leaving[worker] = deque
                else:
                    self._gone_counts.add(deque)
        for item in items:
            self._spread(item, is_new=False)
        return len(items)

    def push(self, worker: Hashable, item: Item) -> None:
        """Put an item at the back of a worker's deque."""
        deque = self._deque(worker)
        with deque.lock:
            if not deque.is_gone:
                deque.pushed += 1
                deque.items.append(item)
                return
        raise UnknownWorker(f"worker {worker!r} has left: use spread()")

    def spread(self, item: Item) -> None:
        """Put an item at the back of the next worker's deque, each in turn.

        With no worker at all it waits for one to be added.
        """
        self._spread(item, is_new=True)

    def take(self, worker: Hashable) -> Item | None:
        """Take the item at the front of a worker's own deque; it is in flight then."""
        deque = self._deque(worker)
        with deque.lock:
            if not deque.items:
                return None
            deque.in_flight += 1
            return deque.items.popleft()

    def done_and_take(self, worker: Hashable) -> Item | None:
        """Finish one item (`done`) and `take` another, in one step."""
        deque = self._deques.get(worker)
        if deque is not None:
            with deque.lock:
                if deque.in_flight and deque.items:
                    deque.ended += 1
                    return deque.items.popleft()
        self.done(worker)
        return None

    def steal(
        self,
        thief: Hashable,
        among: Sequence[Hashable] | None = None,
        *,
        half: bool = False,
    ) -> StolenWork[Item] | None:
        """Steal from a random worker that has something, or of those named.

        None: there is nothing to steal. With *half*, half of what the victim has.
        """
        own, deques = self._deque(thief), self._deques
        victims = (
            [(name, deque) for name, deque in deques.items() if deque.items]
            if among is None
            else [(name, self._deque(name)) for name in among]
        )
        victims = [
            (name, deque) for name, deque in victims if deque.items and deque is not own
        ]
        while victims:
            victim, deque = victims.pop(int(self._chance.random() * len(victims)))
            got = self._steal_from(victim, deque, thief, own, half)
            if got is not None:
                return got
        return None

    def steal_from(
        self, victim: Hashable, thief: Hashable, *, half: bool = False
    ) -> StolenWork[Item] | None:
        """Steal the last item of a worker, or its last half, which keeps its order."""
        return self._steal_from(
            victim, self._deque(victim), thief, self._deque(thief), half
        )

    def done(self, worker: Hashable) -> None:
        """One item that the worker had in flight is finished."""
        self._end_flight(worker, self._deque_even_if_gone(worker), ended=1)

    def hand_back(self, worker: Hashable, item: Item) -> None:
        """Put an item in flight back to the front; if the worker left, to others."""
        deque = self._deque_even_if_gone(worker)
        with deque.lock:
            self._check_flight(worker, deque)
            is_gone = deque.is_gone
            if not is_gone:
                deque.items.appendleft(item)
                deque.in_flight -= 1
        if is_gone:
            self._spread(item, is_new=False)
            self._end_flight(worker, deque)

    def drop(self, item: Item) -> bool:
        """Take an item out of whichever deque it waits in; return whether it was found.

        One that is on its way between two deques is not found.
        """
        for deque in (*self._in_turn, self._unassigned):
            with deque.lock, suppress(ValueError):
                deque.items.remove(item)
                deque.ended += 1
                return True
        return False

    def drain(self) -> list[Item]:
        """Take out all that waits, deque by deque."""
        drained: list[Item] = []
        for deque in (*self._in_turn, self._unassigned):
            with deque.lock:
                drained += deque.items
                deque.ended += len(deque.items)
                deque.items.clear()
        return drained

    @property
    def workers(self) -> tuple[Hashable, ...]:
        """The workers, in the order they were added."""
        return tuple(self._deques)

    def size(self, worker: Hashable) -> int:
        """How many items wait in a worker's deque."""
        return len(self._deque(worker).items)

    def in_flight(self, worker: Hashable) -> int:
        """How many items a worker has taken and is not done with."""
        return self._deque(worker).in_flight

    def is_idle(self, worker: Hashable) -> bool:
        """Whether a worker has nothing waiting and nothing in flight."""
        deque = self._deque(worker)
        with deque.lock:
            return not deque.items and not deque.in_flight

    @property
    def waiting(self) -> int:
        """How many items wait in all deques."""
        total = 0
        for deque in (*self._in_turn, self._unassigned):
            with deque.lock:
                total += len(deque.items)
        return total

    @property
    def all_idle(self) -> bool:
        """Whether every deque is empty and nothing is in flight.

        What ended is counted before what came: both only grow, so if they are equal,
        there was a moment between the two counts at which nothing was left.
        """
        with self._membership:
            deques = (*self._deques.values(), *self._leaving.values(), self._unassigned)
            ended, pushed = self._gone_counts.ended, self._gone_counts.pushed
            for deque in deques:
                with deque.lock:
                    ended += deque.ended
            for deque in deques:
                with deque.lock:
                    pushed += deque.pushed
        return ended == pushed

    @property
    def stolen(self) -> int:
        """How many items were ever stolen."""
        with self._membership:
            deques = (*self._deques.values(), *self._leaving.values())
            return self._gone_counts.stolen + sum(deque.stolen for deque in deques)

    def _replace(self, deques: dict[Hashable, WorkDeque[Item]]) -> None:
        self._deques = deques
        self._in_turn = tuple(deques.values())

    def _steal_from(
        self,
        victim: Hashable,
        deque: WorkDeque[Item],
        thief: Hashable,
        own: WorkDeque[Item],
        half: bool,
    ) -> StolenWork[Item] | None:
        # Counted before it steals: the thief may be removed meanwhile.
        with own.lock:
            if own.is_gone:
                return None
            own.in_flight += 1
        with deque.lock:
            number = (len(deque.items) + 1) // 2 if half else min(1, len(deque.items))
            stolen = [deque.items.pop() for _ in range(number)]
            left = len(deque.items)
            deque.stolen += number
        if not stolen:
            self._end_flight(thief, own)
            return None
        item, *others = reversed(stolen)
        if not own.extend(others):
            for other in others:
                self._spread(other, is_new=False)
        return StolenWork(victim, item, len(others), left)

    def _spread(self, item: Item, *, is_new: bool) -> None:
        while deques := self._in_turn:
            # Two threads may take the same turn: that only makes it less even.
            turn = self._turn
            self._turn = turn + 1
            deque = deques[turn // self._in_a_row % len(deques)]
            with deque.lock:
                if not deque.is_gone:
                    deque.pushed += is_new
                    deque.items.append(item)
                    return
        with self._membership:
            # A worker added meanwhile has already taken over what was unassigned.
            deque = next(iter(self._deques.values()), self._unassigned)
            with deque.lock:
                deque.pushed += is_new
                deque.items.append(item)

    def _end_flight(
        self, worker: Hashable, deque: WorkDeque[Item], ended: int = 0
    ) -> None:
        """End one flight; after the last one of a worker that has left, forget it."""
        with deque.lock:
            self._check_flight(worker, deque)
            deque.in_flight -= 1
            deque.ended += ended
            is_over = deque.is_gone and not deque.in_flight
        if is_over:
            with self._membership:
                if self._leaving.get(worker) is deque:
                    del self._leaving[worker]
                    self._gone_counts.add(deque)

    def _check_flight(self, worker: Hashable, deque: WorkDeque[Item]) -> None:
        if not deque.in_flight:
            raise ConfigurationError(
                f"worker {worker!r} has nothing in flight: call done() or hand_back()"
                " once for each item that it took"
            )

    def _deque(self, worker: Hashable) -> WorkDeque[Item]:
        try:
            return self._deques[worker]
        except KeyError:
            raise UnknownWorker(f"there is no worker {worker!r}") from None

    def _deque_even_if_gone(self, worker: Hashable) -> WorkDeque[Item]:
        deque = self._deques.get(worker)
        if deque is None:
            with self._membership:
                deque = self._leaving.get(worker)
        return deque if deque is not None else self._deque(worker)
