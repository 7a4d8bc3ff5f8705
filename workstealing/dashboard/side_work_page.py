"""The page of the side work of the whole fleet."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.dashboard.layout import Reader, frame
from workstealing.dashboard.markup import Column, Html, badge, table, tag, text
from workstealing.inspecting.formatting import duration, percent, plural, timestamp
from workstealing.jobs.fleet_side_work import FleetHost, FleetJob, FleetSideWork
from workstealing.jobs.side_work_rows import (
    NOBODY,
    NOT_ALL,
    pace_text,
    planned_text,
    productive_text,
    refusals_text,
    seen_ago,
    summary_text,
    yield_text,
)
from workstealing.telemetry.events import Outcome

__all__ = ("side_work_page",)

_ROWS = 200
_JOB_COLUMNS: tuple[Column, ...] = (
    Column("job", "name"),
    Column("pace", "plain"),
    Column("drawn", "number"),
    Column("worked", "number"),
    Column("empty", "number"),
    Column("errors", "number"),
    Column("refused", "plain"),
    Column("mean", "number"),
    Column("share of time", "number"),
    Column("find work", "number"),
    Column("last worked", "plain"),
    Column("verdict", "plain"),
    Column("planned pace", "plain"),
)
_HOST_COLUMNS = (
    Column("host", "name"),
    Column("process time", "number"),
    Column("moments", "number"),
    Column("share of time", "number"),
    Column("faults", "number"),
    Column("last seen", "plain"),
)


def side_work_page(seen: FleetSideWork, reader: Reader) -> str:
    """Show per job and per host what came of spare moments in the last hour."""
    body: list[str] = [tag("h1", "Side work")]
    if not seen.hosts:
        body += _nobody()
    else:
        body.append(tag("p", summary_text(seen), class_="quiet"))
        body += (
            _alarm(one, seen.now_ms) for one in seen.jobs if one.verdict.needs_a_look
        )
        body += (
            tag(
                "p",
                tag("b", f"The breaker of {one.target} is open on {one.host}."),
                f" Its jobs rest there; seen {seen_ago(one.seen_ms, seen.now_ms)}.",
                class_="alarm",
                data_key=f"open {one.target} {one.host}",
            )
            for one in seen.open_targets
        )
        body += (tag("h2", "Jobs"), _jobs(seen.jobs, seen.now_ms))
        body += (tag("h2", "Hosts"), _hosts(seen.hosts, seen.now_ms))
        if len(seen.hosts) > 1:
            body.append(tag("h2", "Jobs by host"))
            body.append(_jobs(seen.by_host[:_ROWS], seen.now_ms, with_host=True))
            if len(seen.by_host) > _ROWS:
                more = plural(len(seen.by_host) - _ROWS, "more row")
                body.append(tag("p", f"… {more}", class_="quiet"))
    if not seen.is_all:
        body.append(tag("p", NOT_ALL, class_="quiet"))
    body.append(tag("p", timestamp(seen.now_ms), class_="quiet"))
    return frame("Side work", [], body, reader, every_ms=5000)


def _nobody() -> list[str]:
    return [
        tag("p", NOBODY),
        tag(
            "p",
            "One line in each process that has one: ",
            tag("code", "recruiter.publish()"),
            class_="quiet",
        ),
    ]


def _alarm(job: FleetJob, now_ms: int) -> Html:
    ago = "It did not work in the last hour."
    if job.last_productive_ms is not None:
        ago = f"It last worked {seen_ago(job.last_productive_ms, now_ms)}."
    return tag(
        "p",
        tag("b", f"{job.name}: "),
        f"{job.verdict}. {ago}",
        *((" ", tag("code", job.last_error)) if job.last_error else ()),
        class_="notice",
        data_key=f"job {job.name}",
    )


def _jobs(jobs: Sequence[FleetJob], now_ms: int, *, with_host: bool = False) -> Html:
    columns = _JOB_COLUMNS
    if with_host:
        columns = (_JOB_COLUMNS[0], Column("host", "name"), *_JOB_COLUMNS[1:])
    rows, keys = [], []
    for job in jobs:
        first, *cells = _cells(job, now_ms)
        rows.append((first, *((job.host,) if with_host else ()), *cells))
        keys.append(f"{job.name}\t{job.host}")
    label = "Jobs by host" if with_host else "Jobs"
    return table(columns, rows, keys, label=label)


def _cells(job: FleetJob, now_ms: int) -> tuple[str, ...]:
    begun = job.drawn - job.refused
    errors = job.outcomes[Outcome.ERROR]
    return (
        job.name,
        pace_text(job.rate, job.every, of_fleet=job.of_fleet),
        f"{job.drawn:,}",
        f"{job.worked:,}",
        f"{job.outcomes[Outcome.EMPTY]:,}",
        badge("failed", f"{errors:,}") if errors else text("0"),
        refusals_text(job),
        duration(job.seconds / begun) if begun else "",
        percent(job.share),
        yield_text(job),
        productive_text(job, now_ms),
        str(job.verdict.kind),
        planned_text(job, job.proposal()),
    )


def _hosts(hosts: Sequence[FleetHost], now_ms: int) -> Html:
    rows = [
        (
            host.name,
            duration(host.process_seconds),
            f"{host.calls:,}",
            percent(host.share),
            f"{host.faults + host.setup_failures:,}",
            seen_ago(host.seen_ms, now_ms),
        )
        for host in hosts[:_ROWS]
    ]
    return table(_HOST_COLUMNS, rows, label="Hosts")
