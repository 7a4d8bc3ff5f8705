"""Tasks that a worker left behind in other shards; here the test is Redis and time."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing.client.shards import Shards
from workstealing.errors import RedisUnavailable
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call
from workstealing.queue.worker_calls import Departure, Exchanged
from workstealing.tasks.attempt import Delivery, Report
from workstealing.tasks.context import ExecutionContext
from workstealing.testing import ManualClock
from workstealing.workers.batching import Batching
from workstealing.workers.identity import WorkerIdentity
from workstealing.workers.in_flight import InFlight
from workstealing.workers.lease import Lease
from workstealing.workers.outposts import Outposts
from workstealing.workers.worker_stats import LoopStats

HUNG_SECONDS = 5.0
AWAY = RedisUnavailable("nobody answers")


def exchanged(
    *cancelled: str, refused: tuple[str, ...] = (), is_overdue: bool = False
) -> Exchanged:
    return Exchanged((), refused, cancelled, (), 0, is_overdue=is_overdue, delayed=0)


class Scene:
    """A worker in the first of three shards that left tasks behind in the others.

    Answers to `exchange` are those of its shard, in their order: what it brings, None
    for a lost lease, or an error. A shard without any answers that all is well.
    """

    def __init__(self) -> None:
        self.clock = ManualClock(100.0)
        settings = QueueSettings()
        shards = Shards("queue", "run", 3, settings, self.clock)
        identity = WorkerIdentity(
            shards, shards.all[0], settings, "w.0", "1", {"abilities": []}
        )
        self.shards = shards.all
        self.in_flight = InFlight(Batching(), self.clock)
        self.in_flight.resize(4)
        self.stats = LoopStats()
        self.calls: list[tuple[str, int]] = []
        self.arguments: list[tuple[Any, ...]] = []
        self.answers: dict[int, list[Any]] = {}
        self.attempts: list[Any] = []
        lease = Lease(15.0, self.clock)
        slots: Any = self
        self.duties: list[tuple[int, Exchanged]] = []
        self.is_away_for_duties = False
        self.outposts = Outposts(
            identity,
            self.in_flight,
            slots,
            lease,
            self.stats,
            self.clock,
            self.do_duties,
        )

    def leave_behind(self, shard: int, *ids: str) -> list[Delivery]:
        """Begin tasks of a shard, and go away from them."""
        tasks = [Delivery(one, f"t{one}", 1, b"{}", shard=shard) for one in ids]
        for _ in tasks:
            self.in_flight.slot_is_idle()
        self.in_flight.take(tasks, ())
        for one in tasks:
            assert self.in_flight.begin() == one
            self.in_flight.slot_is_busy()
        self.outposts.leave_behind(self.shards[shard], is_unsure=False)
        return tasks

    def finish(self, task: Delivery) -> None:
        self.in_flight.finish(task, Report(task.id, task.token, "done"), 0.01)

    def tend(self) -> list[tuple[str, int]]:
        """Return what was called, and of which shard."""
        self.calls.clear()
        driver: Any = self
        self.outposts.tend(driver)
        return self.calls

    def leave(self) -> list[tuple[str, int]]:
        self.calls.clear()
        driver: Any = self
        self.outposts.leave(driver)
        return self.calls

    # The driver.

    def call(self, call: Call[Any]) -> Any:
        shard = next(at for at, one in enumerate(self.shards) if one.bell in call.keys)
        name = call.script.name
        self.calls.append((name, shard))
        self.arguments.append(call.arguments)
        if name == "leave":
            return Departure(0, 0)
        answers = self.answers.get(shard)
        answer = answers.pop(0) if answers else exchanged()
        if isinstance(answer, BaseException):
            # Who does not answer is waited for.
            self.clock.advance(HUNG_SECONDS)
            raise answer
        return answer

    # The loop.

    def do_duties(self, driver: Any, keys: QueueKeys, exchanged: Exchanged) -> None:
        assert driver is self
        self.duties.append((keys.shard, exchanged))
        if self.is_away_for_duties:
            raise AWAY

    # The slots.

    def all(self) -> list[Any]:
        return self.attempts


def running(task: Delivery) -> tuple[Any, ExecutionContext]:
    """Return a slot that runs a task, and what the task is told."""
    context = ExecutionContext(task.id, "add")
    attempt = type("A", (), {"context": context, "task": task})()
    return type("S", (), {"attempt": attempt})(), context


def test_a_lease_is_renewed_when_that_is_due_and_not_before() -> None:
    scene = Scene()
    scene.leave_behind(1, "a")

    assert scene.tend() == []
    scene.clock.advance(1.0)
    assert scene.tend() == [("exchange", 1)]
    assert scene.tend() == []


def test_a_report_is_delivered_at_once_and_the_last_one_ends_the_membership() -> None:
    scene = Scene()
    first, last = scene.leave_behind(1, "a", "b")

    scene.finish(first)
    assert scene.tend() == [("exchange", 1)]
    assert scene.outposts.has(1)
    scene.finish(last)
    assert scene.tend() == [("exchange", 1), ("leave", 1)]
    assert not scene.outposts


def test_a_report_goes_to_the_shard_of_its_task() -> None:
    scene = Scene()
    scene.leave_behind(1, "a")
    (task,) = scene.leave_behind(2, "b")

    scene.finish(task)

    assert scene.tend() == [("exchange", 2), ("leave", 2)]
    assert "b" in scene.arguments[0]


def test_a_node_that_hangs_is_left_alone_for_a_while_after_it_has_failed() -> None:
    scene = Scene()
    (task,) = scene.leave_behind(1, "a")
    scene.answers[1] = [AWAY] * 2
    scene.finish(task)

    assert scene.tend() == [("exchange", 1)]
    # Else each turn of the worker would wait for it.
    assert scene.tend() == []
    scene.clock.advance(4.9)
    assert scene.tend() == []
    scene.clock.advance(0.2)
    assert scene.tend() == [("exchange", 1)]
    assert scene.stats.failures == 2


def test_after_a_failure_reports_are_repeated_and_what_is_held_is_named() -> None:
    scene = Scene()
    first, _ = scene.leave_behind(1, "a", "b")
    scene.answers[1] = [AWAY]
    scene.finish(first)

    scene.tend()
    scene.clock.advance(10.0)
    scene.tend()

    before, after = scene.arguments
    assert "b" not in before
    assert {"a", "ta", "done", "b"} <= set(after)
    assert scene.tend() == [], "and that once"


def test_a_node_that_hangs_keeps_no_report_from_another() -> None:
    scene = Scene()
    (first,) = scene.leave_behind(1, "a")
    (second,) = scene.leave_behind(2, "b")
    scene.answers[1] = [AWAY] * 9
    scene.finish(first)
    scene.finish(second)

    assert scene.tend() == [("exchange", 1), ("exchange", 2), ("leave", 2)]
    assert scene.outposts.has(1)
    assert not scene.outposts.has(2)


def test_a_task_that_is_cancelled_there_is_told() -> None:
    scene = Scene()
    (task,) = scene.leave_behind(1, "a")
    slot, context = running(task)
    scene.attempts.append(slot)
    scene.answers[1] = [exchanged("a")]

    scene.clock.advance(1.0)
    scene.tend()

    assert context.cancelled
    assert not context.lease_lost


@pytest.mark.parametrize("answers", [[None], [AWAY] * 2], ids=["told", "assumed"])
def test_a_task_whose_lease_is_lost_there_is_told(answers: list[Any]) -> None:
    scene = Scene()
    (task,) = scene.leave_behind(1, "a")
    slot, context = running(task)
    scene.attempts.append(slot)
    scene.answers[1] = list(answers)

    for _ in answers:
        scene.clock.advance(6.0)
        scene.tend()

    assert context.lease_lost
    is_told = answers == [None]
    assert scene.stats.lost_leases == is_told
    assert scene.outposts.has(1) == (not is_told)


def test_upkeep_that_it_was_chosen_for_there_is_done_there() -> None:
    scene = Scene()
    scene.leave_behind(1, "a")
    scene.answers[1] = [exchanged(is_overdue=True)]

    scene.clock.advance(1.0)
    scene.tend()

    assert scene.duties == [(1, exchanged(is_overdue=True))]


def test_upkeep_that_fails_there_keeps_no_lease_from_being_renewed() -> None:
    scene = Scene()
    scene.leave_behind(1, "a")
    scene.leave_behind(2, "b")
    scene.is_away_for_duties = True

    for _ in range(2):
        scene.clock.advance(1.0)
        assert scene.tend() == [("exchange", 1), ("exchange", 2)]


def test_of_a_shard_that_it_comes_back_to_it_holds_what_it_left() -> None:
    scene = Scene()
    (task,) = scene.leave_behind(1, "a")

    scene.outposts.come_back(1)
    scene.finish(task)

    assert scene.tend() == []
    assert [one.id for one in scene.in_flight.take_reports()] == ["a"]


def test_who_leaves_reports_what_is_finished_and_hands_back_the_rest() -> None:
    scene = Scene()
    (task,) = scene.leave_behind(1, "a")
    scene.leave_behind(2, "b")
    scene.finish(task)

    assert sorted(scene.leave()) == [
        *(("exchange", 1), ("exchange", 2)),
        *(("leave", 1), ("leave", 2)),
    ]
    assert not scene.outposts
