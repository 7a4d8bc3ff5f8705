"""`workstealing plan --observed`: the paces that would be planned for a fleet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from workstealing.cli.consoles import open_console
from workstealing.cli.tables import PagePart, TextTable, print_page
from workstealing.drivers.connect import connect
from workstealing.inspecting.formatting import (
    duration,
    percent,
    plural,
    significant,
    timestamp,
)
from workstealing.jobs.fleet_side_work import FleetJob, FleetSideWork
from workstealing.jobs.side_work_ledger import SideWorkLedger
from workstealing.jobs.side_work_rows import (
    NOBODY,
    pace_text,
    planned_text,
    why_text,
    yield_text,
)
from workstealing.recruiting.core import LEDGER_JOB
from workstealing.recruiting.observed_plan import Proposal

__all__ = ("print_observed_plan",)

# One change at a time: what it brings is seen before the next one.
_STEP = 2.0


def print_observed_plan(url: str | None, stale: float | None, *, as_json: bool) -> None:
    """Read what recruiters have published, and print what it speaks for."""
    ledger = SideWorkLedger(connect(url, profile="tasks"))
    seen = ledger.read()
    # What publishes the others is wanted for its own sake.
    jobs = [job for job in seen.jobs if job.name != LEDGER_JOB]
    if as_json:
        click.echo(json.dumps([_object(job, jobs, stale) for job in jobs], indent=2))
    elif jobs:
        print_page(_page(seen, jobs, ledger.target, stale), open_console())
    else:
        hint = "Call recruiter.publish() in the processes that have a recruiter."
        raise click.ClickException(f"{NOBODY} {hint}")


def _page(
    seen: FleetSideWork, jobs: Sequence[FleetJob], server: str, stale: float | None
) -> list[PagePart]:
    numbers = ("calls/s", "slices/min", "find work", "work left", "time")
    table = TextTable(
        ("job", "pace", *numbers, "planned", "proposed now", "why"),
        right=numbers,
        prose=("why",),
    )
    code: list[PagePart] = []
    for job in jobs:
        proposal = job.proposal(stale)
        change = _change(job, proposal)
        table.add(
            job.name,
            pace_text(job.rate, job.every, of_fleet=job.of_fleet),
            significant(job.calls_per_second),
            significant(job.slices / job.wall_seconds * 60 if job.wall_seconds else 0),
            yield_text(job),
            percent(job.seen.unfinished / job.seen.judged) if job.seen.judged else "",
            percent(job.share),
            planned_text(job, proposal),
            change or "no change",
            why_text(proposal, jobs),
        )
        if change:
            code.append(f'recruiter.set_rate("{job.name}", {change})')
    longest = max(job.wall_seconds for job in jobs)
    hosts = plural(len(seen.hosts), "host")
    told = f"{hosts} on {server}, the last {duration(longest)}"
    parts: list[PagePart] = [f"{told} until {timestamp(seen.now_ms)}", table, ""]
    if code:
        parts.append("A step at a time: look again before you take the next one.")
        return [*parts, "", *code]
    return [*parts, "Nothing that was seen speaks for another pace."]


def _change(job: FleetJob, proposal: Proposal) -> str:
    """Write the next step as an argument of `set_rate`; empty if there is none."""
    rate = proposal.changed(job.rate, _STEP)
    every = proposal.changed_every(job.every, _STEP)
    if rate is not None and rate != job.rate:
        return f"rate={rate!r}"
    if every is not None and every != job.every:
        # The fleet itself is an argument that only the code of the user has.
        return f"every={every!r}" + (", of=fleet" if job.of_fleet else "")
    return ""


def _object(
    job: FleetJob, jobs: Sequence[FleetJob], stale: float | None
) -> dict[str, Any]:
    proposal = job.proposal(stale)
    return {
        "job": job.name,
        "hosts": job.hosts,
        "rate": job.rate,
        "every": job.every,
        "of_fleet": job.of_fleet,
        "seconds": job.wall_seconds,
        "calls_per_second": job.calls_per_second,
        "slices": job.slices,
        "worked": job.worked,
        "empty": job.seen.empty,
        "unfinished": job.unfinished,
        "failed": job.seen.failed,
        "refused": job.refused,
        "share": job.share,
        "verdict": str(job.verdict.kind),
        "is_known": proposal.is_known,
        "planned_rate": proposal.changed(job.rate),
        "planned_every": proposal.changed_every(job.every),
        "proposed_rate": proposal.changed(job.rate, _STEP),
        "proposed_every": proposal.changed_every(job.every, _STEP),
        "why": why_text(proposal, jobs),
    }
