"""What keeps side work from hurting its host, each switchable."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing import Breaker, Duty, Recruiter, StoreGate, time_left
from workstealing.recruiting.protection import Breakers, DebtBucket, is_outage
from workstealing.telemetry.events import BreakerClosed, BreakerOpened, Outcome
from workstealing.testing import ManualClock, RecordingObserver


class Host:
    """A recruiter with one job that takes a given time, by a clock of its own."""

    def __init__(self, **options: object) -> None:
        self.clock = ManualClock()
        self.seconds = 0.0
        self.answer: Duty | None = Duty.RECRUITED
        self.error: Exception | None = None
        self.recruiter = Recruiter(**{"clock": self.clock, **options})  # type: ignore[arg-type]
        self.recruiter.install(self.job, "job", rate=1.0)

    def job(self) -> Duty | None:
        self.clock.advance(self.seconds)
        if self.error is not None:
            raise self.error
        return self.answer

    def count(self, outcome: Outcome) -> int:
        return self.recruiter.stats().jobs["job"].outcomes[outcome]


def test_a_job_with_more_is_called_again_while_the_next_round_fits() -> None:
    host = Host(deadline=0.05, share=None)
    host.seconds, host.answer = 0.01, Duty.MORE

    assert host.recruiter.enlist() is Duty.RECRUITED

    stats = host.recruiter.stats().jobs["job"]
    assert stats.rounds == 4  # a fifth would need 15 ms by the margin, 10 are left
    assert stats.overran == 0
    assert stats.outcomes[Outcome.RECRUITED] == 1


def test_a_job_that_has_more_and_then_nothing_counts_as_recruited() -> None:
    recruiter = Recruiter(share=None, deadline=10.0)
    answers = iter([Duty.MORE, Duty.MORE, Duty.DISMISSED])
    recruiter.install(lambda: next(answers), "job", rate=1.0)

    assert recruiter.enlist() is Duty.RECRUITED
    assert recruiter.stats().jobs["job"].rounds == 3


def test_without_a_deadline_a_job_is_called_once_per_slice() -> None:
    host = Host(deadline=None, share=None)
    host.answer = Duty.MORE

    host.recruiter.enlist()

    assert host.recruiter.stats().jobs["job"].rounds == 1


def test_a_caller_can_spare_less_than_the_deadline() -> None:
    host = Host(deadline=0.05, share=None)
    host.seconds, host.answer = 0.003, Duty.MORE

    host.recruiter.enlist(spare=0.01)

    assert host.recruiter.stats().jobs["job"].rounds == 2


def test_a_caller_with_nothing_to_spare_is_dismissed() -> None:
    host = Host(share=None)

    assert host.recruiter.enlist(spare=0.0) is Duty.DISMISSED
    assert host.count(Outcome.BUDGET) == 1


def test_a_job_can_ask_how_much_time_is_left() -> None:
    clock = ManualClock()
    recruiter = Recruiter(clock=clock, deadline=0.05, share=None)
    seen: list[float] = []

    @recruiter.job(rate=1.0)
    def watching() -> None:
        seen.append(time_left())
        clock.advance(0.02)
        seen.append(time_left())
        clock.advance(1.0)
        seen.append(time_left())

    recruiter.enlist()

    assert seen == pytest.approx([0.05, 0.03, 0.0])
    assert time_left() == float("inf")


def test_side_work_takes_no_more_than_its_share_of_time() -> None:
    host = Host(share=0.01, deadline=0.05)
    host.seconds = 0.02

    for _ in range(100_000):
        host.clock.advance(0.001)
        host.recruiter.enlist()

    stats = host.recruiter.stats().jobs["job"]
    wall = host.clock.monotonic()
    assert stats.seconds <= 0.01 * wall + 0.05 + 0.02
    assert stats.seconds >= 0.009 * wall
    assert stats.outcomes[Outcome.BUDGET] > 0


def test_the_share_can_be_switched_off() -> None:
    host = Host(share=None)
    host.seconds = 1.0

    for _ in range(10):
        host.recruiter.enlist()

    assert host.count(Outcome.RECRUITED) == 10
    assert host.recruiter.stats().debt == 0.0


def test_a_debt_is_shown_and_paid_off_by_waiting() -> None:
    host = Host(share=0.01)
    host.seconds = 0.15

    host.recruiter.enlist()
    assert host.recruiter.stats().debt == pytest.approx(0.0985)
    host.clock.advance(10.0)

    assert host.recruiter.stats().debt == 0.0
    assert host.recruiter.enlist() is Duty.RECRUITED


@given(
    slices=st.lists(
        st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 0.1)), min_size=1, max_size=200
    )
)
def test_no_pattern_of_slices_exceeds_the_share(
    slices: list[tuple[float, float]],
) -> None:
    bucket, now, spent = DebtBucket(0.01, 0.05, 0.0), 0.0, 0.0
    longest = max(seconds for _, seconds in slices)
    for pause, seconds in slices:
        now += pause
        if bucket.admits(now):
            now += seconds
            spent += seconds
            bucket.spend(seconds)

    assert spent <= 0.01 * now + 0.05 + longest + 1e-9


def test_a_target_that_is_away_is_left_alone_for_longer_and_longer() -> None:
    observer = RecordingObserver()
    host = Host(share=None, breaker=Breaker(1.0, 10.0), observers=(observer,))
    host.error = ConnectionError("refused")
    tried_at: list[float] = []

    for _ in range(6000):
        host.clock.advance(0.01)
        before = host.count(Outcome.ERROR)
        host.recruiter.enlist()
        if host.count(Outcome.ERROR) > before:
            tried_at.append(host.clock.monotonic())

    pauses = [b - a for a, b in pairwise(tried_at)]
    assert pauses == pytest.approx([1, 2, 4, 8, 10, 10, 10, 10], abs=0.02)
    assert [event.seconds for event in observer.of(BreakerOpened)][:3] == [1, 2, 4]


def test_a_target_that_answers_again_is_used_as_before() -> None:
    observer = RecordingObserver()
    host = Host(share=None, observers=(observer,))
    host.error = TimeoutError()
    host.recruiter.enlist()
    assert host.recruiter.stats().open_targets == {"job": pytest.approx(1.0)}
    host.error = None
    host.clock.advance(1.0)

    assert host.recruiter.enlist() is Duty.RECRUITED
    assert host.recruiter.enlist() is Duty.RECRUITED
    assert observer.of(BreakerClosed) == [BreakerClosed("job")]
    assert host.recruiter.stats().open_targets == {}


def test_jobs_of_one_target_share_a_breaker() -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock)

    def away() -> None:
        raise ConnectionRefusedError

    recruiter.install(away, "away", rate=0.0, target="redis")
    recruiter.install(lambda: None, "neighbour", rate=0.0, target="redis")
    recruiter.install(lambda: None, "elsewhere", rate=0.0, target="other")

    assert recruiter.run_now("away") is Outcome.ERROR
    assert recruiter.run_now("neighbour") is Outcome.OPEN
    assert recruiter.run_now("elsewhere") is Outcome.RECRUITED
    clock.advance(1.0)
    assert recruiter.run_now("neighbour") is Outcome.RECRUITED


def test_a_job_that_is_itself_wrong_does_not_close_its_target() -> None:
    recruiter = Recruiter(share=None, clock=ManualClock())
    recruiter.install(lambda: 1 / 0, "wrong", rate=0.0, target="redis")
    recruiter.install(lambda: None, "neighbour", rate=0.0, target="redis")

    assert recruiter.run_now("wrong") is Outcome.ERROR
    assert recruiter.run_now("wrong") is Outcome.OPEN
    assert recruiter.run_now("neighbour") is Outcome.RECRUITED


def test_a_failed_target_is_tried_by_one_recruit_at_a_time() -> None:
    breakers = Breakers(Breaker(1.0, 10.0))
    breakers.failed("redis", now=0.0)

    assert not breakers.admit("redis", now=0.5)
    assert breakers.admit("redis", now=1.0)
    assert not breakers.admit("redis", now=1.0)


def test_the_breaker_can_be_switched_off() -> None:
    host = Host(share=None, breaker=None)
    host.error = ConnectionError()

    for _ in range(5):
        host.recruiter.enlist()

    assert host.count(Outcome.ERROR) == 5


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (type("TimeoutError", (Exception,), {})(), True),
        (ValueError(), False),
        (FileNotFoundError(), False),
    ],
)
def test_absence_is_told_from_a_mistake(error: Exception, expected: bool) -> None:
    assert is_outage(error) is expected


def test_the_store_gate_steps_back_while_the_store_is_slow() -> None:
    host = Host(share=None, gate=StoreGate())
    for _ in range(2000):
        host.clock.advance(0.001)
        host.recruiter.enlist(rtt=0.001)
    assert host.count(Outcome.STORE) == 0

    for _ in range(2000):
        host.clock.advance(0.001)
        host.recruiter.enlist(rtt=0.005)
    assert host.count(Outcome.STORE) > 1800

    before = host.count(Outcome.STORE)
    for _ in range(2000):
        host.clock.advance(0.001)
        host.recruiter.enlist(rtt=0.001)
    assert host.count(Outcome.STORE) - before < 200


def test_the_store_gate_listens_between_rare_recruits_too() -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock, gate=StoreGate())
    recruiter.install(lambda: None, "rare", rate=1e-9)
    for _ in range(10_000):
        recruiter.enlist(rtt=0.001)
    for _ in range(10_000):
        recruiter.enlist(rtt=0.01)

    recruiter.set_rate("rare", 1.0)
    for _ in range(100):
        recruiter.enlist(rtt=0.01)

    assert recruiter.stats().jobs["rare"].outcomes[Outcome.STORE] > 80
