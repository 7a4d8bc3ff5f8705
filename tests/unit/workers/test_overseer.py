"""Who is asked to stop, who is interrupted, who is given up, and when."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing.tasks.attempt import Attempt, Taken
from workstealing.tasks.context import ExecutionContext
from workstealing.testing import ManualClock
from workstealing.workers.overseer import GRACE_SECONDS, Overseer


class Slot:
    def __init__(self, timeout: float | None = None) -> None:
        self.attempt: Attempt | None = attempt(timeout)
        self.interrupted: list[Attempt] = []

    def interrupt(self, attempt: Attempt) -> bool:
        attempt.is_interrupted = True
        self.interrupted.append(attempt)
        return True


def attempt(timeout: float | None = None) -> Attempt:
    envelope: Any = type("Envelope", (), {"timeout": timeout})()
    definition: Any = type("Definition", (), {"timeout": None})()
    context = ExecutionContext("1", "task")
    return Attempt(Taken("1", "t", 1, b""), envelope, definition, {}, context, 0)


class Scene:
    def __init__(self, *slots: Slot) -> None:
        self.clock = ManualClock(100.0)
        self.given_up: list[tuple[Any, Attempt]] = []
        self.overseer = Overseer(
            lambda: slots,
            lambda slot, attempt: self.given_up.append((slot, attempt)),
            lambda: None,
            self.clock,
        )
        self.overseer.look()

    def after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.overseer.look()


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
    slot.attempt.context.tell_cancelled()
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


def test_a_failing_look_does_not_end_the_watch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from threading import Event

    looks, again = [], Event()

    def slots() -> list[Any]:
        looks.append(1)
        if len(looks) > 2:
            again.set()
        raise RuntimeError("not today")

    overseer = Overseer(slots, lambda *_: None, lambda: None, ManualClock())
    overseer.start()

    assert again.wait(10)
    overseer.stop()
    assert "the watch over a pool failed" in caplog.text
