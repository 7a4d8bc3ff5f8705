"""Threads that pause between two looks end as soon as they are told to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing import Pipe
from threading import Event, Thread
from typing import Any

import pytest

from workstealing.errors import RedisUnavailable
from workstealing.testing import wait_until
from workstealing.workers import child_logs, lent_slot, redis_threads
from workstealing.workers.async_slots import _SpareThreads
from workstealing.workers.child_logs import LogReader
from workstealing.workers.lent_slot import LentThread
from workstealing.workers.redis_threads import WakeUpListener

# Longer than any test may take.
_FOR_EVER = 600.0


class AwayDriver:
    """A connection to a server that does not answer."""

    def __init__(self) -> None:
        self.was_called, self.is_closed = Event(), Event()

    def call(self, command: Any) -> Any:
        self.was_called.set()
        raise RedisUnavailable("away")

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed.set()


def wait_for_the_end_of(name: str) -> None:
    wait_until(
        lambda: name not in {one.name for one in threading.enumerate()},
        20,
        "the thread to end",
    )


def event_that_is_cleared_too_late(meanwhile: Callable[[], None]) -> type[Event]:
    """Return events; before the first `clear()` of any, something else happens."""
    left = [meanwhile]

    class LateEvent(Event):
        def clear(self) -> None:
            while left:
                left.pop()()
            super().clear()

    return LateEvent


def test_one_that_listens_for_wake_ups_ends_although_redis_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis_threads, "_PAUSE_SECONDS", _FOR_EVER)
    driver: Any = AwayDriver()
    listener = WakeUpListener(driver, lambda: "bell", 1.0, lambda: True)
    listener.start()
    listener.listen()
    assert driver.was_called.wait(20)

    listener.stop()

    assert driver.is_closed.wait(20)


def test_one_that_is_told_to_end_as_it_begins_to_listen_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = event_that_is_cleared_too_late(lambda: listener.stop())
    monkeypatch.setattr(redis_threads, "Event", late)
    driver: Any = AwayDriver()
    listener = WakeUpListener(driver, lambda: "bell", 1.0, lambda: True)
    listener.start()

    listener.listen()

    assert driver.is_closed.wait(20)


def test_one_that_lends_a_slot_ends_if_the_last_loop_does_as_it_looks_for_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class IdleEngine:
        """A worker without tasks, whose loop goes on until it may end."""

        def __init__(self) -> None:
            self.slots, self.may_end = self, Event()
            self.run_task, self.enter = lambda: False, lambda phase: None

        def run(self) -> None:
            assert self.may_end.wait(20)

    engine: Any = IdleEngine()

    def end_loop() -> None:
        engine.may_end.set()
        for loop in lent._loops:
            loop.join(20)

    monkeypatch.setattr(lent_slot, "Event", event_that_is_cleared_too_late(end_loop))
    lent = LentThread()
    main = Thread(target=lent.run, args=([engine],), daemon=True)
    main.start()

    main.join(20)

    assert not main.is_alive()


def test_one_that_still_runs_a_task_when_its_pool_is_closed_ends_after_that() -> None:
    began, may_end = Event(), Event()

    def task() -> None:
        began.set()
        assert may_end.wait(20)

    threads = _SpareThreads("left-behind")
    threads.run(task)
    assert began.wait(20)

    threads.close()
    may_end.set()

    wait_for_the_end_of("left-behind")


def test_one_that_reads_logs_ends_although_there_is_no_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child_logs, "_LOOK_SECONDS", _FOR_EVER)
    reader = LogReader("read-no-logs")
    ours, childs = Pipe(duplex=False)
    reader.add(ours)
    reader.start()
    childs.close()
    wait_until(lambda: ours.closed, 20, "the end of the pipe to be read")

    reader.stop()

    wait_for_the_end_of("read-no-logs")
