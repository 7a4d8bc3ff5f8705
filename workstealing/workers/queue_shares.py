"""Which of several queues begins the next task, when they share the slots of a worker.

A free slot is *granted* to a queue, which then begins a task that it has in hand, or
fetches one. So no task is taken without a free slot, and no slot waits for a queue that
is known to be empty: the other queues have it at once.

With weights, the queue that has begun the fewest tasks for its weight comes first. A
queue that was empty for a while starts level with the others: it saves up no turns.
With a strict order, an earlier queue comes first as long as it has tasks.

What a queue has is known from its last look at Redis. A queue that was empty is asked
again when a slot is free and it has not looked for 50 ms, and whenever it is woken. A
queue that does not answer within a second gets no more slots until it does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

from workstealing.clock import Clock

__all__ = ("QueueShares", "Share", "ShareHolder")

_LOOK_SECONDS = 0.05
_ANSWER_SECONDS = 1.0


class ShareHolder(Protocol):
    """What works for one of the queues. Only the last two may take locks."""

    def in_hand(self) -> int:
        """Return how many tasks were taken and not begun."""
        ...

    def is_closed(self) -> bool:
        """Return whether no further task is to begin."""
        ...

    def has_granted(self, slots: int) -> None:
        """Note how many slots it may use now."""
        ...

    def use_slots(self) -> None:
        """Begin what is in hand, or fetch something."""
        ...

    def slot_is_free(self) -> None:
        """Listen for wake-ups: a slot is left over."""
        ...


class QueueShares:
    """The slots that several queues share, and who may use them.

    Args:
        weights: of the queues, in their order.
        strict: an earlier queue comes first, whatever the weights.
        clock: how long ago a queue looked, or was asked to.
    """

    def __init__(self, weights: Sequence[float], *, strict: bool, clock: Clock) -> None:
        self.lock = Lock()
        """Guards everything here; nothing else is locked while it is held."""
        self.size = 0
        self.strict = strict
        self.clock = clock
        self.position = 0.0
        """How far the queue that began last had come; see `Share.position`."""
        self.all: list[Share] = []
        """Those that have joined, in the order of their queues."""
        self._weights = weights

    def join(self, holder: ShareHolder) -> Share:
        """Return the share of the next queue."""
        rank = len(self.all)
        self.all.append(Share(self, rank, self._weights[rank], holder))
        return self.all[rank]

    def skip(self, turns: int) -> None:
        """Grant all slots again, as if so many tasks had begun before.

        Otherwise, all processes of a pool would begin with the same queue.
        """
        for share in self.all:
            share.grant(0)
        for _ in range(turns):
            min(self.all, key=Share.turn).pass_turn()
        self.resize(self.size)

    def resize(self, size: int) -> None:
        """Say how many slots there are in all."""
        with self.lock:
            self.size = size
            for share in self.all:
                share.grant(0)
            granted = self.give()
        self.tell(granted)

    def free(self) -> int:
        """Return how many slots nobody uses, or may use."""
        return self.size - sum(share.running + share.granted for share in self.all)

    def give(self) -> list[Share]:
        """Grant free slots, with the lock held; return the shares that got some."""
        for share in self.all:
            if share.granted and share.holder.is_closed():
                share.grant(0)
        free, granted = self.free(), []
        while free > 0:
            wanting = [share for share in self.all if share.wants_slot()]
            if not wanting:
                break
            chosen = min(wanting, key=Share.turn)
            # Thousands of coroutines need not be counted one by one.
            number = free if len(wanting) == 1 and chosen.may_have_tasks else 1
            chosen.grant(chosen.granted + number)
            free -= number
            if chosen not in granted:
                granted.append(chosen)
        return granted

    def tell(self, granted: Sequence[Share], *, but: Share | None = None) -> None:
        """Tell holders to use the slots that were granted; call it without the lock."""
        for share in granted:
            if share is not but:
                share.holder.use_slots()
        if self.free() > 0:
            for share in self.all:
                if share is not but:
                    share.holder.slot_is_free()

    def look_at_clock(self) -> None:
        """Take slots from a queue that does not answer; to be called now and then."""
        late: list[Share] = []
        with self.lock:
            now = self.clock.monotonic()
            for share in self.all:
                if share.granted and now - share.granted_at >= _ANSWER_SECONDS:
                    if share.granted > share.holder.in_hand():
                        share.fall_silent()
                    else:
                        late.append(share)
            granted = self.give()
        self.tell([*granted, *late])


class Share:
    """What one queue has of the slots."""

    def __init__(
        self, shares: QueueShares, rank: int, weight: float, holder: ShareHolder
    ) -> None:
        self._shares = shares
        self.holder = holder
        self._rank = rank
        self._weight = weight
        self.position = 0.0
        """Grows with each task that it begins, the slower the higher its weight."""
        self.running = 0
        self.granted = 0
        """Slots that it may use, and does not use yet."""
        self.granted_at = self._looked_at = -math.inf
        self.may_have_tasks = True
        """Whether its queue may have tasks that are not in hand."""
        self._is_silent = False

    # What slots do.

    def begun(self) -> None:
        """Use a granted slot, with the lock held."""
        self.grant(self.granted - 1)
        self.running += 1
        self.pass_turn()

    def pass_turn(self) -> None:
        """Move behind the others by one task's weight."""
        self._shares.position = max(self._shares.position, self.position)
        self.position += 1.0 / self._weight

    def ended(self, *, is_begun_next: bool) -> None:
        """Free a slot; if *is_begun_next*, it looks for its next task by itself."""
        shares = self._shares
        with shares.lock:
            self.running -= 1
            now = shares.clock.monotonic()
            for share in shares.all:
                if now - share._looked_at >= _LOOK_SECONDS:  # noqa: SLF001
                    share._expect_tasks()  # noqa: SLF001
            granted = shares.give()
        shares.tell(granted, but=self if is_begun_next else None)

    # What the loop of its queue does.

    def look(self) -> int:
        """Claim free slots; return how many still lack a task."""
        shares = self._shares
        with shares.lock:
            if shares.free() > 0:
                self._expect_tasks()
            granted = shares.give()
            unfed = self.unfed()
        shares.tell(granted, but=self)
        return unfed

    def unfed(self) -> int:
        """Return for how many of its slots no task is in hand."""
        return self.granted - self.holder.in_hand()

    def answered(self, *, brought: bool) -> None:
        """Note that Redis answered, and whether it had tasks."""
        shares = self._shares
        with shares.lock:
            if brought or self._is_silent:
                self._is_silent = False
                self._expect_tasks()
            granted = shares.give()
        shares.tell(granted, but=self)

    def give_back(self, unfed: int) -> None:
        """Give up slots for which an exchange brought no task.

        It keeps slots that were granted since then, for which no task was asked yet,
        and slots whose tasks have ended since then, as the queue may have more.
        """
        shares = self._shares
        with shares.lock:
            left = min(unfed, self.unfed())
            if left <= 0:
                return
            self.grant(self.granted - left)
            self.may_have_tasks = False
            self._looked_at = shares.clock.monotonic()
            granted = shares.give()
        shares.tell(granted)

    def heard(self) -> None:
        """Expect tasks again: the queue was woken, or something has changed."""
        shares = self._shares
        with shares.lock:
            self._expect_tasks()
            granted = shares.give()
        shares.tell(granted)

    def could_not_reach(self) -> None:
        """Leave the slots to others until the queue can be reached again."""
        shares = self._shares
        with shares.lock:
            self.fall_silent()
            granted = shares.give()
        shares.tell(granted)

    def portion(self) -> int:
        """Return for how many slots it may have quick tasks in hand."""
        shares = self._shares
        with shares.lock:
            active = [share for share in shares.all if share.is_active()]
            if shares.strict:
                if any(share._rank < self._rank for share in active):  # noqa: SLF001
                    return self.running + self.granted
                return shares.size
            others = sum(share._weight for share in active if share is not self)  # noqa: SLF001
            return math.ceil(shares.size * self._weight / (self._weight + others))

    # What the shares ask of it, with the lock held.

    def wants_slot(self) -> bool:
        """Return whether it would use one more slot."""
        if self.holder.is_closed():
            return False
        if self.may_have_tasks and not self._is_silent:
            return True
        return self.holder.in_hand() > self.granted

    def turn(self) -> tuple[float, int]:
        """Return a key that is smallest for the queue whose turn it is."""
        if self._shares.strict:
            return (0.0, self._rank)
        return (self.position + self.granted / self._weight, self._rank)

    def is_active(self) -> bool:
        """Return whether it has tasks, or may have some."""
        return bool(self.running or self.holder.in_hand()) or self.wants_slot()

    def grant(self, slots: int) -> None:
        """Set how many slots it may use."""
        if slots > self.granted:
            self.granted_at = self._shares.clock.monotonic()
        self.granted = slots
        self.holder.has_granted(slots)

    def fall_silent(self) -> None:
        """Have no more slots than tasks in hand."""
        self._is_silent = True
        self.grant(min(self.granted, self.holder.in_hand()))

    def _expect_tasks(self) -> None:
        if self.may_have_tasks:
            return
        self.may_have_tasks = True
        if not self.granted and not self.holder.in_hand():
            self.position = max(self.position, self._shares.position)
