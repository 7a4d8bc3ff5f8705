"""What one worker has in flight, and when an exchange is due."""

from __future__ import annotations

from workstealing.tasks.attempt import Delivery, Report, Unroutable
from workstealing.testing import ManualClock
from workstealing.workers.batching import Batching
from workstealing.workers.in_flight import InFlight


class Scene:
    """A worker with some slots, whose time a test moves."""

    def __init__(self, size: int = 2) -> None:
        self.clock = ManualClock(100.0)
        self.batching = Batching()
        self.in_flight = InFlight(self.batching, self.clock)
        self.in_flight.resize(size)
        self.listened = 0
        self.fed = 0

    def take(self, *ids: str, cancelled: tuple[str, ...] = ()) -> list[Delivery]:
        tasks = [Delivery(task_id, "t", 1, b"") for task_id in ids]
        self.fed = self.in_flight.take(tasks, cancelled)
        return tasks

    def learn(self, seconds: float) -> None:
        for _ in range(9):
            self.batching.lasted(10, 10 * seconds)

    def is_due(self) -> bool:
        return self.in_flight.is_exchange_due()

    def wait(self) -> None:
        self.in_flight.wait_until_due(1.0, self._listen)

    def _listen(self) -> None:
        self.listened += 1


def report(task: Delivery) -> Report:
    return Report(task.id, task.token, "done")


def test_slots_take_what_waits_in_its_order() -> None:
    scene = Scene()
    tasks = scene.take("a", "b")

    assert [scene.in_flight.begin(), scene.in_flight.begin()] == tasks
    assert scene.in_flight.begin() is None


def test_idle_slots_are_fed_and_no_more_of_them_than_there_is_work() -> None:
    scene = Scene(size=3)
    scene.in_flight.slot_is_idle()
    scene.in_flight.slot_is_idle()

    scene.take("a")
    assert scene.fed == 1
    scene.take("b", "c", "d")
    assert scene.fed == 2


def test_with_long_tasks_each_idle_slot_wants_one() -> None:
    scene = Scene(size=3)
    scene.learn(1.0)
    assert scene.in_flight.room() == 0

    scene.in_flight.slot_is_idle()
    scene.in_flight.slot_is_idle()

    assert scene.in_flight.room() == 2


def test_with_quick_tasks_there_is_room_for_a_batch_per_slot() -> None:
    scene = Scene(size=3)
    scene.learn(0.005)
    scene.take("a", "b")

    assert scene.in_flight.room() == 3 * 10 - 2


def test_it_is_busy_until_what_it_reported_was_delivered() -> None:
    scene = Scene()
    (task,) = scene.take("a")
    scene.in_flight.begin()
    scene.in_flight.finish(task, report(task), 0.1)

    reports = scene.in_flight.take_reports()
    assert reports == [report(task)]
    assert scene.in_flight.is_busy()
    scene.in_flight.delivered(reports)

    assert not scene.in_flight.is_busy()
    assert scene.in_flight.take_reports() == []


def test_reports_in_doubt_are_delivered_again_in_their_order() -> None:
    scene = Scene()
    first, second = scene.take("a", "b")
    scene.in_flight.begin()
    scene.in_flight.begin()
    scene.in_flight.finish(first, report(first), 0.1)
    reports = scene.in_flight.take_reports()
    scene.in_flight.finish(second, report(second), 0.1)

    scene.in_flight.keep_reports(reports)

    assert scene.in_flight.take_reports() == [report(first), report(second)]


def test_after_a_lost_reply_all_that_is_held_is_named_once() -> None:
    scene = Scene()
    assert scene.in_flight.held_besides([], is_occasion=True) == ()
    scene.take("a", "b")
    scene.in_flight.begin()
    assert scene.in_flight.held_besides([], is_occasion=True) is None

    scene.in_flight.doubt()

    held = scene.in_flight.held_besides([], is_occasion=False)
    assert set(held or ()) == {"a", "b"}
    assert scene.in_flight.held_besides([], is_occasion=True) is None


def test_without_doubt_nothing_is_named_but_on_occasion() -> None:
    scene = Scene()

    assert scene.in_flight.held_besides([], is_occasion=False) is None
    assert scene.in_flight.held_besides([], is_occasion=True) == ()


def test_when_all_that_is_held_is_reported_nothing_is_named_as_held() -> None:
    scene = Scene()
    first, second = scene.take("a", "b")
    assert scene.in_flight.held_besides([report(first)], is_occasion=True) is None
    assert (
        scene.in_flight.held_besides([report(first), report(second)], is_occasion=True)
        == ()
    )

    late = Report("x", "an older token", "done")
    assert scene.in_flight.held_besides([report(first), late], is_occasion=True) is None


def test_what_no_slot_came_to_begin_is_put_down_and_not_asked_for_again() -> None:
    scene = Scene(size=1)
    scene.learn(0.005)
    running, waiting = scene.take("a", "b")
    scene.in_flight.begin()

    scene.clock.advance(0.06)
    assert scene.in_flight.release_if_stuck() == []
    scene.clock.advance(0.06)
    assert scene.in_flight.release_if_stuck() == [waiting]
    assert scene.in_flight.room() == 0

    scene.in_flight.finish(running, report(running), 0.005)
    assert scene.in_flight.room() > 0


def test_what_waits_is_kept_while_slots_begin_something() -> None:
    scene = Scene()
    scene.take("a", "b", "c")

    for _ in range(2):
        scene.in_flight.begin()
        scene.clock.advance(0.06)
        assert scene.in_flight.release_if_stuck() == []


def test_after_a_lost_lease_nothing_is_held_but_what_runs_may_still_report() -> None:
    scene = Scene()
    first, _ = scene.take("a", "b")
    scene.in_flight.begin()

    scene.in_flight.drop_all()

    assert not scene.in_flight.is_busy()
    assert (scene.in_flight.begin(), scene.in_flight.take_reports()) == (None, [])
    assert scene.in_flight.finish(first, report(first), 0.1)
    assert scene.in_flight.take_reports() == [report(first)]


def test_a_task_is_finished_once_though_its_id_comes_back() -> None:
    scene = Scene()
    (given_up,) = scene.take("a")
    scene.in_flight.begin()
    assert scene.in_flight.finish(given_up, report(given_up), 0.1)
    (again,) = scene.take("a")
    scene.in_flight.begin()

    assert not scene.in_flight.finish(given_up, report(given_up), 0.1)
    assert scene.in_flight.finish(again, report(again), 0.1)


def test_a_late_report_does_not_let_go_of_a_task_that_came_back() -> None:
    scene = Scene()
    (first,) = scene.take("a")
    scene.in_flight.begin()
    scene.in_flight.drop_all()
    again = Delivery("a", "another token", 2, b"")
    scene.in_flight.take([again], ())
    scene.in_flight.begin()

    scene.in_flight.finish(first, report(first), 1.0)
    reports = scene.in_flight.take_reports()
    assert scene.in_flight.held_besides(reports, is_occasion=True) is None
    scene.in_flight.delivered(reports)

    assert scene.in_flight.is_busy()
    scene.in_flight.doubt()
    assert scene.in_flight.held_besides([], is_occasion=True) == ("a",)
    scene.in_flight.finish(again, report(again), 1.0)
    scene.in_flight.delivered(scene.in_flight.take_reports())
    assert not scene.in_flight.is_busy()


def test_ids_that_were_cancelled_are_known_until_the_next_exchange() -> None:
    scene = Scene()

    scene.take("b", cancelled=("a", "b"))
    assert scene.in_flight.cancelled == {"a", "b"}
    scene.take("c")

    assert scene.in_flight.cancelled == frozenset()


def test_what_no_slot_can_run_is_told_and_no_longer_held() -> None:
    scene = Scene()
    (task,) = scene.take("a")
    scene.in_flight.begin()

    scene.in_flight.finish(task, Unroutable(task, "new@2"), 0.0)

    assert scene.is_due()
    assert scene.in_flight.take_unroutable() == [Unroutable(task, "new@2")]
    assert not scene.in_flight.is_busy()


def test_an_exchange_is_due_when_a_slot_falls_idle() -> None:
    scene = Scene()
    scene.learn(1.0)
    scene.take("a", "b")
    scene.in_flight.take_reports()
    assert not scene.is_due()

    scene.in_flight.slot_is_idle()

    assert scene.is_due()


def test_an_exchange_is_due_for_a_report_of_50_ms_even_with_long_tasks() -> None:
    scene = Scene()
    scene.learn(1.0)
    task, _ = scene.take("a", "b")
    scene.in_flight.begin()
    scene.in_flight.begin()
    scene.in_flight.take_reports()
    scene.in_flight.finish(task, report(task), 1.0)
    assert not scene.is_due()

    scene.clock.advance(0.06)

    assert scene.is_due()


def test_an_exchange_is_due_when_the_stock_of_quick_tasks_runs_low() -> None:
    scene = Scene()
    scene.learn(0.005)
    scene.take("a", "b", "c")
    scene.in_flight.take_reports()
    assert not scene.is_due()

    scene.in_flight.begin()
    scene.in_flight.begin()

    assert scene.is_due()


def test_wake_ups_are_listened_for_only_while_a_slot_has_nothing_to_do() -> None:
    scene = Scene()
    scene.take("a")
    scene.in_flight.make_exchange_due()
    scene.wait()
    assert scene.listened == 0
    scene.in_flight.begin()

    scene.in_flight.slot_is_idle()
    scene.wait()

    assert scene.listened == 1
