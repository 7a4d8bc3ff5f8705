"""The lease of a process while a brief task runs there for long."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest

from workstealing.errors import RedisUnavailable
from workstealing.queue.brief_calls import StillHeld
from workstealing.tasks.attempt import Attempt, Delivery
from workstealing.tasks.context import ExecutionContext
from workstealing.testing import ManualClock, wait_until
from workstealing.workers.spare_lease import SpareLease


class Queue:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.lease = SpareLease(3.0, self.clock)
        self.is_away = False
        self.asked = 0
        self.held = StillHeld(("t",), ())
        context = ExecutionContext("t", "long")
        missing: Any = None
        self.attempt = Attempt(
            Delivery("t", "1", 1, b""), missing, missing, {}, context, 0
        )

    def renew(self) -> StillHeld:
        self.asked += 1
        if self.is_away:
            raise RedisUnavailable("gone")
        return self.held

    def look_after(self, seconds: float) -> ExecutionContext:
        self.clock.advance(seconds)
        self.lease.look()
        return self.attempt.context


def test_a_lease_is_renewed_when_a_third_of_it_is_over() -> None:
    queue = Queue()
    with queue.lease.kept(queue.attempt, queue.renew):
        queue.look_after(0.9)
        assert queue.asked == 0
        queue.look_after(0.1)
        queue.look_after(0.9)
        assert queue.asked == 1
    queue.look_after(10)
    assert queue.asked == 1, "nothing runs"
    queue.lease.close()


def test_a_task_learns_that_it_is_to_stop_or_that_others_may_have_it() -> None:
    queue = Queue()
    queue.is_away = True
    with queue.lease.kept(queue.attempt, queue.renew):
        assert not queue.look_after(2.9).lease_lost
        assert queue.look_after(0.1).lease_lost
    queue.lease.close()

    queue = Queue()
    queue.held = StillHeld(("other",), ())
    with queue.lease.kept(queue.attempt, queue.renew):
        assert queue.look_after(1).lease_lost
    queue.lease.close()

    queue = Queue()
    queue.held = StillHeld(("t",), ("t",))
    with queue.lease.kept(queue.attempt, queue.renew):
        assert queue.look_after(1).cancelled
    queue.lease.close()


def test_a_task_that_outlasts_its_job_keeps_its_lease() -> None:
    queue = Queue()
    with queue.lease.kept(queue.attempt, queue.renew):
        queue.lease.close()
        queue.clock.advance(1)
        wait_until(lambda: queue.asked == 1, 20, "the lease to be renewed")
    queue.lease.close()


def test_a_task_runs_although_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = Queue()

    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(Thread, "start", refuse)
        with queue.lease.kept(queue.attempt, queue.renew):
            queue.look_after(1)
    assert queue.asked == 1

    with queue.lease.kept(queue.attempt, queue.renew):
        queue.clock.advance(1)
        wait_until(lambda: queue.asked == 2, 20, "a thread, now that there may be one")
    queue.lease.close()
