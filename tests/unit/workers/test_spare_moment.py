"""What is left of a slice, for brief tasks."""

from __future__ import annotations

from typing import Any

from workstealing import Recruiter
from workstealing.recruiting.slice import time_left
from workstealing.testing import ManualClock
from workstealing.workers.learnt_times import LearntTimes
from workstealing.workers.spare_moment import SpareMoment


def moments_of(deadline: float | None, clock: ManualClock, **more: Any) -> SpareMoment:
    """Return the moment of a slice that is over."""
    made: list[SpareMoment] = []
    recruiter = Recruiter(share=None, deadline=deadline, clock=clock)

    def job() -> None:
        made.append(SpareMoment(LearntTimes(), clock, 10.0, **more))

    recruiter.install(job, "job", rate=1.0)
    recruiter.enlist()
    return made[0]


def test_a_slice_that_its_host_has_ended_has_no_time_without_limit() -> None:
    clock = ManualClock()
    moment = moments_of(0.05, clock)
    assert time_left() == float("inf")

    assert 0 < moment.left <= 0.05
    clock.advance(0.05)
    assert moment.left == 0
