"""The deques against a plain model: nothing lost, nothing twice, order kept."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from workstealing.pool.work_deques import WorkDeques

WORKERS = st.sampled_from("abcd")


class DequesMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.deques: WorkDeques[int]
        self.model: dict[str, list[int]] = {"a": [], "b": []}
        self.flying: dict[str, list[int]] = {}
        self.gone: set[str] = set()
        self.ended: set[int] = set()
        self.orphans: list[int] = []
        self.next = 0

    @initialize(seed=st.integers(0, 999))
    def begin(self, seed: int) -> None:
        # What can be drawn next depends on who was robbed: a replay robs the same ones.
        self.deques = WorkDeques("ab", chance=Random(seed))

    @rule(worker=WORKERS)
    def push(self, worker: str) -> None:
        if worker in self.model:
            self.deques.push(worker, self.next)
            self.model[worker].append(self.next)
            self.next += 1

    @rule()
    def spread(self) -> None:
        self.deques.spread(self.next)
        self._learn_where({self.next})
        self.next += 1

    @rule(worker=WORKERS)
    def take(self, worker: str) -> None:
        if worker in self.model:
            item = self.deques.take(worker)
            own = self.model[worker]
            assert item == (own.pop(0) if own else None)
            if item is not None:
                self.flying.setdefault(worker, []).append(item)

    @rule(victim=WORKERS, thief=WORKERS, half=st.booleans())
    def steal_from(self, victim: str, thief: str, half: bool) -> None:
        if victim not in self.model or thief not in self.model or victim == thief:
            return
        loot = self.deques.steal_from(victim, thief, half=half)
        own = self.model[victim]
        if not own:
            assert loot is None
            return
        number = (len(own) + 1) // 2 if half else 1
        stolen = own[-number:]
        del own[-number:]
        assert loot is not None
        assert (loot.item, loot.moved, loot.left) == (stolen[0], number - 1, len(own))
        self.flying.setdefault(thief, []).append(stolen[0])
        self.model[thief] += stolen[1:]

    @rule(thief=WORKERS)
    def steal(self, thief: str) -> None:
        if thief not in self.model:
            return
        loot = self.deques.steal(thief)
        if loot is None:
            assert not any(items for name, items in self.model.items() if name != thief)
            return
        assert loot.victim != thief
        assert self.model[str(loot.victim)].pop() == loot.item
        self.flying.setdefault(thief, []).append(loot.item)

    @precondition(lambda self: any(self.flying.values()))
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        worker, item = self._flight(data)
        self.deques.done(worker)
        self.ended.add(item)

    @precondition(lambda self: any(self.flying.values()))
    @rule(data=st.data())
    def hand_back(self, data: st.DataObject) -> None:
        worker, item = self._flight(data)
        self.deques.hand_back(worker, item)
        if worker in self.model:
            self.model[worker].insert(0, item)
        else:
            self._learn_where({item})

    @rule(worker=WORKERS)
    def drop(self, worker: str) -> None:
        own = self.model.get(worker)
        if own:
            item = own.pop(len(own) // 2)
            assert self.deques.drop(item)
            self.ended.add(item)

    @rule(worker=WORKERS)
    def add(self, worker: str) -> None:
        if worker not in self.model and not self.flying.get(worker):
            self.deques.add(worker)
            self.model[worker], self.orphans = self.orphans, []

    @rule(worker=WORKERS)
    def remove(self, worker: str) -> None:
        if worker in self.model:
            items = self.model.pop(worker)
            assert self.deques.remove(worker) == len(items)
            self._learn_where(set(items))

    @invariant()
    def every_deque_holds_what_it_should_in_order(self) -> None:
        assert self.deques.workers == tuple(self.model)
        for worker, items in self.model.items():
            assert list(self.deques._deques[worker].items) == items
            assert self.deques.in_flight(worker) == len(self.flying.get(worker, []))

    @invariant()
    def nothing_is_lost_and_nothing_is_there_twice(self) -> None:
        there = [
            *self.orphans,
            *(item for items in self.model.values() for item in items),
            *(item for items in self.flying.values() for item in items),
            *self.ended,
        ]
        assert sorted(there) == list(range(self.next))

    @invariant()
    def all_idle_is_no_item_anywhere(self) -> None:
        assert self.deques.all_idle == (len(self.ended) == self.next)

    def _flight(self, data: st.DataObject) -> tuple[str, int]:
        worker = data.draw(
            st.sampled_from([name for name, items in self.flying.items() if items])
        )
        return worker, self.flying[worker].pop()

    def _learn_where(self, items: set[int]) -> None:
        """Whose turn it was is the deques' affair; that it is at the back is not."""
        for worker, own in self.model.items():
            real = list(self.deques._deques[worker].items)
            assert real[: len(own)] == own
            new = real[len(own) :]
            assert items.issuperset(new)
            items = items - set(new)
            own += new
        if self.model:
            assert not items
        else:
            real = list(self.deques._unassigned.items)
            self.orphans += real[len(self.orphans) :]


DequesMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestDeques = DequesMachine.TestCase
