"""Setup functions run once per process, before the first lottery."""

from __future__ import annotations

import asyncio
import logging
import os
from threading import Barrier, Event, Thread

import pytest

from workstealing import AsyncRecruiter, Duty, Recruiter
from workstealing.errors import ConfigurationError
from workstealing.telemetry.events import SetupFailed
from workstealing.testing import ManualClock, RecordingObserver


def test_a_setup_installs_jobs_before_the_first_lottery() -> None:
    recruiter = Recruiter(share=None)

    @recruiter.setup
    def install_jobs(recruiter: Recruiter) -> None:
        recruiter.install(lambda: None, "job", rate=1.0)

    assert recruiter.stats().jobs == {}
    assert recruiter.enlist() is Duty.RECRUITED
    assert recruiter.stats().calls == 1


def test_a_setup_runs_once_whichever_thread_enlists_first() -> None:
    recruiter = Recruiter(share=None)
    ran: list[int] = []
    barrier = Barrier(8)

    @recruiter.setup
    def count(recruiter: Recruiter) -> None:
        ran.append(1)

    def host() -> None:
        barrier.wait(10)
        for _ in range(100):
            recruiter.enlist()

    threads = [Thread(target=host) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ran == [1]


def test_nobody_waits_for_a_setup_and_no_lottery_is_held_before_its_end() -> None:
    recruiter = Recruiter(share=None)
    begun, may_end = Event(), Event()
    recruiter.install(lambda: None, "eager", rate=0.5)

    @recruiter.setup
    def slow(recruiter: Recruiter) -> None:
        recruiter.install(lambda: None, "late", rate=0.5)
        begun.set()
        may_end.wait(10)

    first = Thread(target=recruiter.enlist)
    first.start()
    assert begun.wait(10)
    meanwhile = [recruiter.enlist() for _ in range(100)]
    may_end.set()
    first.join()

    assert set(meanwhile) == {Duty.DISMISSED}
    assert recruiter.enlist() is Duty.RECRUITED
    assert recruiter.stats().calls == 102


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_runs_its_own_setup() -> None:
    recruiter = Recruiter(share=None)
    installed_in: list[int] = []

    @recruiter.setup
    def install_jobs(recruiter: Recruiter) -> None:
        installed_in.append(os.getpid())
        recruiter.install(lambda: None, "job", rate=1.0)

    recruiter.enlist()
    pid = os.fork()
    if pid == 0:
        as_hoped = (
            recruiter.enlist() is Duty.RECRUITED
            and installed_in[1:] == [os.getpid()]
            and recruiter.stats().calls == 1
        )
        os._exit(0 if as_hoped else 1)

    assert os.waitpid(pid, 0)[1] == 0
    assert installed_in == [os.getpid()]


def test_a_setup_that_raises_is_logged_counted_and_tried_again_after_a_pause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, observer = ManualClock(), RecordingObserver()
    recruiter = Recruiter(share=None, clock=clock, observers=(observer,))
    tries: list[int] = []

    @recruiter.setup
    def unlucky(recruiter: Recruiter) -> None:
        tries.append(1)
        recruiter.install(lambda: None, "job", rate=1.0)
        if len(tries) == 1:
            raise OSError("the configuration is not mounted yet")

    assert recruiter.enlist() is Duty.DISMISSED
    assert recruiter.stats().setup_failures == 1
    assert recruiter.stats().jobs == {}
    for _ in range(100):
        recruiter.enlist()
    assert len(tries) == 1

    clock.advance(11.0)
    duties = [recruiter.enlist() for _ in range(100)]

    assert len(tries) == 2
    assert duties[-1] is Duty.RECRUITED
    assert [event.setup for event in observer.of(SetupFailed)] == [unlucky.__qualname__]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_one_setup_that_fails_does_not_keep_the_others_from_running() -> None:
    recruiter = Recruiter(share=None)

    @recruiter.setup
    def broken(recruiter: Recruiter) -> None:
        raise RuntimeError

    @recruiter.setup
    def sound(recruiter: Recruiter) -> None:
        recruiter.install(lambda: None, "job", rate=1.0)

    assert recruiter.enlist() is Duty.RECRUITED


def test_a_setup_that_is_added_late_runs_at_the_next_call() -> None:
    recruiter = Recruiter(share=None)
    for _ in range(10):
        recruiter.enlist()

    recruiter.setup(lambda recruiter: recruiter.install(lambda: None, "job", rate=1.0))

    assert recruiter.enlist() is Duty.RECRUITED


def test_a_setup_that_enlists_is_dismissed() -> None:
    recruiter = Recruiter(share=None)
    recruiter.install(lambda: None, "job", rate=1.0)
    seen: list[Duty] = []
    recruiter.setup(lambda recruiter: seen.append(recruiter.enlist()))

    recruiter.enlist()

    assert seen == [Duty.DISMISSED]


def test_a_request_to_stop_during_a_setup_passes_and_the_setup_is_tried_again() -> None:
    clock = ManualClock()
    recruiter = Recruiter(clock=clock)
    tries: list[int] = []

    @recruiter.setup
    def interrupted(recruiter: Recruiter) -> None:
        tries.append(1)
        recruiter.install(lambda: None, "job", rate=1.0)
        if len(tries) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recruiter.enlist()
    clock.advance(11.0)
    for _ in range(100):
        recruiter.enlist()

    assert len(tries) == 2
    assert list(recruiter.stats().jobs) == ["job"]


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, asyncio.CancelledError])
async def test_whatever_a_setup_raises_of_its_own_does_not_reach_the_host(
    error: type[BaseException],
) -> None:
    def broken(recruiter: Recruiter) -> None:
        raise error

    async def broken_too(recruiter: AsyncRecruiter) -> None:
        raise error

    recruiter, asyncio_recruiter = Recruiter(), AsyncRecruiter()
    recruiter.setup(broken)
    asyncio_recruiter.setup(broken_too)

    assert recruiter.enlist() is Duty.DISMISSED
    assert await asyncio_recruiter.enlist() is Duty.DISMISSED
    assert recruiter.stats().setup_failures == 1
    assert asyncio_recruiter.stats().setup_failures == 1


async def test_an_asyncio_setup_may_be_a_coroutine() -> None:
    recruiter = AsyncRecruiter(share=None)

    @recruiter.setup
    async def install_jobs(recruiter: AsyncRecruiter) -> None:
        recruiter.install(lambda: None, "job", rate=1.0)

    assert await recruiter.enlist() is Duty.RECRUITED


def test_a_coroutine_setup_is_refused_by_a_recruiter_that_cannot_await() -> None:
    async def install_jobs(recruiter: Recruiter) -> None: ...

    with pytest.raises(ConfigurationError, match="AsyncRecruiter"):
        Recruiter().setup(install_jobs)
