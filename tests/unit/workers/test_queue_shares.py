"""Which of several queues begins the next task: by weight, or in strict order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing.testing import ManualClock
from workstealing.workers.queue_shares import QueueShares


class Queue:
    """A queue in Redis and its worker, which talks to it when it is told to."""

    def __init__(self, name: str, scene: Scene) -> None:
        self.name = name
        self.waiting = self.hand = self.slots = 0
        self.closed = self.is_away = False
        self.is_due = True
        self.is_woken = False
        self.turns = 0
        self._scene = scene
        self.share = scene.shares.join(self)

    def in_hand(self) -> int:
        return self.hand

    def is_closed(self) -> bool:
        return self.closed

    def has_granted(self, slots: int) -> None:
        self.slots = slots

    def use_slots(self) -> None:
        self.is_due = True

    def slot_is_free(self) -> None:
        """Listen: what was submitted before is heard, too."""
        self.is_due = self.is_due or self.is_woken

    def submit(self, number: int) -> None:
        """Let somebody submit tasks, which wakes the worker when it listens."""
        self.waiting += number
        self.is_woken = True
        if self._scene.shares.free() > 0:
            self.is_due = True
        self._scene.settle()

    def turn(self) -> None:
        """Exchange with Redis, and begin what can be begun."""
        self.is_due = False
        self.turns += 1
        if self.is_woken and self._scene.shares.free() > 0:
            self.is_woken = False
            self.share.heard()
        unfed = self.share.look()
        if self.is_away:
            self.share.could_not_reach()
            return
        brought = min(max(0, unfed), self.waiting)
        self.waiting -= brought
        self.hand += brought
        self.share.answered(brought=brought > 0)
        self.begin()
        self.share.give_back(unfed - brought)

    def begin(self) -> None:
        while self.slots and self.hand:
            self.hand -= 1
            self.share.begun()
            self._scene.running.append(self)
            self._scene.begun.append(self.name)
            assert len(self._scene.running) <= self._scene.shares.size


class Scene:
    """A pool over some queues, called a, b, c, … ; tasks end when a test says so."""

    def __init__(
        self,
        weights: Sequence[float],
        size: int = 1,
        *,
        strict: bool = False,
        seconds: float = 0.01,
        waiting: int = 0,
        turns: int = 0,
    ) -> None:
        self._seconds = seconds
        self.clock = ManualClock(100.0)
        self.shares = QueueShares(weights, strict=strict, clock=self.clock)
        self.running: list[Queue] = []
        self.begun: list[str] = []
        self.queues = [
            Queue(name, self) for name, _ in zip("abcdef", weights, strict=False)
        ]
        for queue in self.queues:
            queue.waiting = waiting
        self.shares.resize(size)
        self.shares.skip(turns)
        self.settle()

    def settle(self) -> None:
        while due := [queue for queue in self.queues if queue.is_due]:
            due[0].turn()

    def end(self, place: int = 0) -> None:
        """Let a running task end, after a while."""
        self.clock.advance(self._seconds)
        queue = self.running.pop(place)
        if not queue.hand:
            queue.is_due = True
        queue.share.ended(is_begun_next=True)
        queue.begin()
        self.settle()

    def run(self, tasks: int) -> str:
        """Let so many tasks begin, one after the other; return of which queues."""
        before = len(self.begun)
        while len(self.begun) < before + tasks:
            self.end()
        return "".join(self.begun[before : before + tasks])


def test_queues_that_all_have_tasks_begin_them_by_their_weights() -> None:
    scene = Scene([3, 1], waiting=1000)

    counts = Counter(scene.run(400))

    assert abs(counts["a"] - 300) <= 1
    assert counts["a"] + counts["b"] == 400


def test_without_tasks_in_one_queue_the_other_has_all_slots_at_once() -> None:
    scene = Scene([1, 9], size=4)

    scene.queues[0].submit(4)

    assert scene.begun == ["a"] * 4


def test_a_queue_that_was_idle_has_saved_nothing_up() -> None:
    scene = Scene([1, 1])
    scene.queues[0].submit(500)
    scene.run(200)

    scene.queues[1].submit(500)
    scene.run(20)

    assert scene.run(40) in "ab" * 21


def test_in_strict_order_a_later_queue_waits_until_the_earlier_ones_have_nothing() -> (
    None
):
    scene = Scene([1, 1, 1], size=2, strict=True, seconds=0.06)
    for queue in reversed(scene.queues):
        queue.submit(4)

    scene.run(10)

    # What was begun before the others had anything goes on.
    assert "".join(scene.begun) == "cc" + "aaaa" + "bbbb" + "cc"


def test_in_strict_order_new_tasks_of_an_earlier_queue_come_next() -> None:
    scene = Scene([1, 1], strict=True, seconds=0.06)
    scene.queues[1].submit(50)
    scene.run(20)

    scene.queues[0].submit(3)

    assert scene.run(5) == "aaabb"


def test_an_idle_queue_is_asked_at_most_every_50_ms_while_slots_are_busy() -> None:
    scene = Scene([1, 1])
    scene.queues[0].submit(500)
    before = scene.queues[1].turns

    scene.run(100)  # in one second

    assert scene.queues[1].turns - before <= 20


def test_a_queue_that_cannot_be_reached_leaves_the_slots_to_the_others() -> None:
    scene = Scene([9, 1], size=2)
    first, second = scene.queues
    first.is_away = True
    first.submit(50)

    second.submit(50)
    assert scene.run(10) == "b" * 10

    first.is_away = False
    first.is_due = True
    scene.settle()
    assert "a" in scene.run(10)


def test_a_queue_that_does_not_answer_loses_its_slots_after_a_second() -> None:
    scene = Scene([1, 1])
    first, second = scene.queues
    second.waiting = 5
    first.share.heard()  # it has the slot, and its turn never comes
    assert (first.slots, second.slots) == (1, 0)

    scene.clock.advance(0.9)
    scene.shares.look_at_clock()
    assert (first.slots, second.slots) == (1, 0)
    scene.clock.advance(0.2)
    scene.shares.look_at_clock()
    second.share.heard()
    first.is_due = False
    scene.settle()

    assert scene.begun == ["b"]


def test_a_queue_that_is_closed_begins_nothing_and_others_have_its_slots() -> None:
    scene = Scene([1, 1], size=2)
    first, second = scene.queues
    first.closed = True
    first.share.heard()

    first.submit(5)
    second.submit(2)

    assert scene.begun == ["b", "b"]


def test_fewer_slots_take_effect_as_tasks_end() -> None:
    scene = Scene([1, 1], size=4)
    for queue in scene.queues:
        queue.submit(20)
    scene.shares.resize(1)

    seen = []
    while scene.running:
        seen.append(len(scene.running))
        scene.end()

    assert seen == [4, 3, 2] + [1] * 37


def test_processes_of_a_pool_begin_with_different_queues() -> None:
    children = [Scene([3, 1], waiting=1, turns=child) for child in range(8)]

    assert Counter(scene.begun[0] for scene in children) == {"a": 6, "b": 2}


weights = st.lists(st.sampled_from([1, 2, 3, 5, 10]), min_size=2, max_size=4)


@given(weights, st.integers(1, 5), st.randoms(use_true_random=False))
def test_whatever_ends_first_all_queues_get_their_proportion(
    weights: list[int], size: int, random: Random
) -> None:
    scene = Scene(weights, size, waiting=10_000)
    rounds = 300

    while len(scene.begun) < rounds:
        scene.end(random.randrange(len(scene.running)))

    counts = Counter(scene.begun)
    for queue, weight in zip(scene.queues, weights, strict=True):
        fair = len(scene.begun) * weight / sum(weights)
        assert abs(counts[queue.name] - fair) <= len(weights) + size


step = st.tuples(st.sampled_from(["submit", "end", "wait"]), st.integers(0, 3))


@given(weights, st.integers(1, 4), st.booleans(), st.lists(step, max_size=60))
def test_no_slot_stays_free_while_a_queue_has_tasks(
    weights: list[int], size: int, strict: bool, steps: list[tuple[str, int]]
) -> None:
    scene = Scene(weights, size, strict=strict)

    for what, number in steps:
        if what == "submit":
            scene.queues[number % len(weights)].submit(number)
        elif what == "end" and scene.running:
            scene.end(number % len(scene.running))
        else:
            scene.clock.advance(0.05 * number)
        if len(scene.running) < size:
            assert not any(queue.waiting or queue.hand for queue in scene.queues)

    for _ in range(200):
        if scene.running:
            scene.end()
    assert not any(queue.waiting or queue.hand for queue in scene.queues)
    assert all(queue.share.running == 0 for queue in scene.queues)


@pytest.mark.parametrize("strict", [False, True])
def test_a_single_share_has_everything(strict: bool) -> None:
    scene = Scene([2], size=3, strict=strict)
    scene.queues[0].submit(9)

    assert scene.run(6) == "a" * 6
