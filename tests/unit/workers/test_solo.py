"""A crew of one works through what its hands hold, for about 50 ms at a time."""

from __future__ import annotations

from typing import Any

from workstealing.tasks.attempt import Report, Taken, Unable
from workstealing.testing import ManualClock
from workstealing.workers.batching import Batching
from workstealing.workers.hands import Hands
from workstealing.workers.solo import Solo


class Scene:
    """One who runs tasks that last as long as the test says."""

    def __init__(self, *ids: str, lasting: float = 0.01) -> None:
        self.clock = ManualClock()
        self.hands = Hands()
        self.ran: list[str] = []
        self.lasting = lasting
        self.is_stopping = False
        runner: Any = self
        executor: Any = self
        self.solo = Solo(
            self.hands,
            Batching(),
            executor,
            runner,
            bell="bell",
            is_stopping=lambda: self.is_stopping,
            clock=self.clock,
        )
        self.hands.take([Taken(task_id, "t", 1, b"") for task_id in ids])

    def execute(self, task: Taken) -> Any:
        self.ran.append(task.id)
        self.clock.advance(self.lasting)
        if task.id == "unable":
            return Unable(task, "new@2")
        return None if task.id == "lost" else Report(task.id, "t", "done")

    def cancelled(self, task: Taken) -> Report:
        return Report(task.id, "t", "cancelled")


def test_it_runs_what_it_holds_in_its_order_and_keeps_the_reports() -> None:
    scene = Scene("a", "b")

    assert scene.solo.work() == []

    assert scene.ran == ["a", "b"]
    assert [r.id for r in scene.hands.take_reports()] == ["a", "b"]
    assert not scene.solo.is_busy()


def test_after_50_ms_it_looks_up() -> None:
    scene = Scene("a", "b", "c", lasting=0.03)

    scene.solo.work()

    assert scene.ran == ["a", "b"]
    assert scene.solo.is_busy()


def test_when_it_is_to_stop_it_begins_nothing() -> None:
    scene = Scene("a")
    scene.is_stopping = True

    scene.solo.work()

    assert scene.ran == []
    assert [task.id for task in scene.solo.put_all_down()] == ["a"]


def test_what_was_cancelled_meanwhile_is_not_run() -> None:
    scene = Scene("a", "b")
    scene.hands.cancelled = {"a"}

    scene.solo.work()

    assert scene.ran == ["b"]
    assert [r.verdict for r in scene.hands.take_reports()] == ["cancelled", "done"]


def test_what_it_cannot_run_and_what_is_anothers_has_no_report() -> None:
    scene = Scene("unable", "lost", "a")

    unable = scene.solo.work()

    assert [one.ability for one in unable] == ["new@2"]
    assert [r.id for r in scene.hands.take_reports()] == ["a"]


def test_it_learns_how_much_to_take() -> None:
    scene = Scene("a", lasting=0.001)
    assert (scene.solo.room(), scene.solo.keep()) == (0, 8)

    scene.solo.work()

    assert (scene.solo.room(), scene.solo.keep()) == (4, 32)
