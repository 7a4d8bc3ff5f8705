"""One deque per worker: its owner takes at the front, thieves at the back.

Items are opaque (but not None). An item is waiting in exactly one deque, or in flight
with the worker that took it, until that worker is `done` with it or hands it back. So
nothing is lost and nothing is given out twice, whoever comes and goes meanwhile.

Each deque has a lock of its own, held for a few steps: nothing here leans on the GIL.
No lock is taken inside another, except the roster's, which is always the outer one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.errors import ConfigurationError, UnknownWorker
from workstealing.pool.box import Box, Totals

__all__ = ("Deques", "Loot")

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Loot(Generic[Item]):
    """What a thief got."""

    victim: Hashable
    item: Item
    """In flight with the thief."""
    moved: int
    """How many more now wait at the back of the thief's own deque."""
    left: int
    """How many the victim still has."""


class Deques(Generic[Item]):
    """The deques of some workers, who are known by any name that can be hashed.

    Args:
        workers: who is there from the start.
        chance: draws the victims of thieves.
        in_a_row: how many items are spread to one worker before it is the next one's
            turn. Things made one after the other lie side by side in memory: a few in
            a row are quicker to work off than one here, one there.
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
        # Guards who is there. The dictionary is replaced, never changed, so that the
        # others read it without the lock.
        self._roster = Lock()
        self._boxes: dict[Hashable, Box[Item]] = {}
        self._line: tuple[Box[Item], ...] = ()
        self._leaving: dict[Hashable, Box[Item]] = {}
        self._orphans: Box[Item] = Box()
        self._departed = Totals()
        self._turn = 0
        for worker in workers:
            self.add(worker)

    def add(self, worker: Hashable) -> None:
        """Let a worker join; one that comes first gets what nobody could take."""
        with self._roster:
            if worker in self._boxes or worker in self._leaving:
                raise ConfigurationError(
                    f"worker {worker!r} is there already: choose another name"
                )
            box: Box[Item] = Box()
            with self._orphans.lock:
                box.items.extend(self._orphans.items)
                self._orphans.items.clear()
            self._seat({**self._boxes, worker: box})

    def remove(self, worker: Hashable) -> int:
        """Let a worker go; return how many of its items went to others.

        What it has in flight stays so until it is done or hands it back.
        """
        with self._roster:
            box = self._box(worker)
            self._seat(
                {name: kept for name, kept in self._boxes.items() if kept is not box}
            )
            with box.lock:
                box.is_gone = True
                items = tuple(box.items)
                box.items.clear()
                if box.in_flight:
                    self._leaving[worker] = box
                else:
                    self._departed.add(box)
        for item in items:
            self._spread(item, is_new=False)
        return len(items)

    def push(self, worker: Hashable, item: Item) -> None:
        """Put an item at the back of a worker's deque."""
        box = self._box(worker)
        is_met = box.lock.locked()
        with box.lock:
            box.conflicts += is_met
            if not box.is_gone:
                box.pushed += 1
                box.items.append(item)
                return
        raise UnknownWorker(f"worker {worker!r} has left: use spread()")

    def spread(self, item: Item) -> None:
        """Put an item at the back of the next worker's deque, each in turn.

        With no worker at all it waits for one to be added.
        """
        self._spread(item, is_new=True)

    def take(self, worker: Hashable) -> Item | None:
        """Take the item at the front of a worker's own deque; it is in flight then."""
        box = self._box(worker)
        is_met = box.lock.locked()
        with box.lock:
            box.conflicts += is_met
            if not box.items:
                return None
            box.in_flight += 1
            return box.items.popleft()

    def done_and_take(self, worker: Hashable) -> Item | None:
        """Be `done` with one item and `take` another, in one step."""
        box = self._boxes.get(worker)
        if box is not None:
            is_met = box.lock.locked()
            with box.lock:
                box.conflicts += is_met
                if box.in_flight and box.items:
                    box.ended += 1
                    return box.items.popleft()
        self.done(worker)
        return None

    def steal(
        self,
        thief: Hashable,
        among: Sequence[Hashable] | None = None,
        *,
        half: bool = False,
    ) -> Loot[Item] | None:
        """Steal from a random worker that has something, or of those named.

        None: there is nothing to steal. With *half*, half of what the victim has.
        """
        own, boxes = self._box(thief), self._boxes
        victims = (
            [(name, box) for name, box in boxes.items() if box.items]
            if among is None
            else [(name, self._box(name)) for name in among]
        )
        victims = [(name, box) for name, box in victims if box.items and box is not own]
        while victims:
            victim, box = victims.pop(int(self._chance.random() * len(victims)))
            loot = self._rob(victim, box, thief, own, half)
            if loot is not None:
                return loot
        return None

    def steal_from(
        self, victim: Hashable, thief: Hashable, *, half: bool = False
    ) -> Loot[Item] | None:
        """Steal the last item of a worker, or its last half, which keeps its order."""
        return self._rob(victim, self._box(victim), thief, self._box(thief), half)

    def done(self, worker: Hashable) -> None:
        """One item that the worker had in flight is finished."""
        self._land(worker, self._box_of_one_who_may_have_left(worker), ended=1)

    def hand_back(self, worker: Hashable, item: Item) -> None:
        """Put an item in flight back to the front; if the worker left, to others."""
        box = self._box_of_one_who_may_have_left(worker)
        with box.lock:
            self._check_flight(worker, box)
            is_gone = box.is_gone
            if not is_gone:
                box.items.appendleft(item)
                box.in_flight -= 1
        if is_gone:
            self._spread(item, is_new=False)
            self._land(worker, box)

    def drop(self, item: Item) -> bool:
        """Take an item out of whichever deque it waits in; tell whether it was found.

        One that is on its way between two deques is not found.
        """
        for box in (*self._line, self._orphans):
            with box.lock, suppress(ValueError):
                box.items.remove(item)
                box.ended += 1
                return True
        return False

    def drain(self) -> list[Item]:
        """Take out all that waits, deque by deque."""
        drained: list[Item] = []
        for box in (*self._line, self._orphans):
            with box.lock:
                drained += box.items
                box.ended += len(box.items)
                box.items.clear()
        return drained

    @property
    def workers(self) -> tuple[Hashable, ...]:
        """Who is there, in the order they came."""
        return tuple(self._boxes)

    def size(self, worker: Hashable) -> int:
        """How many items wait in a worker's deque."""
        return len(self._box(worker).items)

    def in_flight(self, worker: Hashable) -> int:
        """How many items a worker has taken and is not done with."""
        return self._box(worker).in_flight

    def is_idle(self, worker: Hashable) -> bool:
        """Whether a worker has nothing waiting and nothing in flight."""
        box = self._box(worker)
        with box.lock:
            return not box.items and not box.in_flight

    @property
    def waiting(self) -> int:
        """How many items wait in all deques."""
        total = 0
        for box in (*self._line, self._orphans):
            with box.lock:
                total += len(box.items)
        return total

    @property
    def all_idle(self) -> bool:
        """Whether every deque is empty and nothing is in flight.

        What ended is counted before what came: both only grow, so if they are equal,
        there was a moment between the two counts at which nothing was left.
        """
        with self._roster:
            boxes = (*self._boxes.values(), *self._leaving.values(), self._orphans)
            ended, pushed = self._departed.ended, self._departed.pushed
            for box in boxes:
                with box.lock:
                    ended += box.ended
            for box in boxes:
                with box.lock:
                    pushed += box.pushed
        return ended == pushed

    @property
    def stolen(self) -> int:
        """How many items ever changed hands by stealing."""
        with self._roster:
            boxes = (*self._boxes.values(), *self._leaving.values())
            return self._departed.stolen + sum(box.stolen for box in boxes)

    @property
    def conflicts(self) -> int:
        """How often someone came to a deque and saw another at it."""
        with self._roster:
            boxes = (*self._boxes.values(), *self._leaving.values())
            return self._departed.conflicts + sum(box.conflicts for box in boxes)

    def _seat(self, boxes: dict[Hashable, Box[Item]]) -> None:
        self._boxes = boxes
        self._line = tuple(boxes.values())

    def _rob(
        self,
        victim: Hashable,
        box: Box[Item],
        thief: Hashable,
        own: Box[Item],
        half: bool,
    ) -> Loot[Item] | None:
        # The thief holds a place before it reaches out: it may be removed meanwhile.
        with own.lock:
            if own.is_gone:
                return None
            own.in_flight += 1
        is_met = box.lock.locked()
        with box.lock:
            box.conflicts += is_met
            number = (len(box.items) + 1) // 2 if half else min(1, len(box.items))
            stolen = [box.items.pop() for _ in range(number)]
            left = len(box.items)
            box.stolen += number
        if not stolen:
            self._land(thief, own)
            return None
        item, *others = reversed(stolen)
        if not own.take_in(others):
            for other in others:
                self._spread(other, is_new=False)
        return Loot(victim, item, len(others), left)

    def _spread(self, item: Item, *, is_new: bool) -> None:
        while line := self._line:
            # Two at once may take the same turn: it is a matter of evenness only.
            turn = self._turn
            self._turn = turn + 1
            box = line[turn // self._in_a_row % len(line)]
            with box.lock:
                if not box.is_gone:
                    box.pushed += is_new
                    box.items.append(item)
                    return
        with self._roster:
            # Whoever was added meanwhile has looked at the orphans already.
            box = next(iter(self._boxes.values()), self._orphans)
            with box.lock:
                box.pushed += is_new
                box.items.append(item)

    def _land(self, worker: Hashable, box: Box[Item], ended: int = 0) -> None:
        """End one flight; forget a worker that has left when it was the last one."""
        with box.lock:
            self._check_flight(worker, box)
            box.in_flight -= 1
            box.ended += ended
            is_over = box.is_gone and not box.in_flight
        if is_over:
            with self._roster:
                if self._leaving.get(worker) is box:
                    del self._leaving[worker]
                    self._departed.add(box)

    def _check_flight(self, worker: Hashable, box: Box[Item]) -> None:
        if not box.in_flight:
            raise ConfigurationError(
                f"worker {worker!r} has nothing in flight: call done() or hand_back()"
                " once for each item that it took"
            )

    def _box(self, worker: Hashable) -> Box[Item]:
        try:
            return self._boxes[worker]
        except KeyError:
            raise UnknownWorker(f"there is no worker {worker!r}: add() it") from None

    def _box_of_one_who_may_have_left(self, worker: Hashable) -> Box[Item]:
        box = self._boxes.get(worker)
        if box is None:
            with self._roster:
                box = self._leaving.get(worker)
        return box if box is not None else self._box(worker)
