"""The side work of the whole fleet, as recruiters have published it.

`recruiter.publish()` lets each process add its counts to a small ledger in Redis;
`SideWorkLedger` reads them, summed up over the last hour, per job and host. Command
line, dashboard and Prometheus show the same values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workstealing.jobs.fleet_side_work import (
    FleetHost,
    FleetJob,
    FleetSideWork,
    OpenTarget,
)
from workstealing.jobs.ledger_entries import (
    HOST_NUMBERS,
    JOB_NUMBERS,
    OPEN_NUMBERS,
    OUTCOMES,
    SPAN_NUMBERS,
    STRETCH_SECONDS,
    LedgerEntry,
    read_entries,
)
from workstealing.jobs.redis_job import AsyncRedisJob, RedisJob
from workstealing.queue.steps import Flow, ask

__all__ = ("AsyncSideWorkLedger", "SideWorkLedger")

# Longer than two publications: what was open then may be closed by now.
_OPEN_MS = 30_000


class SideWorkLedger(RedisJob):
    """Reads the ledger by a redis-py client, a URL, or the configured server."""

    def read(self) -> FleetSideWork:
        """Return the side work of the last hour."""
        return self._driver.run(_read_fleet())


class AsyncSideWorkLedger(AsyncRedisJob):
    """`SideWorkLedger` for asyncio."""

    async def read(self) -> FleetSideWork:
        """Return the side work of the last hour."""
        return await self._driver.run(_read_fleet())


def _read_fleet() -> Flow[FleetSideWork]:
    """Read the ledger, and sum it up."""
    now_ms, is_all, entries = yield from ask(read_entries())
    ledger = _Ledger(now_ms, entries)
    by_host: list[FleetJob] = []
    by_name: dict[str, list[LedgerEntry]] = {}
    for (host, name), some in ledger.fields("job", JOB_NUMBERS).items():
        by_host.append(ledger.job(some, host))
        by_name.setdefault(name, []).extend(some)
    jobs = [
        ledger.job(sorted(some, key=lambda one: -one.stretch), "")
        for some in by_name.values()
    ]
    hosts = [
        _host(host, some, [job for job in by_host if job.host == host])
        for (host, _), some in ledger.fields("host", HOST_NUMBERS).items()
    ]
    opened = [
        OpenTarget(name, host, max(one.numbers[-1] for one in some))
        for (host, name), some in ledger.fields("open", OPEN_NUMBERS).items()
    ]
    is_open = [one for one in opened if now_ms - one.seen_ms < _OPEN_MS]
    return FleetSideWork(
        now_ms,
        tuple(sorted(jobs, key=lambda job: (-job.seconds, job.name))),
        tuple(sorted(by_host, key=lambda job: (job.name, job.host))),
        tuple(sorted(hosts, key=lambda host: host.name)),
        tuple(sorted(is_open, key=lambda one: (one.target, one.host))),
        is_all,
    )


class _Ledger:
    """The entries of an hour, the latest first; malformed ones are left out."""

    def __init__(self, now_ms: int, entries: Sequence[LedgerEntry]) -> None:
        self._now_ms = now_ms
        self._entries = entries
        self._spans = {
            (one.name, one.stretch): one for one in self._of("span", SPAN_NUMBERS)
        }

    def fields(
        self, kind: str, numbers: int
    ) -> dict[tuple[str, str], list[LedgerEntry]]:
        """Bring the stretches of each host and name together."""
        found: dict[tuple[str, str], list[LedgerEntry]] = {}
        for one in self._of(kind, numbers):
            found.setdefault((one.host, one.name), []).append(one)
        return found

    def job(self, found: Sequence[LedgerEntry], host: str) -> FleetJob:
        """Sum up the entries of a job, on one host or on all of them."""
        latest = found[0]
        *sums, _, _ = map(sum, zip(*(one.numbers for one in found), strict=True))
        rounds, micros, overran, unfinished, calls, ran_ms = sums[len(OUTCOMES) :]
        worked_ms = max(one.numbers[-1] for one in found)
        errors = (str(one.facts["error"]) for one in found if "error" in one.facts)
        return FleetJob(
            name=latest.name,
            host=host,
            hosts=len({one.host for one in found}),
            rate=_pace(latest.facts.get("rate")),
            every=_pace(latest.facts.get("every")),
            of_fleet=latest.facts.get("of_fleet") is True,
            outcomes=dict(zip(OUTCOMES, sums, strict=False)),
            unfinished=unfinished,
            rounds=rounds,
            seconds=micros / 1e6,
            longest=max(one.numbers[-2] for one in found) / 1e6,
            overran=overran,
            process_seconds=ran_ms / 1000,
            wall_seconds=sum(
                self._seconds(latest.name, stretch)
                for stretch in {one.stretch for one in found}
            ),
            calls=calls,
            last_productive_ms=worked_ms or None,
            last_error=next(errors, ""),
        )

    def _of(self, kind: str, numbers: int) -> Iterator[LedgerEntry]:
        return (
            one
            for one in self._entries
            if one.kind == kind and len(one.numbers) == numbers
        )

    def _seconds(self, job: str, stretch: int) -> float:
        """Return for how much of a stretch somebody has counted a job."""
        whole_ms = STRETCH_SECONDS * 1000
        end_ms = (stretch + 1) * whole_ms
        # Without a span, the ledger had no room for it.
        began_before_ms, seen_ms = whole_ms, self._now_ms
        if (job, stretch) in self._spans:
            began_before_ms, seen_ms = self._spans[job, stretch].numbers
        return min(whole_ms, max(0, began_before_ms - (end_ms - seen_ms))) / 1000


def _host(
    name: str, stretches: Sequence[LedgerEntry], jobs: Sequence[FleetJob]
) -> FleetHost:
    calls, process_ms, faults, failures, _, _ = map(
        sum, zip(*(one.numbers for one in stretches), strict=True)
    )
    return FleetHost(
        name=name,
        calls=calls,
        process_seconds=process_ms / 1000,
        seen_ms=max(one.numbers[-1] for one in stretches),
        seconds=sum(job.seconds for job in jobs),
        faults=faults,
        setup_failures=failures,
    )


def _pace(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
