"""Threads that pause between two looks end as soon as they are told to."""

from __future__ import annotations

import threading
from multiprocessing import Pipe
from threading import Event
from typing import Any

import pytest

from workstealing.errors import RedisUnavailable
from workstealing.testing import wait_until
from workstealing.workers import child_logs, redis_threads
from workstealing.workers.child_logs import LogReader
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

    wait_until(
        lambda: "read-no-logs" not in {one.name for one in threading.enumerate()},
        20,
        "the thread to end",
    )
