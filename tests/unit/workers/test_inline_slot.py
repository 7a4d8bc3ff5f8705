"""The slot in the loop's own thread: about 50 ms of tasks at a time."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from workstealing.tasks.attempt import Attempt, Delivery, Ending, Report, Unroutable
from workstealing.testing import ManualClock
from workstealing.workers.batching import Batching
from workstealing.workers.in_flight import InFlight
from workstealing.workers.inline_slot import InlineSlot, SlotEventLoop
from workstealing.workers.slots import SlotParts


class Scene:
    """A slot whose tasks last as long as the test says."""

    def __init__(self, *ids: str, lasting: float = 0.01) -> None:
        self.clock = ManualClock()
        self.in_flight = InFlight(Batching(), self.clock)
        self.ran: list[str] = []
        self.lasting = lasting
        runner: Any = self
        driver: Any = self
        self.slot = InlineSlot(
            SlotParts(
                "w.0", runner, self.in_flight, driver, lambda: "bell", 1, 1, self.clock
            ),
        )
        self.take(*ids)

    def take(self, *ids: str, cancelled: tuple[str, ...] = ()) -> None:
        tasks = [Delivery(task_id, "t", 1, b"") for task_id in ids]
        self.in_flight.take(tasks, cancelled)

    def execute(
        self, task: Delivery, call: Callable[[Attempt], Any], complete: object
    ) -> Ending:
        self.ran.append(task.id)
        self.clock.advance(self.lasting)
        if task.id == "interrupted":
            raise KeyboardInterrupt
        if task.id == "unknown":
            return Unroutable(task, "new@2")
        return None if task.id == "lost" else Report(task.id, "t", "done")

    def cancelled(self, task: Delivery) -> Report:
        return Report(task.id, "t", "cancelled")


def test_it_runs_what_is_held_in_its_order_and_leaves_the_reports() -> None:
    scene = Scene("a", "b")

    scene.slot.work()

    assert scene.ran == ["a", "b"]
    assert [r.id for r in scene.in_flight.take_reports()] == ["a", "b"]


def test_after_50_ms_an_exchange_is_due() -> None:
    scene = Scene("a", "b", "c", lasting=0.03)

    scene.slot.work()

    assert scene.ran == ["a", "b"]
    assert [task.id for task in scene.in_flight.release_all()] == ["c"]


def test_when_it_is_to_stop_it_begins_nothing() -> None:
    scene = Scene("a")
    scene.in_flight.close()

    scene.slot.work()

    assert scene.ran == []
    assert [task.id for task in scene.in_flight.release_all()] == ["a"]


def test_what_was_cancelled_meanwhile_is_not_run() -> None:
    scene = Scene()
    scene.take("a", "b", cancelled=("a",))

    scene.slot.work()

    assert scene.ran == ["b"]
    assert [r.verdict for r in scene.in_flight.take_reports()] == ["cancelled", "done"]


def test_an_unknown_task_and_one_of_another_worker_have_no_report() -> None:
    scene = Scene("unknown", "lost", "a")

    scene.slot.work()

    assert [one.ability for one in scene.in_flight.take_unroutable()] == ["new@2"]
    assert [r.id for r in scene.in_flight.take_reports()] == ["a"]


def test_it_learns_how_much_to_take() -> None:
    scene = Scene("a", lasting=0.001)
    assert (scene.in_flight.room(), scene.in_flight.keep()) == (0, 8)

    scene.slot.work()

    assert (scene.in_flight.room(), scene.in_flight.keep()) == (4, 32)


def test_a_coroutine_that_has_ended_is_neither_kept_nor_cancelled() -> None:
    class Result:
        pass

    async def task() -> Result:
        return Result()

    loop = SlotEventLoop()
    result = loop.complete(task())
    alive = weakref.ref(result)
    del result

    assert alive() is None
    assert not loop.cancel()
    loop.close()


def test_an_interrupt_that_is_meant_for_the_worker_ends_the_work() -> None:
    scene = Scene("a", "interrupted", "b")

    with pytest.raises(KeyboardInterrupt):
        scene.slot.work()

    assert [r.id for r in scene.in_flight.take_reports()] == ["a"]
    assert [task.id for task in scene.in_flight.release_all()] == ["b"]
