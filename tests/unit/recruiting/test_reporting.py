"""Failures are logged without a flood, and everything is counted."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from workstealing import Duty, Recruiter
from workstealing.telemetry.events import Outcome, SliceEnded, SliceRefused
from workstealing.testing import ManualClock, RecordingObserver


def test_an_error_is_logged_with_its_traceback_then_once_a_minute_with_a_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=None, breaker=None, clock=clock)
    recruiter.install(lambda: 1 / 0, "broken", rate=1.0)

    for _ in range(150):
        recruiter.enlist()
        clock.advance(1.0)

    first, *others = caplog.records
    assert first.exc_info is not None
    assert "'broken'" in first.getMessage()
    assert [record.exc_info for record in others] == [None, None]
    assert "failed 60 more times" in others[0].getMessage()
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


def test_a_failure_after_a_quiet_minute_is_news_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=None, breaker=None, clock=clock)
    recruiter.install(lambda: 1 / 0, "broken", rate=1.0)

    recruiter.enlist()
    clock.advance(61.0)
    recruiter.enlist()

    assert [bool(record.exc_info) for record in caplog.records] == [True, True]


def test_each_job_has_its_own_log_limit(caplog: pytest.LogCaptureFixture) -> None:
    recruiter = Recruiter(share=None, breaker=None, clock=ManualClock())
    recruiter.install(lambda: 1 / 0, "one", rate=0.5)
    recruiter.install(lambda: 1 / 0, "two", rate=0.5)

    for _ in range(100):
        recruiter.enlist()

    assert len(caplog.records) == 2


def test_nothing_is_ever_printed() -> None:
    program = """
from workstealing import Recruiter
recruiter = Recruiter(share=None, breaker=None)
recruiter.install(lambda: 1 / 0, "broken", rate=1.0)
recruiter.setup(lambda r: 1 / 0)
for _ in range(100):
    recruiter.enlist()
assert recruiter.stats().jobs["broken"].drawn == 100
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=True
    )

    assert (done.stdout, done.stderr) == (b"", b"")


def test_stats_tell_how_long_ago_a_job_last_worked() -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock)
    answers = iter([Duty.DISMISSED, Duty.RECRUITED, Duty.DISMISSED])
    recruiter.install(lambda: next(answers), "job", rate=1.0)

    recruiter.enlist()
    assert recruiter.stats().jobs["job"].last_productive is None
    recruiter.enlist()
    clock.advance(100.0)
    recruiter.enlist()

    stats = recruiter.stats().jobs["job"]
    assert stats.last_productive == 100.0
    assert (stats.recruited, stats.outcomes[Outcome.EMPTY], stats.drawn) == (1, 2, 3)


def test_a_snapshot_does_not_change_afterwards() -> None:
    recruiter = Recruiter(share=None)
    recruiter.install(lambda: None, "job", rate=1.0)
    recruiter.enlist()

    before = recruiter.stats()
    recruiter.enlist()

    assert before.calls == 1
    assert before.jobs["job"].recruited == 1
    with pytest.raises(AttributeError):
        before.calls = 2  # type: ignore[misc]


def test_events_tell_what_happened_and_count_the_calls_between() -> None:
    clock, observer = ManualClock(), RecordingObserver()
    recruiter = Recruiter(clock=clock, observers=(observer,))

    @recruiter.job(rate=0.5)
    def work() -> None:
        clock.advance(0.06)

    for _ in range(100):
        recruiter.enlist()

    ended, refused = observer.of(SliceEnded), observer.of(SliceRefused)
    assert [(e.job, e.outcome, e.rounds, e.overran) for e in ended] == [
        ("work", Outcome.RECRUITED, 1, True)
    ]
    assert {event.outcome for event in refused} == {Outcome.BUDGET}
    counted = sum(event.calls for event in (*ended, *refused))
    assert 100 - 40 < counted <= 100


def test_what_was_counted_reads_as_a_table() -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=None, breaker=None, clock=clock)

    def sweep() -> None:
        clock.advance(0.004)

    def broken() -> None:
        raise ValueError("not today")

    recruiter.install(sweep, "sweep", rate=1.0)
    for _ in range(1000):
        recruiter.enlist()
    recruiter.set_rate("sweep", 0.25)
    recruiter.install(broken, "broken", every=30.0)
    recruiter.run_now("broken")
    clock.advance(2.0)

    title, head, *jobs = str(recruiter.stats()).splitlines()

    assert title == "1,000 calls"
    assert head.split() == [
        *("job", "rate", "drawn", "recruited", "empty", "errors", "refused"),
        *("mean", "longest", "worked", "last", "error"),
    ]
    assert [" ".join(job.split()) for job in jobs] == [
        "sweep 0.25 1,000 1,000 0 0 0 4 ms 4 ms 2 s ago",
        "broken every 30 s 1 0 0 1 0 0 ms 0 ms never ValueError('not today')",
    ]
    assert {job.index(" ms") for job in jobs} == {jobs[0].index(" ms")}


def test_a_recruiter_without_jobs_is_told_in_one_line() -> None:
    assert str(Recruiter().stats()) == "0 calls"


def test_what_went_wrong_stands_beside_the_calls() -> None:
    clock = ManualClock()
    recruiter = Recruiter(share=0.01, clock=clock)

    def slow() -> None:
        clock.advance(0.5)
        raise OSError("gone")

    recruiter.install(slow, "slow", rate=1.0)
    recruiter.enlist()

    title = str(recruiter.stats()).splitlines()[0]
    assert "s in debt" in title
    assert title.startswith("1 call, ")
    assert "job:slow is left alone for 1 s" in title
