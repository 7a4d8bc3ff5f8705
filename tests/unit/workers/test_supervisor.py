"""Which tasks are interrupted and given up, and what a silent Redis means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import pytest

from workstealing._logs import flush_logs
from workstealing.tasks.attempt import Attempt, Delivery
from workstealing.tasks.context import ExecutionContext, control_of
from workstealing.testing import ManualClock, wait_until
from workstealing.workers.lease import Lease
from workstealing.workers.supervisor import GRACE_SECONDS, Supervisor


class Slot:
    def __init__(self, timeout: float | None = None) -> None:
        self.attempt: Attempt | None = attempt(timeout)
        self.interrupted: list[Attempt] = []
        self.is_safe = True
        self.retries = 0

    def interrupt(self, attempt: Attempt) -> bool:
        attempt.is_interrupted = True
        self.interrupted.append(attempt)
        return self.is_safe

    def retry_interrupt(self) -> bool:
        self.retries += 1
        return self.is_safe


def attempt(timeout: float | None = None) -> Attempt:
    envelope: Any = type("Envelope", (), {"timeout": timeout})()
    facts = {"timeout": None, "is_coroutine": False, "ability": "task@1"}
    definition: Any = type("Definition", (), facts)()
    context = ExecutionContext("1", "task")
    return Attempt(Delivery("1", "t", 1, b""), envelope, definition, {}, context, 0)


class Scene:
    def __init__(self, *slots: Slot, tick: Callable[[], None] = lambda: None) -> None:
        self.clock = ManualClock(100.0)
        self.slots: Sequence[Slot] = slots
        self.given_up: list[tuple[Any, Attempt]] = []
        self.lost = 0
        self.shut_down = 0
        self.lease = Lease(15.0, self.clock)
        self.supervisor = Supervisor(
            "w.0",
            lambda: self.slots,
            self.lease,
            lease_lost=self._lose,
            give_up=lambda slot, attempt: self.given_up.append((slot, attempt)),
            shut_down=self._shut_down,
            tick=tick,
            clock=self.clock,
        )
        self.supervisor.look()

    def after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.supervisor.look()

    def _lose(self) -> None:
        self.lost += 1

    def _shut_down(self) -> None:
        self.shut_down += 1


def test_what_has_no_limit_may_run_for_ever() -> None:
    slot = Slot()
    scene = Scene(slot)

    scene.after(1e9)

    assert slot.interrupted == scene.given_up == []


def test_what_is_over_its_time_is_interrupted_once() -> None:
    slot = Slot(timeout=3.0)
    scene = Scene(slot)

    scene.after(3.0)
    assert slot.interrupted == []
    scene.after(0.1)
    scene.after(0.1)

    assert slot.attempt is not None
    assert slot.interrupted == [slot.attempt]
    assert slot.attempt.is_overdue


def test_what_does_not_stop_is_given_up_once_after_a_grace() -> None:
    slot = Slot(timeout=3.0)
    scene = Scene(slot)
    scene.after(3.1)

    scene.after(GRACE_SECONDS - 0.1)
    assert scene.given_up == []
    scene.after(0.1)
    scene.after(100.0)

    assert scene.given_up == [(slot, slot.attempt)]


def test_an_interrupt_that_was_put_off_is_delivered_later() -> None:
    slot = Slot(timeout=3.0)
    slot.is_safe = False
    scene = Scene(slot)
    assert scene.supervisor.retry_interrupts()

    scene.after(3.1)
    assert not scene.supervisor.retry_interrupts()
    slot.is_safe = True
    assert scene.supervisor.retry_interrupts()

    assert slot.retries == 2
    assert len(slot.interrupted) == 1


def test_what_was_given_up_is_interrupted_until_its_thread_comes_back() -> None:
    slot = Slot(timeout=3.0)
    slot.is_safe = False
    slots = [slot]
    scene = Scene()
    scene.slots = slots
    scene.after(0.0)
    scene.after(3.1)
    scene.after(GRACE_SECONDS)
    assert len(scene.given_up) == 1

    # Its slot was replaced, but its thread still runs the task.
    slots.clear()
    scene.after(0.1)
    scene.after(0.1)
    assert slot.retries == 3
    slot.attempt = None
    scene.after(0.1)

    assert slot.retries == 3
    assert scene.supervisor.retry_interrupts()


def test_what_stops_in_time_is_not_given_up() -> None:
    slot = Slot(timeout=3.0)
    scene = Scene(slot)
    scene.after(3.1)

    slot.attempt = None
    scene.after(100.0)

    assert scene.given_up == []


def test_the_next_task_of_a_slot_has_its_own_time() -> None:
    slot = Slot(timeout=3.0)
    scene = Scene(slot)
    scene.after(2.0)

    slot.attempt = attempt(3.0)
    scene.after(2.0)
    scene.after(2.0)

    assert slot.interrupted == []


def test_a_cancelled_task_may_stop_by_itself_before_it_is_interrupted() -> None:
    slot = Slot()
    scene = Scene(slot)
    assert slot.attempt is not None
    control_of(slot.attempt.context).is_cancelled = True
    scene.after(0.1)

    scene.after(GRACE_SECONDS - 0.1)
    assert slot.interrupted == []
    scene.after(0.2)

    assert slot.interrupted == [slot.attempt]
    assert not slot.attempt.is_overdue


def test_what_others_interrupted_is_given_up_too() -> None:
    slot = Slot()
    scene = Scene(slot)
    assert slot.attempt is not None
    slot.attempt.is_interrupted = True
    scene.after(0.1)

    scene.after(GRACE_SECONDS)

    assert scene.given_up == [(slot, slot.attempt)]
    assert slot.interrupted == []


def test_a_lease_that_nobody_renews_is_lost_when_it_ends() -> None:
    scene = Scene()

    scene.after(14.9)
    assert scene.lost == 0
    scene.after(0.2)
    assert scene.lost == 1

    scene.lease.renewed()
    scene.after(1.0)
    assert scene.lost == 1


def test_connections_are_shut_down_after_a_minute_of_silence_and_each_one_more() -> (
    None
):
    scene = Scene()

    scene.after(59.0)
    assert scene.shut_down == 0
    scene.after(2.0)
    scene.after(2.0)
    assert scene.shut_down == 1
    scene.after(60.0)

    assert scene.shut_down == 2


def test_a_look_that_fails_does_not_end_the_supervisor(
    caplog: pytest.LogCaptureFixture,
) -> None:
    looks, again = [], Event()

    def tick() -> None:
        looks.append(1)
        if len(looks) > 3:
            again.set()
        if len(looks) > 1:
            raise RuntimeError("not today")

    supervisor = Scene(tick=tick).supervisor
    supervisor.start()

    assert again.wait(10)
    supervisor.stop()
    assert flush_logs(10)
    assert "error in the supervisor of worker w.0" in caplog.text


def test_a_supervisor_that_hangs_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workstealing.workers.supervisor._ANSWER_SECONDS", 0.01)
    hangs, go_on = Event(), Event()

    def tick() -> None:
        if scene is not None:
            hangs.set()
            go_on.wait(20)

    scene = None
    made = Scene(tick=tick)
    scene = made
    scene.supervisor.start()
    assert hangs.wait(10)
    assert scene.supervisor.answers()

    scene.clock.advance(60.0)
    assert not scene.supervisor.answers()

    go_on.set()
    assert wait_until(scene.supervisor.answers, 10, "an answer")
    scene.supervisor.stop()
