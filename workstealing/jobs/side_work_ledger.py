"""The side work of the whole fleet, as recruiters have published it.

`recruiter.publish()` lets each process add its counts to a small ledger in Redis;
`SideWorkLedger` reads them, summed up over the last hour, per job and host. Command
line, dashboard and Prometheus show the same values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.jobs.ledger_entries import (
    HOST_NUMBERS,
    JOB_NUMBERS,
    OUTCOMES,
    LedgerEntry,
    read_entries,
)
from workstealing.jobs.redis_job import AsyncRedisJob, RedisJob
from workstealing.queue.steps import Flow, ask
from workstealing.telemetry.events import Outcome

__all__ = (
    "REFUSALS",
    "AsyncSideWorkLedger",
    "FleetHost",
    "FleetJob",
    "FleetSideWork",
    "OpenTarget",
    "SideWorkLedger",
    "read_fleet",
)

REFUSALS = (Outcome.BUSY, Outcome.OPEN, Outcome.BUDGET, Outcome.STORE)
# Longer than two publications: what was open then may be closed by now.
_OPEN_MS = 30_000
_MOSTLY = 0.9


@dataclass(frozen=True, slots=True)
class FleetJob:
    """One job over the last hour: of the whole fleet, or of one host."""

    name: str
    host: str
    """Empty: of all hosts."""
    rate: float | None
    every: float | None
    outcomes: Mapping[Outcome, int]
    rounds: int
    seconds: float
    longest: float
    """The longest slice, in seconds."""
    overran: int
    process_seconds: float
    """How long the processes that have it ran, added up."""
    calls: int
    """Moments that these processes offered."""
    last_productive_ms: int | None
    """When a slice last worked, by the server's clock; None if none did."""
    last_error: str

    @property
    def drawn(self) -> int:
        """How often it was drawn, however that ended."""
        return sum(self.outcomes.values())

    @property
    def worked(self) -> int:
        """How many slices worked."""
        return self.outcomes[Outcome.RECRUITED]

    @property
    def refused(self) -> int:
        """How often it was drawn and not begun, to protect a host."""
        return sum(self.outcomes[outcome] for outcome in REFUSALS)

    @property
    def share(self) -> float:
        """The part of the processes' time that it took."""
        return self.seconds / self.process_seconds if self.process_seconds else 0.0

    @property
    def verdict(self) -> str:
        """Say what somebody should look at; empty if nothing."""
        drawn, begun = self.drawn, self.drawn - self.refused
        if not drawn:
            return "never drawn: its rate is too low for this traffic"
        if self.refused >= _MOSTLY * drawn:
            why = max(REFUSALS, key=lambda outcome: self.outcomes[outcome])
            return f"starving: mostly refused ({why})"
        if self.outcomes[Outcome.ERROR] > begun / 2:
            return "failing: most slices raise"
        if not self.worked and self.outcomes[Outcome.EMPTY]:
            return "does nothing: no slice found work"
        return ""


@dataclass(frozen=True, slots=True)
class FleetHost:
    """One host of the fleet, over the last hour."""

    name: str
    calls: int
    """Moments that its processes offered."""
    process_seconds: float
    """How long they ran, added up."""
    seen_ms: int
    """When one of them published last."""
    seconds: float
    """What side work took of that."""
    faults: int
    setup_failures: int

    @property
    def share(self) -> float:
        """The part of its processes' time that side work took."""
        return self.seconds / self.process_seconds if self.process_seconds else 0.0


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """A target that failed, and that a host leaves alone."""

    target: str
    host: str
    seen_ms: int
    """When a process last said so."""


@dataclass(frozen=True, slots=True)
class FleetSideWork:
    """What all recruiters that publish did in the last hour."""

    now_ms: int
    jobs: tuple[FleetJob, ...]
    """Of all hosts; those that took most time first."""
    by_host: tuple[FleetJob, ...]
    """The same by job and host."""
    hosts: tuple[FleetHost, ...]
    open_targets: tuple[OpenTarget, ...]
    is_all: bool
    """False if there are more jobs and hosts than the ledger has room for."""

    @property
    def share(self) -> float:
        """The part of all processes' time that side work took."""
        ran = sum(host.process_seconds for host in self.hosts)
        return sum(host.seconds for host in self.hosts) / ran if ran else 0.0


class SideWorkLedger(RedisJob):
    """Reads the ledger by a redis-py client, a URL, or the configured server."""

    def __init__(self, redis: Client | str | None = None) -> None:
        super().__init__(redis)

    def read(self) -> FleetSideWork:
        """Return the side work of the last hour."""
        return self._driver.run(read_fleet())


class AsyncSideWorkLedger(AsyncRedisJob):
    """Reads the ledger; `SideWorkLedger` for asyncio."""

    def __init__(self, redis: AsyncClient | str | None = None) -> None:
        super().__init__(redis)

    async def read(self) -> FleetSideWork:
        """Return the side work of the last hour."""
        return await self._driver.run(read_fleet())


def read_fleet() -> Flow[FleetSideWork]:
    """Read the ledger, and sum it up."""
    now_ms, is_all, entries = yield from ask(read_entries())
    per_host = _grouped(entries, "job", JOB_NUMBERS)
    host_entries = _grouped(entries, "host", HOST_NUMBERS)
    by_host = [
        _job(some, host_entries.get((host, ""), []))
        for (host, _), some in per_host.items()
    ]
    names = dict.fromkeys(job.name for job in by_host)
    jobs = [_sum([job for job in by_host if job.name == name]) for name in names]
    hosts = [
        _host(host, some, [job for job in by_host if job.host == host])
        for (host, _), some in host_entries.items()
    ]
    opened = [
        OpenTarget(name, host, max(one.numbers[-1] for one in some))
        for (host, name), some in _grouped(entries, "open", 3).items()
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


def _grouped(
    entries: Sequence[LedgerEntry], kind: str, numbers: int
) -> dict[tuple[str, str], list[LedgerEntry]]:
    """Bring the stretches of each field together; leave out what is none of ours."""
    found: dict[tuple[str, str], list[LedgerEntry]] = {}
    for one in entries:
        if one.kind == kind and len(one.numbers) == numbers:
            found.setdefault((one.host, one.name), []).append(one)
    return found


def _job(stretches: Sequence[LedgerEntry], host: Sequence[LedgerEntry]) -> FleetJob:
    latest = stretches[0]
    *sums, _, _ = map(sum, zip(*(one.numbers for one in stretches), strict=True))
    rounds, micros, overran = sums[len(OUTCOMES) :]
    worked_ms = max(one.numbers[-1] for one in stretches)
    return FleetJob(
        name=latest.name,
        host=latest.host,
        rate=_pace(latest.facts.get("rate")),
        every=_pace(latest.facts.get("every")),
        outcomes=dict(zip(OUTCOMES, sums, strict=False)),
        rounds=rounds,
        seconds=micros / 1e6,
        longest=max(one.numbers[-2] for one in stretches) / 1e6,
        overran=overran,
        process_seconds=sum(one.numbers[1] for one in host) / 1000,
        calls=sum(one.numbers[0] for one in host),
        last_productive_ms=worked_ms or None,
        last_error=next(
            (str(one.facts["error"]) for one in stretches if "error" in one.facts), ""
        ),
    )


def _sum(parts: Sequence[FleetJob]) -> FleetJob:
    first = parts[0]
    worked = [job.last_productive_ms for job in parts if job.last_productive_ms]
    return FleetJob(
        name=first.name,
        host="",
        rate=first.rate,
        every=first.every,
        outcomes={
            outcome: sum(job.outcomes[outcome] for job in parts) for outcome in OUTCOMES
        },
        rounds=sum(job.rounds for job in parts),
        seconds=sum(job.seconds for job in parts),
        longest=max(job.longest for job in parts),
        overran=sum(job.overran for job in parts),
        process_seconds=sum(job.process_seconds for job in parts),
        calls=sum(job.calls for job in parts),
        last_productive_ms=max(worked, default=None),
        last_error=next((job.last_error for job in parts if job.last_error), ""),
    )


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
