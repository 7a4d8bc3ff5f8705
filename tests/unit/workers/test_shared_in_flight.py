"""What a worker has in flight when it shares its slots with workers of other queues."""

from __future__ import annotations

from functools import partial

from workstealing.tasks.attempt import Delivery, Report
from workstealing.testing import ManualClock
from workstealing.workers.batching import Batching
from workstealing.workers.queue_shares import QueueShares
from workstealing.workers.shared_in_flight import SharedInFlight


class Scene:
    """The workers of two queues with one slot, or more; a test plays their loops."""

    def __init__(
        self,
        size: int = 1,
        weights: tuple[float, float] = (1, 1),
        *,
        strict: bool = False,
    ) -> None:
        self.clock = ManualClock(100.0)
        self.shares = QueueShares(weights, strict=strict, clock=self.clock)
        self.batchings = [Batching(), Batching()]
        self.first, self.second = (
            SharedInFlight(
                batching,
                self.clock,
                self.shares,
                lambda: None,
                partial(self.wake, name),
            )
            for batching, name in zip(self.batchings, ("first", "second"), strict=True)
        )
        self.woken: list[str] = []
        self.listening: list[str] = []
        self.first.resize(size)

    def wake(self, name: str, number: int) -> None:
        self.woken.append(name)

    def ask(self, worker: SharedInFlight) -> int:
        """Begin a turn of its loop, as far as the exchange."""
        wanted = worker.room()
        worker.keep()
        worker.take_reports()
        return wanted

    def rest(self, worker: SharedInFlight) -> None:
        worker.wait_until_due(0.0, lambda: self.listening.append("listens"))


def tasks(*ids: str) -> list[Delivery]:
    return [Delivery(task_id, "t", 1, b"") for task_id in ids]


def report(task: Delivery) -> Report:
    return Report(task.id, task.token, "done")


def test_only_who_has_the_slot_asks_for_a_task_and_begins_it() -> None:
    scene = Scene()

    assert (scene.ask(scene.first), scene.ask(scene.second)) == (1, 0)
    assert scene.first.take(tasks("a"), ()) == 1

    begun = scene.first.begin()
    assert begun is not None
    assert begun.id == "a"
    assert scene.second.begin() is None


def test_a_slot_without_a_task_goes_to_the_other_queue_before_the_loop_rests() -> None:
    scene = Scene()
    scene.ask(scene.first)
    scene.first.take((), ())

    scene.rest(scene.first)

    assert scene.second.is_exchange_due()
    assert scene.ask(scene.second) == 1


def test_a_slot_whose_task_ends_before_the_loop_rests_stays_with_its_queue() -> None:
    scene = Scene(strict=True)
    scene.ask(scene.first)
    scene.first.take(tasks("a"), ())
    task = scene.first.begin()
    assert task is not None
    scene.first.finish(task, report(task), 0.001)

    scene.rest(scene.first)

    # The exchange brought all that it was asked for, so there may be more.
    assert scene.ask(scene.second) == 0
    assert scene.first.is_exchange_due()
    assert scene.ask(scene.first) > 0


def test_a_slot_that_is_released_calls_the_queue_whose_turn_it_is() -> None:
    scene = Scene()
    scene.ask(scene.first)
    scene.first.take(tasks("a", "b"), ())
    task = scene.first.begin()
    assert task is not None
    assert scene.first.begin() is None
    scene.ask(scene.second)

    scene.first.finish(task, report(task), 1.0)

    assert scene.second.is_exchange_due()
    assert scene.ask(scene.second) == 1
    assert scene.first.begin() is None


def test_a_slot_that_is_granted_during_an_exchange_is_asked_for_by_the_next() -> None:
    scene = Scene()
    scene.ask(scene.first)
    scene.first.take((), ())
    scene.ask(scene.second)
    scene.rest(scene.first)  # while the other's exchange is on its way
    scene.second.take_reports()
    scene.second.take((), ())

    scene.rest(scene.second)

    assert scene.second.is_exchange_due()
    assert scene.ask(scene.second) == 1


def test_a_task_that_leaves_nothing_in_hand_is_reported_at_once() -> None:
    scene = Scene()
    scene.ask(scene.first)
    scene.first.take(tasks("a"), ())
    task = scene.first.begin()
    assert task is not None
    assert not scene.first.is_exchange_due()

    scene.first.finish(task, report(task), 1.0)

    assert scene.first.is_exchange_due()


def test_quick_tasks_are_taken_in_proportion_to_the_share() -> None:
    scene = Scene(size=4, weights=(3, 1))
    for batching in scene.batchings:
        for _ in range(9):
            batching.lasted(10, 0.05)

    assert scene.ask(scene.first) == 3 * 10
    assert scene.ask(scene.second) == 1 * 10


def test_it_listens_for_wake_ups_while_any_slot_is_free() -> None:
    scene = Scene()
    for worker in (scene.first, scene.second):
        scene.ask(worker)
        worker.take((), ())
        scene.rest(worker)
    scene.listening.clear()
    scene.ask(scene.second)
    scene.second.take((), ())

    scene.rest(scene.second)

    assert scene.listening


def test_a_queue_that_cannot_be_reached_gives_its_slots_away() -> None:
    scene = Scene()
    assert scene.ask(scene.first) == 1

    scene.first.doubt()

    assert scene.ask(scene.first) == 0
    assert scene.ask(scene.second) == 1
