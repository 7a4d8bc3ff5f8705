"""Rates that follow what slices find, within the bounds that a user gave."""

from __future__ import annotations

import logging
import math
import os
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing import Adapt, AsyncRecruiter, Duty, Recruiter
from workstealing.errors import ConfigurationError, InvalidRate
from workstealing.telemetry.events import RateAdapted
from workstealing.testing import ManualClock, RecordingObserver

BOUNDS = Adapt(least=0.001, most=0.1)
START = 0.01


class Site:
    """Processes that share a backlog of garbage, each with a recruiter of its own."""

    def __init__(self, processes: int = 1, batch: int = 10) -> None:
        self.clock = ManualClock()
        self.observer = RecordingObserver()
        self.backlog = 0.0
        self.batch = batch
        self.recruiters = []
        for seed in range(processes):
            recruiter = Recruiter(
                adapt=BOUNDS,
                observers=[self.observer],
                chance=Random(seed),
                clock=self.clock,
                deadline=None,
                share=None,
            )
            recruiter.install(self.sweep, "sweep", rate=START)
            self.recruiters.append(recruiter)

    def sweep(self) -> Duty:
        taken = min(self.batch, int(self.backlog))
        self.backlog -= taken
        if not taken:
            return Duty.DISMISSED
        return Duty.MORE if taken == self.batch else Duty.RECRUITED

    def live(self, minutes: int, garbage: float) -> list[float]:
        """Let each process enlist ten times a second; return its rate per minute."""
        rates = []
        for _ in range(minutes):
            for _ in range(600):
                self.clock.advance(0.1)
                self.backlog += garbage / 10
                for recruiter in self.recruiters:
                    recruiter.enlist()
            rates.append(self.rate())
        return rates

    def rate(self) -> float:
        """Return the mean rate of the processes."""
        rates = [each.stats().jobs["sweep"].rate for each in self.recruiters]
        return math.fsum(rate or 0.0 for rate in rates) / len(rates)


@pytest.mark.parametrize("processes", [1, 5])
def test_a_job_whose_backlog_grows_gets_more_until_it_keeps_up(processes: int) -> None:
    site = Site(processes)
    # Twice what slices can take at first.
    garbage = 2.0 * START * 10 * processes * site.batch

    rates = site.live(120, garbage)

    assert min(rates[60:]) > START
    assert max(rates) <= BOUNDS.most
    before = site.backlog
    site.live(20, garbage)
    assert site.backlog < max(before, 50 * site.batch * processes), "it keeps up"


def test_a_job_that_finds_nothing_gets_less_down_to_its_bound() -> None:
    site = Site()

    rates = site.live(1200, garbage=0.0)

    assert all(later <= sooner for sooner, later in pairwise(rates))
    assert rates[-1] == BOUNDS.least


@pytest.mark.parametrize("processes", [1, 5])
def test_a_rate_settles_when_the_garbage_does(processes: int) -> None:
    site = Site(processes)
    garbage = 0.5 * START * 10 * processes * site.batch
    site.live(60, garbage)

    rates = site.live(120, garbage)

    assert max(rates) <= 2.5 * min(rates), "it does not swing"
    changes = site.observer.of(RateAdapted)
    assert len(changes) <= 12 * processes


def test_a_job_that_never_says_that_there_is_more_is_not_given_more() -> None:
    site = Site()
    for recruiter in site.recruiters:
        recruiter.install(lambda: None, "report", rate=START)

    site.live(120, garbage=0.0)

    assert site.recruiters[0].stats().jobs["report"].rate == START


def test_one_change_is_a_step_at_most_and_says_why_in_an_event_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    site = Site()

    site.live(60, garbage=1000.0)

    first = site.observer.of(RateAdapted)[0]
    assert (first.job, first.before, first.after) == ("sweep", START, 2 * START)
    assert first.why == "it falls behind: 100 % of its slices end with work left"
    written = [record.getMessage() for record in caplog.records]
    assert written[0] == f"the rate of job 'sweep' went from 0.01 to 0.02: {first.why}"
    assert len(written) == len(site.observer.of(RateAdapted))


def test_bounds_may_be_given_by_name_and_others_are_left_alone() -> None:
    clock = ManualClock()
    recruiter = Recruiter(
        adapt={"sweep": Adapt(least=0.25, most=0.5, step=4, evidence=10)},
        clock=clock,
        share=None,
    )
    recruiter.install(lambda: Duty.DISMISSED, "sweep", rate=0.5)
    recruiter.install(lambda: Duty.DISMISSED, "trim", rate=0.5)

    for _ in range(1000):
        clock.advance(1.0)
        recruiter.enlist()

    rates = {name: job.rate for name, job in recruiter.stats().jobs.items()}
    assert rates == {"sweep": 0.25, "trim": 0.5}


def test_a_rate_that_is_set_by_hand_counts_and_the_evidence_begins_anew() -> None:
    clock = ManualClock()
    adapt = Adapt(least=0.01, most=1.0, evidence=100)
    recruiter = Recruiter(adapt=adapt, clock=clock, share=None)
    recruiter.install(lambda: Duty.DISMISSED, "sweep", rate=1.0)
    for _ in range(100):
        clock.advance(1.0)
        recruiter.enlist()

    recruiter.set_rate("sweep", 0.9)
    for _ in range(100):
        clock.advance(1.0)
        recruiter.enlist()

    assert recruiter.stats().jobs["sweep"].rate == 0.9
    recruiter.set_rate("sweep", 0.0)
    recruiter.run_now("sweep")
    assert recruiter.stats().jobs["sweep"].rate == 0.0, "it stays switched off"


def test_a_rate_outside_of_its_bounds_is_refused() -> None:
    recruiter = Recruiter(adapt=BOUNDS)
    with pytest.raises(InvalidRate, match=r"0\.5, is outside of the bounds"):
        recruiter.install(print, "sweep", rate=0.5)
    recruiter.install(print, "sweep", rate=0.1)
    with pytest.raises(InvalidRate, match=r"0\.0001"):
        recruiter.set_rate("sweep", 0.0001)
    recruiter.install(print, "tick", every=5.0)


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ({"least": 0.0, "most": 0.1}, "least"),
        ({"least": 0.1, "most": 1.5}, "most"),
        ({"least": 0.1, "most": 0.01}, "most"),
        ({"least": math.nan, "most": 0.1}, "least"),
        ({"least": 0.01, "most": 0.1, "step": 1.0}, "step"),
        ({"least": 0.01, "most": 0.1, "evidence": 3}, "evidence"),
    ],
)
def test_bounds_that_make_no_sense_are_refused_by_name(
    numbers: dict[str, float], name: str
) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Adapt(**numbers)  # type: ignore[arg-type]


def test_what_is_no_adapt_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be an Adapt"):
        Recruiter(adapt=0.1)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="must be an Adapt"):
        Recruiter(adapt={"sweep": 0.1})  # type: ignore[dict-item]


async def test_an_asyncio_recruiter_adapts_as_well() -> None:
    clock = ManualClock()
    adapt = Adapt(least=0.1, most=1.0, evidence=10)
    recruiter = AsyncRecruiter(adapt=adapt, clock=clock, share=None)

    async def sweep() -> Duty:
        return Duty.DISMISSED

    recruiter.install(sweep, "sweep", rate=1.0)
    for _ in range(1000):
        clock.advance(1.0)
        await recruiter.enlist()

    assert recruiter.stats().jobs["sweep"].rate == pytest.approx(0.1)


def test_a_forked_child_begins_with_the_rate_and_without_the_evidence() -> None:
    clock = ManualClock()
    adapt = Adapt(least=0.01, most=1.0, evidence=10)
    recruiter = Recruiter(adapt=adapt, clock=clock, share=None)
    recruiter.install(lambda: Duty.DISMISSED, "sweep", rate=1.0)
    for _ in range(10):
        clock.advance(60.0)
        recruiter.enlist()
    child = os.fork()
    if not child:
        clock.advance(60.0)
        recruiter.enlist()
        os._exit(recruiter.stats().jobs["sweep"].rate != 1.0)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0


shares = st.floats(min_value=1e-9, max_value=1.0)


@given(
    bounds=st.tuples(shares, shares).map(sorted),
    step=st.floats(min_value=1.001, max_value=1e6),
    others=st.lists(st.floats(min_value=0.0, max_value=1.0), max_size=3),
    start=st.floats(min_value=0.0, max_value=1.0),
    answers=st.lists(st.sampled_from([*Duty, "error"]), min_size=1, max_size=4),
    repeats=st.integers(min_value=10, max_value=60),
    seed=st.integers(),
)
def test_whatever_slices_find_rates_keep_their_bounds_and_their_total(
    bounds: list[float],
    step: float,
    others: list[float],
    start: float,
    answers: list[Duty | str],
    repeats: int,
    seed: int,
) -> None:
    least, most = bounds
    clock = ManualClock()
    recruiter = Recruiter(
        adapt={"sweep": Adapt(least, most, step=step, evidence=10)},
        clock=clock,
        chance=Random(seed),
        share=None,
        breaker=None,
        deadline=None,
    )
    rate = min(most, max(least, start))
    total = rate + math.fsum(others)
    for number, other in enumerate(others):
        scaled = other * (1.0 - rate) / total if total > 1.0 else other
        recruiter.install(lambda: None, f"other-{number}", rate=scaled)
    current: list[Duty | str] = [Duty.MORE]

    def sweep() -> Duty:
        if current[0] == "error":
            raise ValueError
        return Duty(current[0])

    recruiter.install(sweep, "sweep", rate=rate)
    for answer in answers:
        current[0] = answer
        for _ in range(repeats):
            clock.advance(10.0)
            recruiter.run_now("sweep")
            jobs = recruiter.stats().jobs
            found = jobs["sweep"].rate
            assert found is not None
            assert least <= found <= most
            total = math.fsum(job.rate or 0.0 for job in jobs.values())
            assert total <= 1.0 + 1e-9
