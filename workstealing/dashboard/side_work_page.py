"""The page of the side work of the whole fleet."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.dashboard.layout import Reader, frame
from workstealing.dashboard.markup import Column, Html, badge, table, tag
from workstealing.inspecting.formatting import plural, timestamp
from workstealing.jobs.fleet_side_work import FleetHost, FleetJob, FleetSideWork
from workstealing.jobs.side_work_rows import (
    NOBODY,
    NOT_ALL,
    host_row,
    job_row,
    seen_ago,
    summary_text,
)

__all__ = ("side_work_page",)

_ROWS = 200
# By the titles of the cells.
_JOB_COLUMNS = {
    "job": Column("job", "name"),
    "host": Column("host", "name"),
    "pace": Column("pace", "plain"),
    **{name: Column(name, "number") for name in ("drawn", "worked", "empty", "errors")},
    "refused": Column("refused", "plain"),
    "mean": Column("mean", "number"),
    "time": Column("share of time", "number"),
    "find work": Column("find work", "number"),
    **{
        name: Column(name, "plain")
        for name in ("last worked", "verdict", "planned pace")
    },
}
_HOST_COLUMNS = {
    "host": Column("host", "name"),
    "process time": Column("process time", "number"),
    "moments": Column("moments", "number"),
    "time": Column("share of time", "number"),
    "faults": Column("faults", "number"),
    "last seen": Column("last seen", "plain"),
}


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
    columns = dict(_JOB_COLUMNS)
    if not with_host:
        del columns["host"]
    rows, keys = [], []
    for job in jobs:
        row = job_row(job, now_ms)
        if row["errors"] != "0":
            row["errors"] = badge("failed", row["errors"])
        rows.append([row[name] for name in columns])
        keys.append(f"{job.name}\t{job.host}")
    label = "Jobs by host" if with_host else "Jobs"
    return table([*columns.values()], rows, keys, label=label)


def _hosts(hosts: Sequence[FleetHost], now_ms: int) -> Html:
    cells = (host_row(host, now_ms) for host in hosts[:_ROWS])
    rows = [[row[name] for name in _HOST_COLUMNS] for row in cells]
    return table([*_HOST_COLUMNS.values()], rows, label="Hosts")
