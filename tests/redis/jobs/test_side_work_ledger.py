"""What recruiters publish, summed up for the whole fleet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import AsyncRecruiter, Duty, Recruiter
from workstealing.jobs import AsyncSideWorkLedger, SideWorkLedger
from workstealing.jobs.ledger_entries import LedgerEntry, StatsDelta, add_entries
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
    numbers = (0,) * 12 + (5, -1)
    for start in range(0, 1200, 400):
        entries = [
            LedgerEntry("job", f"job-{n}", "a", (*numbers[:9], *numbers[9:]), {})
            for n in range(start, start + 400)
        ]
        _add(client, entries)

    seen = SideWorkLedger(client).read()

    assert len(seen.jobs) == 1000
    assert not seen.is_all


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
    assert archive.verdict == "failing: most slices raise"


@pytest.mark.parametrize(
    ("outcome", "number", "verdict"),
    [
        (Outcome.RECRUITED, 0, "never drawn: its rate is too low for this traffic"),
        (Outcome.RECRUITED, 3, ""),
        (Outcome.EMPTY, 3, "does nothing: no slice found work"),
        (Outcome.BUDGET, 3, "starving: mostly refused (budget)"),
    ],
)
def test_a_job_that_needs_a_look_says_why(
    client: Redis, outcome: Outcome, number: int, verdict: str
) -> None:
    counts = tuple(number if one is outcome else 0 for one in Outcome)
    _add(client, [LedgerEntry("job", "sweep", "a", (*counts, 0, 0, 0, 0, -1), {})])

    assert SideWorkLedger(client).read().jobs[0].verdict == verdict


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
