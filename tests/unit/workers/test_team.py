"""What the slots of one worker hold together, and when an exchange is due."""

from __future__ import annotations

from typing import Any

from workstealing.tasks.attempt import Report, Taken, Unable
from workstealing.testing import ManualClock
from workstealing.workers.batching import Batching
from workstealing.workers.team import Team


class Scene:
    """A team of some slots, whose time a test moves."""

    def __init__(self, size: int = 2) -> None:
        self.clock = ManualClock(100.0)
        self.fed: list[int] = []
        self.listened = 0
        self.batching = Batching()
        self.attempts: list[Any] = []
        self.team = Team(
            self.batching,
            beat=1.0,
            attempts=lambda: self.attempts,
            feed=self.fed.append,
            listen=self._listen,
            clock=self.clock,
        )
        self.team.size = size

    def _listen(self) -> None:
        self.listened += 1

    def take(self, *ids: str, cancelled: tuple[str, ...] = ()) -> list[Taken]:
        tasks = [Taken(task_id, "t", 1, b"") for task_id in ids]
        facts = {"tasks": tasks, "cancelled": cancelled}
        exchanged: Any = type("Exchanged", (), facts)()
        self.team.take(exchanged)
        return tasks

    def learn(self, seconds: float) -> None:
        for _ in range(9):
            self.batching.lasted(10, 10 * seconds)

    def is_due(self) -> bool:
        """Whether whoever leads would not wait any longer."""
        return self.team._is_exchange_due()


def report(task: Taken) -> Report:
    return Report(task.id, task.token, "done")


def test_slots_take_what_waits_in_its_order() -> None:
    scene = Scene()
    tasks = scene.take("a", "b")

    assert [scene.team.begin(), scene.team.begin()] == tasks
    assert scene.team.begin() is None


def test_idle_slots_are_fed_and_no_more_of_them_than_there_is_work() -> None:
    scene = Scene(size=3)
    scene.team.sit_down()
    scene.team.sit_down()

    scene.take("a")
    scene.take("b", "c", "d")

    assert scene.fed == [1, 2]


def test_with_long_tasks_each_idle_slot_wants_one() -> None:
    scene = Scene(size=3)
    scene.learn(1.0)
    assert scene.team.room() == 0

    scene.team.sit_down()
    scene.team.sit_down()

    assert scene.team.room() == 2


def test_with_quick_tasks_there_is_room_for_a_batch_per_slot() -> None:
    scene = Scene(size=3)
    scene.learn(0.005)
    scene.take("a", "b")

    assert scene.team.room() == 3 * 10 - 2


def test_it_is_busy_until_what_it_reported_was_delivered() -> None:
    scene = Scene()
    (task,) = scene.take("a")
    scene.team.begin()
    scene.team.finish(task, report(task), 0.1)

    reports = scene.team.take_reports()
    assert reports == [report(task)]
    assert scene.team.is_busy()
    scene.team.delivered(reports)

    assert not scene.team.is_busy()
    assert scene.team.take_reports() == []


def test_reports_in_doubt_are_delivered_again_in_their_order() -> None:
    scene = Scene()
    first, second = scene.take("a", "b")
    scene.team.finish(first, report(first), 0.1)
    reports = scene.team.take_reports()
    scene.team.finish(second, report(second), 0.1)

    scene.team.keep_reports(reports)

    assert scene.team.take_reports() == [report(first), report(second)]


def test_after_a_lost_reply_all_that_is_held_is_named_once() -> None:
    scene = Scene()
    assert scene.team.known() == ()
    scene.take("a", "b")
    scene.team.begin()
    assert scene.team.known() is None

    scene.team.doubt()

    assert set(scene.team.known() or ()) == {"a", "b"}
    assert scene.team.known() is None


def test_what_no_slot_came_to_begin_is_put_down_and_not_asked_for_again() -> None:
    scene = Scene(size=1)
    scene.learn(0.005)
    running, waiting = scene.take("a", "b")
    scene.team.begin()

    scene.clock.advance(0.06)
    assert scene.team.put_down() == ()
    scene.clock.advance(0.06)
    assert scene.team.put_down() == [waiting]
    assert scene.team.room() == 0

    scene.team.finish(running, report(running), 0.005)
    assert scene.team.room() > 0


def test_what_waits_is_kept_while_slots_begin_something() -> None:
    scene = Scene()
    scene.take("a", "b", "c")

    for _ in range(2):
        scene.team.begin()
        scene.clock.advance(0.06)
        assert scene.team.put_down() == ()


def test_a_lost_lease_leaves_nothing_and_those_who_run_are_told() -> None:
    scene = Scene()
    told = []
    context: Any = type("C", (), {"tell_lease_lost": lambda _: told.append(1)})()
    scene.attempts = [type("A", (), {"context": context})()]
    first, _ = scene.take("a", "b")
    scene.team.begin()
    scene.team.finish(first, report(first), 0.1)

    scene.team.drop_all()

    assert told == [1]
    assert not scene.team.is_busy()
    assert (scene.team.begin(), scene.team.take_reports()) == (None, [])


def test_a_cancellation_reaches_what_runs_and_what_waits() -> None:
    scene = Scene()
    told = []
    context: Any = type("C", (), {"tell_cancelled": lambda _: told.append(1)})()
    (task,) = scene.take("a")
    scene.attempts = [type("A", (), {"context": context, "task": task})()]

    scene.take("b", cancelled=("a", "b"))

    assert told == [1]
    assert scene.team.cancelled == {"a", "b"}


def test_what_no_slot_can_run_is_told_and_no_longer_held() -> None:
    scene = Scene()
    (task,) = scene.take("a")
    scene.team.begin()

    scene.team.finish(task, Unable(task, "new@2"), 0.0)

    assert scene.team.work() == [Unable(task, "new@2")]
    assert not scene.team.is_busy()


def test_an_exchange_is_due_when_a_slot_falls_idle() -> None:
    scene = Scene()
    scene.learn(1.0)
    scene.take("a", "b")
    scene.team.take_reports()
    assert not scene.is_due()

    scene.team.sit_down()

    assert scene.is_due()


def test_an_exchange_is_due_for_a_report_of_50_ms_even_with_long_tasks() -> None:
    scene = Scene()
    scene.learn(1.0)
    task, _ = scene.take("a", "b")
    scene.team.begin()
    scene.team.begin()
    scene.team.take_reports()
    scene.team.finish(task, report(task), 1.0)
    assert not scene.is_due()

    scene.clock.advance(0.06)

    assert scene.is_due()


def test_an_exchange_is_due_when_the_stock_of_quick_tasks_runs_low() -> None:
    scene = Scene()
    scene.learn(0.005)
    scene.take("a", "b", "c")
    scene.team.take_reports()
    assert not scene.is_due()

    scene.team.begin()
    scene.team.begin()

    assert scene.is_due()


def test_the_bell_is_listened_for_only_while_a_slot_has_nothing_to_do() -> None:
    scene = Scene()
    scene.take("a")
    scene.team.poke()
    scene.team.work()
    assert scene.listened == 0
    scene.team.begin()

    scene.team.sit_down()
    scene.team.work()

    assert scene.listened == 1
