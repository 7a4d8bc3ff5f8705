"""Promise 2: a rate is kept, whatever the threads, forks and changes of rates."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from threading import Event, Thread

import pytest

from workstealing import AsyncRecruiter, Recruiter

CALLS = 1_000_000
RATES = {"a": 0.1, "b": 0.05, "c": 0.01, "d": 0.002, "e": 0.0, "f": 0.0005}


def _recruiter() -> Recruiter:
    recruiter = Recruiter(share=None)
    for name, rate in RATES.items():
        recruiter.install(lambda: None, name, rate=rate)
    return recruiter


def _drawn(recruiter: Recruiter | AsyncRecruiter) -> dict[str, int]:
    return {name: job.drawn for name, job in recruiter.stats().jobs.items()}


def _assert_shares(drawn: dict[str, int], calls: int, rates: dict[str, float]) -> None:
    for name, rate in rates.items():
        sigma = math.sqrt(calls * rate * (1.0 - rate))
        assert abs(drawn[name] - calls * rate) <= 5.0 * sigma, name


def test_each_job_gets_its_share_of_the_calls_of_one_thread() -> None:
    recruiter = _recruiter()

    for _ in range(CALLS):
        recruiter.enlist()

    _assert_shares(_drawn(recruiter), CALLS, RATES)
    assert recruiter.stats().calls == CALLS


def test_each_job_gets_its_share_of_the_calls_of_eight_threads() -> None:
    recruiter = _recruiter()

    def host() -> None:
        for _ in range(CALLS // 8):
            recruiter.enlist()

    threads = [Thread(target=host) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    _assert_shares(_drawn(recruiter), CALLS, RATES)
    assert recruiter.stats().calls == pytest.approx(CALLS, rel=1e-3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_forked_children_keep_the_shares_and_draw_differently() -> None:
    recruiter = _recruiter()
    for _ in range(1000):
        recruiter.enlist()

    reports = [_run_in_child(recruiter, CALLS // 4) for _ in range(4)]

    total = Counter()
    for report in reports:
        assert report["calls"] == CALLS // 4
        total.update(report["drawn"])
    _assert_shares({**dict.fromkeys(RATES, 0), **total}, CALLS, RATES)
    first_recruits = {report["first"] for report in reports}
    assert len(first_recruits) > 1


async def test_each_job_gets_its_share_under_asyncio() -> None:
    recruiter = AsyncRecruiter(share=None)

    async def job() -> None: ...

    for name, rate in RATES.items():
        recruiter.install(job, name, rate=rate)

    for _ in range(CALLS):
        await recruiter.enlist()

    _assert_shares(_drawn(recruiter), CALLS, RATES)
    assert recruiter.stats().calls == CALLS


def test_rates_that_change_in_mid_run_are_kept_from_the_next_call_on() -> None:
    recruiter = _recruiter()
    half = CALLS // 2
    changed = {"a": 0.0, "b": 0.2, "c": 0.0001, "d": 0.002, "e": 0.3, "f": 0.1}

    for _ in range(half):
        recruiter.enlist()
    before = _drawn(recruiter)
    recruiter.set_rate("a", 0.0)
    for name, rate in changed.items():
        recruiter.set_rate(name, rate)
    for _ in range(half):
        recruiter.enlist()

    after = {name: count - before[name] for name, count in _drawn(recruiter).items()}
    _assert_shares(before, half, RATES)
    _assert_shares(after, half, changed)
    assert recruiter.stats().calls == CALLS


def test_changing_rates_at_every_turn_does_not_bend_the_shares() -> None:
    recruiter = Recruiter(share=None)
    recruiter.install(lambda: None, "a", rate=0.05)

    for turn in range(100_000):
        if turn % 3 == 0:
            recruiter.set_rate("a", 0.05)
        recruiter.enlist()

    _assert_shares(_drawn(recruiter), 100_000, {"a": 0.05})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_child_forked_in_the_middle_of_a_change_has_the_rate_that_it_tells() -> None:
    recruiter = Recruiter(share=None)
    recruiter.install(lambda: None, "a", rate=0.0)
    stop = Event()

    def restless() -> None:
        while not stop.is_set():
            recruiter.set_rate("a", 0.5)
            recruiter.set_rate("a", 0.0)

    thread = Thread(target=restless)
    thread.start()
    try:
        reports = [_run_in_child(recruiter, 1000) for _ in range(40)]
    finally:
        stop.set()
        thread.join()

    for report in reports:
        assert (report["drawn"]["a"] > 0) is (report["rate"] > 0.0)


def test_rates_that_add_up_to_one_recruit_every_call() -> None:
    recruiter = Recruiter(share=None)
    for index in range(10):
        recruiter.install(lambda: None, f"job-{index}", rate=0.1)

    for _ in range(1000):
        recruiter.enlist()

    assert sum(_drawn(recruiter).values()) == 1000


def _run_in_child(recruiter: Recruiter, calls: int) -> dict[str, object]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            first = None
            for number in range(calls):
                if recruiter.enlist() and first is None:
                    first = number
            report = {
                "first": first,
                "calls": recruiter.stats().calls,
                "drawn": _drawn(recruiter),
                "rate": recruiter.stats().jobs["a"].rate,
            }
            os.write(writer, json.dumps(report).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, "rb") as pipe:
        report = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(report)
