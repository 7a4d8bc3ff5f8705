"""Promise 1: whatever a job does, the host sees a Duty."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from decimal import Decimal
from functools import partial
from threading import Event, Thread
from typing import Any

import pytest

from workstealing import AsyncRecruiter, Breaker, Duty, Recruiter, time_left
from workstealing.errors import Conflict, StopWork
from workstealing.telemetry.events import Outcome
from workstealing.testing import ManualClock, RecordingObserver


def _recruiter(**options: object) -> Recruiter:
    return Recruiter(**{"share": None, "breaker": None, **options})  # type: ignore[arg-type]


def test_a_job_that_raises_ends_its_slice_and_is_counted() -> None:
    recruiter = _recruiter()

    @recruiter.job(rate=1.0)
    def broken() -> None:
        raise ValueError("boom")

    assert recruiter.enlist() is Duty.DISMISSED
    stats = recruiter.stats().jobs["broken"]
    assert stats.outcomes[Outcome.ERROR] == 1
    assert stats.last_error == "ValueError('boom')"


def test_a_job_that_raises_after_it_worked_counts_as_work_for_the_host() -> None:
    recruiter = _recruiter(deadline=10.0)
    rounds = iter([Duty.MORE])

    recruiter.install(lambda: next(rounds), "runs-dry", rate=1.0)

    assert recruiter.enlist() is Duty.RECRUITED
    assert recruiter.stats().jobs["runs-dry"].outcomes[Outcome.ERROR] == 1


class OwnBaseException(BaseException):
    """What a library may derive, so that `except Exception` does not catch it."""


OWN_ENDINGS = [OwnBaseException, SystemExit, GeneratorExit, asyncio.CancelledError]


def _raise(error: type[BaseException]) -> None:
    raise error("of its own")


@pytest.mark.parametrize("error", OWN_ENDINGS)
def test_whatever_a_job_raises_of_its_own_ends_with_its_slice(
    error: type[BaseException],
) -> None:
    recruiter = _recruiter()
    recruiter.install(lambda: _raise(error), "raising", rate=1.0)

    assert recruiter.enlist() is Duty.DISMISSED
    assert recruiter.run_now() is Outcome.ERROR
    assert error.__name__ in str(recruiter.stats().jobs["raising"].last_error)


@pytest.mark.parametrize("error", [*OWN_ENDINGS, StopIteration])
@pytest.mark.parametrize("deadline", [10.0, None])
@pytest.mark.parametrize("is_coroutine", [True, False])
async def test_whatever_an_asyncio_job_raises_of_its_own_ends_with_its_slice(
    error: type[BaseException], deadline: float | None, is_coroutine: bool
) -> None:
    recruiter = AsyncRecruiter(share=None, breaker=None, deadline=deadline)

    async def raising() -> None:
        _raise(error)

    job = raising if is_coroutine else lambda: _raise(error)
    recruiter.install(job, "raising", rate=1.0)

    assert await recruiter.enlist() is Duty.DISMISSED
    assert recruiter.stats().jobs["raising"].outcomes[Outcome.ERROR] == 1


@pytest.mark.parametrize("request_to_stop", [KeyboardInterrupt, StopWork])
def test_a_request_to_stop_passes_and_leaves_the_recruiter_usable(
    request_to_stop: type[BaseException],
) -> None:
    recruiter = _recruiter()
    stops = iter([True, False])

    @recruiter.job(rate=1.0)
    def interrupted() -> None:
        if next(stops):
            raise request_to_stop

    with pytest.raises(request_to_stop):
        recruiter.enlist()

    assert recruiter.enlist() is Duty.RECRUITED
    assert recruiter.stats().jobs["interrupted"].outcomes[Outcome.ERROR] == 0


class _Exits:
    """Signal handlers of several kinds; web servers end their workers so."""

    def by_method(self, *_: object) -> None:
        sys.exit(3)

    def __call__(self, *_: object) -> None:
        sys.exit(3)


@pytest.mark.parametrize(
    "handler",
    [lambda *_: sys.exit(3), _Exits().by_method, _Exits(), partial(_Exits().by_method)],
    ids=["function", "method", "object", "partial"],
)
def test_what_a_signal_handler_raises_during_a_slice_reaches_the_host(
    handler: Callable[..., None],
) -> None:
    recruiter = _recruiter()
    recruiter.install(lambda: signal.raise_signal(signal.SIGUSR1), "job", rate=1.0)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(SystemExit, match="3"):
            recruiter.enlist()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert recruiter.stats().jobs["job"].outcomes[Outcome.INTERRUPTED] == 1


def test_a_real_interrupt_during_a_slice_reaches_the_host() -> None:
    recruiter = _recruiter()
    recruiter.install(lambda: signal.raise_signal(signal.SIGINT), "job", rate=1.0)

    with pytest.raises(KeyboardInterrupt):
        recruiter.enlist()


@pytest.mark.parametrize("name", ["greenlet.GreenletExit", "gevent.timeout.Timeout"])
def test_what_gevent_throws_into_a_greenlet_reaches_the_host(name: str) -> None:
    module, _, kind = name.rpartition(".")
    thrown = type(kind, (BaseException,), {"__module__": module})
    recruiter = _recruiter()
    recruiter.install(lambda: _raise(thrown), "job", rate=1.0)

    with pytest.raises(thrown):
        recruiter.enlist()


@pytest.mark.parametrize("error", OWN_ENDINGS)
def test_whatever_an_observer_or_a_log_handler_raises_does_not_reach_the_host(
    error: type[BaseException],
) -> None:
    class Vicious(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            _raise(error)

        def observe(self, event: object) -> None:
            _raise(error)

    recording, vicious = RecordingObserver(), Vicious()
    recruiter = _recruiter(observers=(vicious, recording))
    recruiter.install(lambda: 1 / 0, "broken", rate=1.0)
    logger = logging.getLogger("workstealing")
    logger.addHandler(vicious)
    try:
        assert recruiter.enlist() is Duty.DISMISSED
    finally:
        logger.removeHandler(vicious)

    assert len(recording.events) == 1
    assert recruiter.stats().faults == 1


async def test_a_coroutine_that_swallows_its_cancellation_is_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recruiter = AsyncRecruiter(share=None, breaker=None, deadline=0.01)
    may_end, ended = asyncio.Event(), asyncio.Event()

    @recruiter.job(rate=1.0)
    async def stubborn() -> None:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue
        ended.set()

    assert await recruiter.enlist() is Duty.DISMISSED
    assert not ended.is_set()
    assert "its host went on" in caplog.text
    assert await recruiter.enlist() is Duty.DISMISSED
    assert recruiter.stats().jobs["stubborn"].outcomes[Outcome.BUSY] == 1

    may_end.set()
    await ended.wait()
    while await recruiter.enlist() is not Duty.RECRUITED:
        await asyncio.sleep(0)


async def test_a_host_can_be_cancelled_though_its_job_swallows_that() -> None:
    recruiter = AsyncRecruiter(share=None, breaker=None, deadline=None)
    begun, may_end = asyncio.Event(), asyncio.Event()

    @recruiter.job(rate=1.0)
    async def stubborn() -> None:
        begun.set()
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()

    host = asyncio.create_task(recruiter.enlist())
    await begun.wait()
    host.cancel()
    with pytest.raises(asyncio.CancelledError):
        await host
    may_end.set()


def test_a_job_past_its_deadline_is_not_called_again_and_is_counted() -> None:
    clock = ManualClock()
    recruiter = _recruiter(clock=clock)

    @recruiter.job(rate=1.0)
    def slow() -> Duty:
        clock.advance(0.2)
        return Duty.MORE

    assert recruiter.enlist() is Duty.RECRUITED
    stats = recruiter.stats().jobs["slow"]
    assert stats.rounds == 1
    assert stats.overran == 1
    assert stats.longest == pytest.approx(0.2)


def test_a_job_that_enlists_again_is_dismissed_inside_its_slice() -> None:
    recruiter = _recruiter()
    inner: list[Duty] = []

    @recruiter.job(rate=1.0)
    def nested() -> None:
        inner.append(recruiter.enlist())

    assert recruiter.enlist() is Duty.RECRUITED
    assert inner == [Duty.DISMISSED]
    assert recruiter.stats().jobs["nested"].outcomes[Outcome.BUSY] == 1


def test_a_slice_of_another_recruiter_does_not_run_inside_a_slice() -> None:
    outer, inner = _recruiter(), _recruiter()
    seen: list[Duty] = []
    inner.install(lambda: None, "inner", rate=1.0)
    outer.install(lambda: seen.append(inner.enlist()), "outer", rate=1.0)

    outer.enlist()

    assert seen == [Duty.DISMISSED]
    assert inner.enlist() is Duty.RECRUITED


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_job_that_forks_leaves_both_processes_with_a_duty() -> None:
    recruiter = _recruiter()
    pids: list[int] = []

    @recruiter.job(rate=1.0)
    def forking() -> None:
        pids.append(os.fork())

    duty = recruiter.enlist()
    if pids == [0]:
        recruiter.uninstall("forking")
        recruiter.install(lambda: None, "after", rate=1.0)
        as_hoped = duty is Duty.RECRUITED and recruiter.enlist() is Duty.RECRUITED
        os._exit(0 if as_hoped else 1)

    assert duty is Duty.RECRUITED
    assert os.waitpid(pids[0], 0)[1] == 0


def test_a_job_that_is_uninstalled_while_it_runs_ends_as_usual() -> None:
    recruiter = _recruiter()

    @recruiter.job(rate=1.0)
    def leaving() -> None:
        recruiter.uninstall("leaving")

    assert recruiter.enlist() is Duty.RECRUITED
    assert recruiter.enlist() is Duty.DISMISSED
    assert recruiter.stats().jobs == {}


def test_a_job_runs_once_at_a_time_whatever_the_threads() -> None:
    recruiter = _recruiter()
    begun, may_end = Event(), Event()

    @recruiter.job(rate=1.0)
    def long() -> None:
        begun.set()
        may_end.wait(10)

    thread = Thread(target=recruiter.enlist)
    thread.start()
    assert begun.wait(10)
    duty = recruiter.enlist()
    may_end.set()
    thread.join()

    assert duty is Duty.DISMISSED
    assert recruiter.stats().jobs["long"].outcomes[Outcome.BUSY] == 1
    assert recruiter.enlist() is Duty.RECRUITED


def test_a_conflict_is_told_apart_from_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recruiter = _recruiter(breaker=Breaker())

    @recruiter.job(rate=1.0)
    def contended() -> None:
        raise Conflict("somebody else has the lease")

    recruiter.enlist()
    recruiter.enlist()

    outcomes = recruiter.stats().jobs["contended"].outcomes
    assert outcomes[Outcome.CONFLICT] == 2
    assert outcomes[Outcome.ERROR] == 0
    assert not caplog.records


@pytest.mark.parametrize("answer", ["yes", 3, -1, 0.5, object()])
def test_an_answer_that_is_no_duty_is_an_error_that_says_so(answer: object) -> None:
    recruiter = _recruiter()
    recruiter.install(lambda: answer, "odd", rate=1.0)

    assert recruiter.enlist() is Duty.DISMISSED
    assert "return a Duty" in str(recruiter.stats().jobs["odd"].last_error)


def test_a_function_that_returns_a_coroutine_is_an_error_without_a_warning() -> None:
    recruiter = _recruiter()

    async def job() -> None: ...

    recruiter.install(lambda: job(), "hidden", rate=1.0)

    assert recruiter.enlist() is Duty.DISMISSED
    assert recruiter.stats().jobs["hidden"].outcomes[Outcome.ERROR] == 1


@pytest.mark.parametrize("spare", ["a while", object(), float("nan"), Decimal("0.01")])
def test_nonsense_from_the_caller_never_raises(spare: object) -> None:
    recruiter = _recruiter()
    recruiter.install(lambda: None, "job", rate=1.0)

    assert recruiter.enlist(spare=spare) is Duty.DISMISSED  # type: ignore[arg-type]
    assert recruiter.enlist(rtt="slow") in Duty  # type: ignore[arg-type]
    assert recruiter.enlist() is Duty.RECRUITED, "it does not count as busy"


def test_a_logging_handler_that_raises_does_not_reach_the_host() -> None:
    recruiter = _recruiter()
    recruiter.install(lambda: 1 / 0, "broken", rate=1.0)

    class Vicious(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("the log disk is full")

    logger = logging.getLogger("workstealing")
    handler = Vicious()
    logger.addHandler(handler)
    try:
        assert recruiter.enlist() is Duty.DISMISSED
    finally:
        logger.removeHandler(handler)
    assert recruiter.stats().faults == 1


def test_an_observer_that_raises_does_not_reach_the_host_or_the_others() -> None:
    class Vicious:
        def observe(self, event: object) -> None:
            raise RuntimeError("no network")

    recording = RecordingObserver()
    recruiter = _recruiter(observers=(Vicious(), recording))
    recruiter.install(lambda: None, "job", rate=1.0)

    assert recruiter.enlist() is Duty.RECRUITED
    assert len(recording.events) == 1


def test_enlisting_in_the_middle_of_enlisting_does_not_wait_for_itself() -> None:
    recruiter: Recruiter

    class InterruptedClock(ManualClock):
        """As if a signal handler that enlists came while a stride ends."""

        depth = 0

        def monotonic(self) -> float:
            if self.depth == 0 and hasattr(self, "_armed"):
                self.depth = 1
                recruiter.enlist()
                self.depth = 0
            return super().monotonic()

    clock = InterruptedClock()
    recruiter = _recruiter(clock=clock)
    recruiter.install(lambda: None, "job", rate=1.0)
    clock._armed = True  # type: ignore[attr-defined]

    assert recruiter.enlist() in Duty


async def test_a_coroutine_that_hangs_is_cancelled_at_the_end_of_its_time() -> None:
    recruiter = AsyncRecruiter(share=None, breaker=None, deadline=0.01)

    @recruiter.job(rate=1.0)
    async def hanging() -> None:
        await asyncio.Event().wait()

    assert await recruiter.enlist() is Duty.DISMISSED
    stats = recruiter.stats().jobs["hanging"]
    assert stats.outcomes[Outcome.ERROR] == 1
    assert "TimeoutError" in str(stats.last_error)


async def test_a_hanging_plain_function_frees_the_host_but_stays_busy() -> None:
    recruiter = AsyncRecruiter(share=None, breaker=None, deadline=0.01)
    may_end = Event()
    recruiter.install(lambda: may_end.wait(10) and None, "hanging", rate=1.0)

    assert await recruiter.enlist() is Duty.DISMISSED
    assert await recruiter.enlist() is Duty.DISMISSED
    outcomes = recruiter.stats().jobs["hanging"].outcomes
    assert (outcomes[Outcome.ERROR], outcomes[Outcome.BUSY]) == (1, 1)

    may_end.set()
    async with asyncio.timeout(10) if hasattr(asyncio, "timeout") else _no_limit():
        while await recruiter.enlist() is not Duty.RECRUITED:
            await asyncio.sleep(0)


async def test_a_plain_function_that_no_thread_begins_does_not_stay_busy() -> None:
    class Executor(ThreadPoolExecutor):
        has_thread = False

        def submit(self, function: Any, /, *values: Any, **named: Any) -> Any:
            if not self.has_thread:
                raise RuntimeError("can't start new thread")
            return super().submit(function, *values, **named)

    recruiter = AsyncRecruiter(share=None, breaker=None, deadline=0.01)
    recruiter.install(lambda: None, "job", rate=1.0)
    executor, loop = Executor(max_workers=1), asyncio.get_running_loop()
    loop.set_default_executor(executor)

    assert await recruiter.enlist() is Duty.DISMISSED
    executor.has_thread, may_end = True, Event()
    executor.submit(may_end.wait, 10)
    assert await recruiter.enlist() is Duty.DISMISSED, "it waits for the only thread"
    executor.shutdown(wait=False, cancel_futures=True)
    loop.set_default_executor(ThreadPoolExecutor())
    may_end.set()

    outcomes = recruiter.stats().jobs["job"].outcomes
    assert (outcomes[Outcome.ERROR], outcomes[Outcome.BUSY]) == (2, 0)
    async with asyncio.timeout(10) if hasattr(asyncio, "timeout") else _no_limit():
        while await recruiter.enlist() is not Duty.RECRUITED:
            await asyncio.sleep(0)


async def test_cancelling_the_host_cancels_the_slice_and_passes() -> None:
    recruiter = AsyncRecruiter(share=None, breaker=None, deadline=None)
    begun = asyncio.Event()

    @recruiter.job(rate=1.0)
    async def long() -> None:
        begun.set()
        await asyncio.Event().wait()

    host = asyncio.create_task(recruiter.enlist())
    await begun.wait()
    host.cancel()

    with pytest.raises(asyncio.CancelledError):
        await host
    assert recruiter.stats().jobs["long"].outcomes[Outcome.ERROR] == 0
    recruiter.uninstall("long")
    recruiter.install(lambda: None, "after", rate=1.0)
    assert await recruiter.enlist() is Duty.RECRUITED


@pytest.mark.parametrize("is_setup", [False, True])
async def test_a_host_that_is_closed_in_another_context_interrupts_its_slice(
    caplog: pytest.LogCaptureFixture, is_setup: bool
) -> None:
    """As when the garbage collector finds a task that its loop has left behind."""
    recruiter, begun = AsyncRecruiter(share=None, deadline=None), asyncio.Event()

    async def long(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    if is_setup:
        recruiter.setup(long)
    else:
        recruiter.install(long, "long", rate=1.0)
    host = recruiter.enlist()
    copy_context().run(host.send, None)
    await begun.wait()
    host.close()

    stats = recruiter.stats()
    assert is_setup or stats.jobs["long"].outcomes[Outcome.INTERRUPTED] == 1
    assert stats.faults == 0
    assert not caplog.records


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_host_that_is_collected_after_its_loop_was_closed_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recruiter = AsyncRecruiter(share=None, deadline=None)
    begun = Event()

    @recruiter.job(rate=1.0)
    async def long() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def main() -> None:
        asyncio.get_running_loop().create_task(recruiter.enlist())
        while not begun.is_set():
            await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    gc.collect()

    assert recruiter.stats().jobs["long"].outcomes[Outcome.INTERRUPTED] == 1
    assert recruiter.stats().faults == 0
    assert {record.name for record in caplog.records} == {"asyncio"}


async def test_a_task_that_outlives_the_slice_that_began_it_may_enlist() -> None:
    recruiter = AsyncRecruiter(share=None)
    heirs: list[asyncio.Task[Duty]] = []
    go_on = asyncio.Event()

    async def heir() -> Duty:
        await go_on.wait()
        assert time_left() == float("inf")
        return await recruiter.enlist()

    @recruiter.job(rate=1.0)
    async def parent() -> None:
        if not heirs:
            heirs.append(asyncio.create_task(heir()))

    await recruiter.enlist()
    go_on.set()

    assert await heirs[0] is Duty.RECRUITED


class _no_limit:
    async def __aenter__(self) -> None: ...
    async def __aexit__(self, *_: object) -> None: ...


class Unspeakable(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no words for it")

    __str__ = __repr__


def test_an_error_that_cannot_be_told_is_charged_and_judged_like_others() -> None:
    clock = ManualClock()
    recruiter = Recruiter(clock=clock)

    @recruiter.job(rate=1.0)
    def unspeakable() -> None:
        clock.advance(0.2)
        raise Unspeakable

    assert recruiter.enlist() is Duty.DISMISSED
    stats = recruiter.stats()
    assert stats.jobs["unspeakable"].outcomes[Outcome.ERROR] == 1
    assert stats.debt > 0.0
    assert list(stats.open_targets) == ["job:unspeakable"]


async def test_a_cancelled_slice_is_neither_success_nor_failure() -> None:
    clock = ManualClock()
    recruiter = AsyncRecruiter(share=None, deadline=None, clock=clock)
    fails, begun = [True, True, True, False], asyncio.Event()

    @recruiter.job(rate=1.0)
    async def away() -> None:
        if fails.pop(0):
            raise ConnectionError
        begun.set()
        await asyncio.Event().wait()

    for _ in range(3):
        await recruiter.enlist()
        clock.advance(10.0)
    host = asyncio.create_task(recruiter.enlist())
    await begun.wait()
    host.cancel()
    with pytest.raises(asyncio.CancelledError):
        await host

    assert recruiter.stats().jobs["away"].outcomes[Outcome.INTERRUPTED] == 1
    assert recruiter.stats().open_targets


def test_a_thread_that_outlives_its_event_loop_is_not_busy_for_ever() -> None:
    recruiter = AsyncRecruiter(share=None, breaker=None, deadline=0.01)
    may_end, ended = Event(), Event()

    @recruiter.job(rate=1.0)
    def slow() -> None:
        if not ended.is_set():
            may_end.wait(10)
            ended.set()

    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(recruiter.enlist()) is Duty.DISMISSED
    loop.close()
    may_end.set()
    assert ended.wait(10)
    other = asyncio.new_event_loop()
    try:
        while other.run_until_complete(recruiter.enlist()) is not Duty.RECRUITED:
            pass
    finally:
        other.run_until_complete(other.shutdown_default_executor())
        other.close()


def test_a_logging_handler_that_raises_hides_nothing_from_observers() -> None:
    class Vicious(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("the log disk is full")

    recording = RecordingObserver()
    recruiter = _recruiter(observers=(recording,))
    recruiter.install(lambda: 1 / 0, "broken", rate=1.0)
    logger, handler = logging.getLogger("workstealing"), Vicious()
    logger.addHandler(handler)
    try:
        recruiter.enlist()
    finally:
        logger.removeHandler(handler)

    assert len(recording.events) == 1
