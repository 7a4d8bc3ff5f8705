"""A slice that ignores its deadline is interrupted, and nothing else is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Lock, Thread
from types import SimpleNamespace

import pytest

from workstealing import AsyncRecruiter, Duty, Recruiter
from workstealing.errors import ConfigurationError, SliceOverdue
from workstealing.recruiting import hard_deadline
from workstealing.telemetry.events import Outcome, SliceEnded
from workstealing.testing import RecordingObserver


def _recruiter(seconds: float, **options: object) -> Recruiter:
    return Recruiter(
        deadline=None,
        hard_deadline=seconds,
        share=None,
        breaker=None,
        **options,  # type: ignore[arg-type]
    )


def _for_ever() -> None:
    while True:
        sum(range(100))


def test_a_job_that_never_ends_is_interrupted() -> None:
    observer = RecordingObserver()
    recruiter = _recruiter(0.05, observers=[observer])
    recruiter.install(_for_ever, "endless", rate=1.0)

    assert recruiter.enlist() is Duty.DISMISSED

    stats = recruiter.stats().jobs["endless"]
    assert stats.outcomes[Outcome.ERROR] == 1
    assert stats.last_error.startswith("SliceOverdue(")
    (ended,) = observer.of(SliceEnded)
    assert isinstance(ended.error, SliceOverdue)
    assert "hard_deadline" in str(ended.error)


def test_an_except_exception_of_the_job_does_not_swallow_it() -> None:
    recruiter = _recruiter(0.05)

    @recruiter.job(rate=1.0)
    def stubborn() -> None:
        while True:
            with suppress(Exception):
                _for_ever()

    assert recruiter.enlist() is Duty.DISMISSED
    assert recruiter.stats().jobs["stubborn"].outcomes[Outcome.ERROR] == 1


def test_rounds_are_interrupted_together() -> None:
    recruiter = Recruiter(deadline=600, hard_deadline=600, share=None, breaker=None)
    rounds = []

    @recruiter.job(rate=1.0)
    def more() -> Duty:
        rounds.append(len(rounds))
        return Duty.MORE if len(rounds) < 3 else Duty.RECRUITED

    assert recruiter.enlist() is Duty.RECRUITED
    assert rounds == [0, 1, 2]


def test_the_host_is_never_interrupted_though_slices_end_just_in_time() -> None:
    recruiter = _recruiter(0.002)
    outcomes = recruiter.stats

    @recruiter.job(rate=1.0)
    def about_as_long() -> None:
        for _ in range(length):
            sum(range(100))

    length = 1
    for _ in range(300):
        # Anything that came too late would arrive in here.
        recruiter.enlist()
        sum(range(1000))
        ended = outcomes().jobs["about_as_long"].outcomes
        is_too_short = ended[Outcome.ERROR] * 2 <= ended[Outcome.RECRUITED]
        length = max(1, length + (20 + length // 10 if is_too_short else -length // 10))

    ended = outcomes().jobs["about_as_long"].outcomes
    assert ended[Outcome.ERROR] + ended[Outcome.RECRUITED] == 300
    assert ended[Outcome.ERROR] > 0
    assert ended[Outcome.RECRUITED] > 0


@pytest.mark.parametrize("make", [Lock, Condition])
def test_no_lock_is_left_behind(make: Callable[[], Lock | Condition]) -> None:
    recruiter = _recruiter(0.005)
    lock = make()

    @recruiter.job(rate=1.0)
    def locks() -> None:
        while True:
            with lock:
                sum(range(50))

    for _ in range(30):
        recruiter.enlist()
        assert lock.acquire(timeout=10)
        lock.release()

    assert recruiter.stats().jobs["locks"].outcomes[Outcome.ERROR] == 30


def test_in_other_threads_and_in_forked_children_it_holds_too() -> None:
    recruiter = _recruiter(0.05)
    recruiter.install(_for_ever, "endless", rate=1.0)
    duties = []
    thread = Thread(target=lambda: duties.append(recruiter.enlist()))

    thread.start()
    thread.join()
    child = os.fork()
    if child == 0:
        os._exit(recruiter.enlist() is not Duty.DISMISSED)

    assert duties == [Duty.DISMISSED]
    assert os.waitpid(child, 0)[1] == 0


def test_it_is_no_shorter_than_the_deadline() -> None:
    with pytest.raises(ConfigurationError, match="hard_deadline must be >= deadline"):
        Recruiter(hard_deadline=0.01)
    with pytest.raises(ConfigurationError, match="hard_deadline"):
        Recruiter(hard_deadline=0)


def test_an_asyncio_recruiter_needs_none() -> None:
    with pytest.raises(ConfigurationError, match="goes on at its deadline"):
        AsyncRecruiter(hard_deadline=1.0)


def test_where_nothing_can_be_interrupted_it_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hard_deadline, "can_interrupt", lambda: False)

    with pytest.raises(ConfigurationError, match="CPython with its GIL"):
        Recruiter(hard_deadline=1.0)


def test_where_threads_are_greenlets_it_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patched = SimpleNamespace(is_module_patched=lambda name: name == "threading")
    monkeypatch.setitem(sys.modules, "gevent.monkey", patched)

    with pytest.raises(ConfigurationError, match="gevent"):
        Recruiter(hard_deadline=1.0)
