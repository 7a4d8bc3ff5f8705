"""Rates per time: nearly independent of how often a host enlists."""

from __future__ import annotations

import math

import pytest

from workstealing import AsyncRecruiter, Duty, Recruiter
from workstealing.telemetry.events import Outcome
from workstealing.testing import ManualClock


def _host(every: float, calls_per_second: float, seconds: float) -> int:
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock)
    recruiter.install(lambda: None, "job", every=every)
    for _ in range(int(calls_per_second * seconds)):
        clock.advance(1.0 / calls_per_second)
        recruiter.enlist()
    return recruiter.stats().jobs["job"].recruited


@pytest.mark.parametrize("calls_per_second", [1.0, 10.0, 1000.0])
def test_an_interval_is_kept_on_average_whatever_the_traffic(
    calls_per_second: float,
) -> None:
    every, seconds = 5.0, 4000.0 if calls_per_second < 100 else 1000.0

    recruited = _host(every, calls_per_second, seconds)

    expected = seconds / (every + 1.0 / calls_per_second)
    assert abs(recruited - expected) <= 5.0 * math.sqrt(expected)


def test_a_host_that_seldom_enlists_works_at_each_call() -> None:
    assert _host(every=1.0, calls_per_second=0.01, seconds=10_000) == 100


def test_a_sudden_end_of_traffic_delays_a_job_by_few_calls_only() -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock)
    recruiter.install(lambda: None, "job", every=30.0)
    for _ in range(100_000):
        clock.advance(0.0001)
        recruiter.enlist()
    before = recruiter.stats().jobs["job"].recruited

    calls = 0
    while recruiter.stats().jobs["job"].recruited == before:
        clock.advance(3600.0)
        recruiter.enlist()
        calls += 1

    assert calls <= 257


def test_both_kinds_of_pace_keep_their_own_rate_side_by_side() -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock)
    recruiter.install(lambda: None, "per-call", rate=0.01)
    recruiter.install(lambda: None, "per-time", every=1.0)

    for _ in range(200_000):
        clock.advance(0.01)
        recruiter.enlist()

    jobs = recruiter.stats().jobs
    assert abs(jobs["per-call"].drawn - 2000) <= 5.0 * math.sqrt(2000)
    assert abs(jobs["per-time"].drawn - 2000) <= 5.0 * math.sqrt(2000)


def test_an_interval_can_become_a_rate_and_back() -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock)
    recruiter.install(lambda: None, "job", every=1.0)

    recruiter.set_rate("job", 1.0)
    assert recruiter.enlist() is Duty.RECRUITED
    recruiter.set_rate("job", every=1e9)
    assert recruiter.enlist() is Duty.DISMISSED


def test_run_now_takes_the_job_that_waited_longest_and_no_job_of_rate_zero() -> None:
    clock = ManualClock()
    recruiter = Recruiter(clock=clock)
    done: list[str] = []
    recruiter.install(lambda: done.append("a"), "a", rate=0.001)
    recruiter.install(lambda: done.append("b"), "b", every=1e6)
    recruiter.install(lambda: done.append("paused"), "paused", rate=0.0)

    for _ in range(6):
        clock.advance(5.0)
        assert recruiter.run_now() is Outcome.RECRUITED

    assert done == ["a", "b"] * 3


def test_run_now_without_jobs_returns_none() -> None:
    assert Recruiter().run_now() is None


async def test_run_now_awaits_coroutine_jobs() -> None:
    recruiter = AsyncRecruiter()

    @recruiter.job(rate=0.001)
    async def work() -> Duty:
        return Duty.DISMISSED

    assert await recruiter.run_now() is Outcome.EMPTY
