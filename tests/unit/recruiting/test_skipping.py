"""Hosts that ask before they know whether there will be a moment."""

from __future__ import annotations

from random import Random
from typing import Any

from workstealing import Recruiter
from workstealing.testing import ManualClock

CALLS, RATE = 10_000, 0.05


def test_a_draw_that_was_skipped_does_not_fall_to_the_next() -> None:
    slices: list[int] = []
    recruiter = Recruiter(share=None, chance=Random(1))
    recruiter.install(lambda: slices.append(1), "job", rate=RATE)

    for call in range(CALLS):
        if recruiter.would_dismiss():
            continue
        if call % 10:
            recruiter.skip()
        else:
            recruiter.enlist()

    # A tenth of the calls has a moment: 50 slices, and six standard deviations are 42.
    assert 8 <= len(slices) <= 92


def test_setups_are_run_although_the_first_to_come_skip() -> None:
    ran: list[Any] = []
    recruiter = Recruiter(share=None)
    recruiter.setup(ran.append)

    recruiter.skip()
    assert recruiter.would_dismiss() is False
    recruiter.enlist()

    assert ran == [recruiter]


class Broken:
    """Chance that breaks when it is asked again."""

    def __init__(self) -> None:
        self.is_broken = False

    def random(self) -> float:
        if self.is_broken:
            raise OSError("no more randomness")
        return 0.5


def test_nothing_reaches_a_host_that_skips() -> None:
    chance = Broken()
    recruiter = Recruiter(share=None, chance=chance)
    recruiter.install(lambda: None, "job", rate=0.5)
    recruiter.enlist()
    chance.is_broken = True

    recruiter.skip()

    assert recruiter.stats().faults == 1


def test_a_job_that_is_due_waits_for_the_next_that_does_not_skip() -> None:
    slices: list[int] = []
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock)
    recruiter.install(lambda: slices.append(1), "job", every=10.0)
    recruiter.enlist()
    clock.advance(1_000.0)

    for _ in range(1_000):
        if not recruiter.would_dismiss():
            recruiter.skip()
    assert not slices

    for _ in range(1_000):
        if not recruiter.would_dismiss():
            recruiter.enlist()
    assert slices
