"""What `workstealing top --side-work` shows: the side work of the whole fleet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from workstealing._printing import on_one_line
from workstealing.cli.colours import ALARM, GOOD, HEADING, NOTICE, unless_zero
from workstealing.cli.live_frames import LiveFrame
from workstealing.cli.tables import PagePart, TextTable
from workstealing.inspecting.formatting import timestamp
from workstealing.jobs.fleet_side_work import FleetJob, FleetSideWork
from workstealing.jobs.side_work_rows import (
    NOBODY,
    NOT_ALL,
    host_row,
    job_row,
    summary_text,
)
from workstealing.jobs.side_work_verdicts import Verdict

__all__ = ("SIDE_WORK_TITLES", "SideWorkFrame", "side_work_parts")


@dataclass(frozen=True, slots=True)
class SideWorkFrame(LiveFrame):
    """What is known of the side work of a fleet at one moment."""

    server: str
    seen: FleetSideWork | None = None
    """What was read last; None until there is something."""


def side_work_parts(frame: SideWorkFrame, keys: Sequence[str]) -> list[PagePart]:
    """Lay out a frame as the views of these keys show it."""
    seen = frame.seen
    if seen is None:
        return [f"side work on {frame.server}: {frame.problem}"]
    title = f" on {frame.server} at {timestamp(seen.now_ms)}"
    parts: list[PagePart] = [Text.assemble(("side work", HEADING), on_one_line(title))]
    parts += frame.unreachable()
    if not seen.hosts:
        return [*parts, f"{NOBODY} One line in each process: recruiter.publish()"]
    parts += (summary_text(seen), *_alarms(seen))
    for key in keys:
        parts += _VIEWS[key][1](seen)
    return [*parts, *(() if seen.is_all else (NOT_ALL,))]


def _alarms(seen: FleetSideWork) -> list[PagePart]:
    lines = [
        f"{job.name}: {job.verdict}" for job in seen.jobs if job.verdict.needs_a_look
    ]
    lines += [
        f"the breaker of {one.target} is open on {one.host}; its jobs rest there"
        for one in seen.open_targets
    ]
    return [Text(on_one_line(line), style=ALARM) for line in lines]


def _jobs(seen: FleetSideWork) -> list[PagePart]:
    return [_table(seen.jobs, seen.now_ms, with_host=False)]


def _jobs_by_host(seen: FleetSideWork) -> list[PagePart]:
    return [_table(seen.by_host, seen.now_ms, with_host=True)]


def _table(jobs: Sequence[FleetJob], now_ms: int, *, with_host: bool) -> TextTable:
    counts, shares = ("drawn", "worked", "empty", "errors"), ("time", "find work")
    titles = (
        *("job", "host" if with_host else "hosts", "pace", *counts, "refused"),
        *(*shares, "last worked", "verdict", "planned pace"),
    )
    table = TextTable(
        titles,
        right=(*counts, *shares, "last worked", "hosts"),
        paint={
            "errors": unless_zero(ALARM),
            "refused": unless_zero(NOTICE),
            "verdict": lambda kind: _COLOURS.get(kind, ALARM),
        },
    )
    for job in jobs:
        row = job_row(job, now_ms)
        table.add(*(row[title] for title in titles))
    return table


def _hosts(seen: FleetSideWork) -> list[PagePart]:
    numbers = ("process time", "moments/s", "time", "faults", "last seen")
    titles = ("host", *numbers)
    table = TextTable(titles, right=numbers, paint={"faults": unless_zero(ALARM)})
    for host in seen.hosts:
        row = host_row(host, seen.now_ms)
        table.add(*(row[title] for title in titles))
    table.footer.append("moments/s: of one process, on average")
    return [table]


_COLOURS = {Verdict.GOOD.value: GOOD, Verdict.UNKNOWN.value: ""}
_VIEWS: dict[str, tuple[str, Callable[[FleetSideWork], list[PagePart]]]] = {
    "1": ("jobs", _jobs),
    "2": ("hosts", _hosts),
    "3": ("jobs by host", _jobs_by_host),
}
SIDE_WORK_TITLES = {key: title for key, (title, _) in _VIEWS.items()}
