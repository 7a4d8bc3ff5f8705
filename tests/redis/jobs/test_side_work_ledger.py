"""What recruiters publish, summed up for the whole fleet."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import AsyncRecruiter, Duty, Fleet, Recruiter
from workstealing.jobs import AsyncSideWorkLedger, SideWorkLedger, Verdict
from workstealing.jobs.ledger_entries import (
    JOB_NUMBERS,
    LedgerEntry,
    StatsDelta,
    add_entries,
)
from workstealing.telemetry.events import Outcome
from workstealing.testing import Server


@pytest.fixture
def client(redis_client: Redis) -> Iterator[Redis]:
    """A client of a server whose ledger is empty before and after."""
    _forget(redis_client)
    yield redis_client
    _forget(redis_client)


def _forget(client: Redis) -> None:
    for key in client.scan_iter("ws:{side-work}:*", count=1000):
        client.delete(key)


def _recruiter() -> Recruiter:
    recruiter = Recruiter(share=None)
    found = iter([Duty.RECRUITED, Duty.RECRUITED])
    recruiter.install(lambda: next(found, Duty.DISMISSED), "sweep", rate=0.5)
    return recruiter


def test_a_recruiter_publishes_what_it_has_counted_since_the_last_time(
    client: Redis,
) -> None:
    recruiter = _recruiter()
    recruiter.publish(client)
    for _ in range(3):
        recruiter.run_now("sweep")

    recruiter.run_now("ledger")
    recruiter.run_now("sweep")
    recruiter.run_now("ledger")

    seen = SideWorkLedger(client).read()
    sweep = next(job for job in seen.jobs if job.name == "sweep")
    assert (sweep.drawn, sweep.worked, sweep.outcomes[Outcome.EMPTY]) == (4, 2, 2)
    assert sweep.rate == 0.5
    assert sweep.last_productive_ms is not None
    assert 0 <= seen.now_ms - sweep.last_productive_ms < 60_000
    assert seen.share > 0
    assert [host.name for host in seen.hosts] == [sweep.host or seen.by_host[0].host]
    assert seen.is_all


def test_processes_of_one_host_are_added_up_and_hosts_are_told_apart(
    client: Redis,
) -> None:
    for host in ("a", "a", "b"):
        recruiter = _recruiter()
        recruiter.run_now("sweep")
        entries = StatsDelta().entries(recruiter.stats(), host)
        _add(client, entries)

    seen = SideWorkLedger(client).read()

    assert [(job.name, job.worked) for job in seen.jobs] == [("sweep", 3)]
    by_host = [(job.host, job.worked) for job in seen.by_host]
    assert by_host == [("a", 2), ("b", 1)]


def test_a_ledger_that_nobody_writes_any_more_ends_by_itself(client: Redis) -> None:
    recruiter = _recruiter()
    recruiter.publish(client)
    recruiter.run_now("ledger")

    keys = list(client.scan_iter("ws:{side-work}:*", count=1000))

    assert len(keys) == 1
    assert 3_600_000 < client.pttl(keys[0]) <= 3_900_000


def test_a_ledger_has_room_for_a_thousand_and_says_so(client: Redis) -> None:
    numbers = (0,) * (JOB_NUMBERS - 2) + (5, -1)
    for start in range(0, 1200, 400):
        entries = [
            LedgerEntry("job", f"job-{n}", "a", numbers, {})
            for n in range(start, start + 400)
        ]
        _add(client, entries)

    seen = SideWorkLedger(client).read()

    assert len(seen.jobs) == 1000
    assert not seen.is_all


def test_hosts_beyond_the_room_of_a_ledger_are_added_up_as_one(client: Redis) -> None:
    """A hundred hosts with ten jobs each: all sums are right."""
    recruiter = Recruiter(share=None)
    for n in range(10):
        recruiter.install(lambda: Duty.MORE, f"job-{n}", rate=0.05)
        recruiter.run_now(f"job-{n}")
    for n in range(100):
        _add(client, _delta_after(20.0).entries(recruiter.stats(), f"host-{n:02}"))

    seen = SideWorkLedger(client).read()

    assert {(job.worked, job.unfinished) for job in seen.jobs} == {(100, 100)}
    assert {job.process_seconds for job in seen.jobs} == {2000.0}
    assert sum(host.process_seconds for host in seen.hosts) == 2000.0
    assert {"*", "host-00"} <= {host.name for host in seen.hosts}
    assert seen.is_all


def test_an_open_breaker_is_seen_by_the_fleet(client: Redis) -> None:
    recruiter = Recruiter(share=None)

    def fail() -> None:
        raise ConnectionError("the archive is away")

    recruiter.install(fail, "archive", rate=0.5, target="archive:9000")
    recruiter.publish(client)
    recruiter.run_now("archive")
    recruiter.run_now("archive")
    recruiter.run_now("ledger")

    seen = SideWorkLedger(client).read()

    assert [one.target for one in seen.open_targets] == ["archive:9000"]
    archive = next(job for job in seen.jobs if job.name == "archive")
    assert archive.refused == archive.outcomes[Outcome.OPEN] == 1
    assert "the archive is away" in archive.last_error
    assert archive.verdict.words == "failing: 1 of 1 slice raised"


def test_slices_that_end_with_work_left_are_published(client: Redis) -> None:
    recruiter = Recruiter(share=None, deadline=None)
    recruiter.install(lambda: Duty.MORE, "sweep", rate=0.5)
    recruiter.install(lambda: Duty.RECRUITED, "trim", rate=0.5)
    recruiter.publish(client)
    for name in ("sweep", "sweep", "trim", "ledger", "sweep", "ledger"):
        recruiter.run_now(name)

    seen = SideWorkLedger(client).read()

    left = {job.name: job.unfinished for job in seen.jobs}
    assert left == {"sweep": 3, "trim": 0, "ledger": 0}


def test_a_job_of_the_fleet_is_told_from_one_of_each_process(client: Redis) -> None:
    recruiter = Recruiter(share=None, deadline=5.0)
    fleet = Fleet(client, "ledger-test")
    recruiter.install(lambda: None, "report", every=600, of=fleet)
    recruiter.install(lambda: None, "tick", every=600)
    recruiter.publish(client)
    for name in ("report", "report", "report", "tick", "ledger"):
        recruiter.run_now(name)

    jobs = {job.name: job for job in SideWorkLedger(client).read().jobs}

    assert (jobs["report"].of_fleet, jobs["tick"].of_fleet) == (True, False)
    assert (jobs["report"].drawn, jobs["report"].slices) == (3, 1)
    assert jobs["report"].yielded == 1.0, "a turn that is taken is no empty slice"


def test_processes_that_count_at_the_same_time_make_calls_of_one_time(
    client: Redis,
) -> None:
    """Two processes of 20 s each, that have run side by side, are 20 s of a fleet."""
    for host in ("a", "b"):
        now = 1000.0
        delta = StatsDelta(lambda: now)  # noqa: B023 - called in this round
        recruiter = _recruiter()
        for _ in range(400):
            recruiter.enlist()
        now += 20.0
        _add(client, delta.entries(recruiter.stats(), host))

    (sweep,) = SideWorkLedger(client).read().jobs

    assert sweep.hosts == 2
    assert sweep.process_seconds == 40.0
    assert sweep.wall_seconds == pytest.approx(20.0, abs=2.0)
    assert sweep.calls_per_second == pytest.approx(40.0, rel=0.1)


def test_a_job_is_measured_against_the_time_in_which_it_was_there(
    client: Redis,
) -> None:
    """A process that ran for long before it got a job does not make the job starve."""
    now = 1000.0
    delta = StatsDelta(lambda: now)
    recruiter = Recruiter(share=None)
    for _ in range(2):
        now += 120.0
        recruiter.enlist()
        _add(client, delta.entries(recruiter.stats(), "a"))
    recruiter.install(lambda: None, "tick", every=1.0, of=Fleet(client, "late"))
    for _ in range(2):
        now += 5.0
        recruiter.enlist()
        _add(client, delta.entries(recruiter.stats(), "a"))

    seen = SideWorkLedger(client).read()

    assert (seen.jobs[0].process_seconds, seen.jobs[0].calls) == (5.0, 1)
    assert seen.jobs[0].wall_seconds == pytest.approx(5.0, abs=2.0)
    assert (seen.hosts[0].process_seconds, seen.hosts[0].calls) == (250.0, 4)


def test_a_job_is_measured_against_the_processes_that_have_it(client: Redis) -> None:
    """Others on the same host have no part in what it gets."""
    for jobs in (["tick"], []):
        recruiter = Recruiter(share=None)
        for name in jobs:
            recruiter.install(lambda: None, name, every=1.0)
        _add(client, _delta_after(60.0).entries(recruiter.stats(), "a"))

    seen = SideWorkLedger(client).read()

    assert seen.jobs[0].process_seconds == 60.0
    assert seen.hosts[0].process_seconds == 120.0


def test_a_job_does_not_starve_because_its_process_had_a_quiet_night(
    client: Redis,
) -> None:
    recruiter = Recruiter(share=None)
    recruiter.install(lambda: Duty.RECRUITED, "tick", every=60.0)
    recruiter.run_now("tick")
    _add(client, _delta_after(8 * 3600.0).entries(recruiter.stats(), "a"))

    (tick,) = SideWorkLedger(client).read().jobs

    assert tick.process_seconds == 300.0
    assert tick.verdict.kind is Verdict.GOOD


def test_a_child_that_is_forked_late_has_not_run_for_long() -> None:
    now = 1000.0
    delta = StatsDelta(lambda: now)
    now += 86_400.0
    child = os.fork()
    if not child:
        now += 2.0
        entries = delta.entries(_recruiter().stats(), "a")
        (ran_ms,) = (one.numbers[1] for one in entries if one.kind == "host")
        os._exit(ran_ms != 2000)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0


def test_what_an_older_release_has_written_is_read(client: Redis) -> None:
    recruiter = _recruiter()
    recruiter.run_now("sweep")
    entries = StatsDelta().entries(recruiter.stats(), "a")
    _add(client, [one for one in entries if one.kind in ("job", "host")])

    (sweep,) = SideWorkLedger(client).read().jobs

    assert (sweep.worked, sweep.unfinished, sweep.of_fleet) == (1, 0, False)
    assert 0 <= sweep.wall_seconds <= 300


def test_foreign_entries_are_left_out(client: Redis) -> None:
    recruiter = _recruiter()
    recruiter.publish(client)
    recruiter.run_now("ledger")
    (key,) = client.scan_iter("ws:{side-work}:*", count=1000)
    client.hset(key, mapping={"job\ta\tx": "1 2", "?": "\n{", "host\tb\t": "x\n["})

    seen = SideWorkLedger(client).read()

    assert {job.name for job in seen.jobs} == {"sweep", "ledger"}


async def test_asyncio_publishes_and_reads_the_same(
    client: Redis, redis_server: Server
) -> None:
    async_client = AsyncRedis.from_url(redis_server.url)
    recruiter = AsyncRecruiter(share=None)
    recruiter.install(lambda: None, "sweep", rate=0.5)
    recruiter.publish(async_client)
    await recruiter.run_now("sweep")
    await recruiter.run_now("ledger")

    seen = await AsyncSideWorkLedger(async_client).read()

    assert next(job for job in seen.jobs if job.name == "sweep").worked == 1
    assert seen.jobs == SideWorkLedger(client).read().jobs
    await async_client.aclose()


def _add(client: Redis, entries: list[LedgerEntry]) -> None:
    SideWorkLedger(client)._driver.call(add_entries(entries))


def _delta_after(seconds: float) -> StatsDelta:
    """Return the counts of a process that publishes after so many seconds."""
    times = iter((0.0,))
    return StatsDelta(lambda: next(times, seconds))
