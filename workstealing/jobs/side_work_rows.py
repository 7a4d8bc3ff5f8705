"""What the command line and the dashboard show of a fleet's side work, as texts.

They choose columns and lay them out in their own ways, but take the cells from here.
"""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.inspecting.formatting import (
    duration,
    duration_ms,
    one_decimal,
    percent,
    plural,
)
from workstealing.jobs.fleet_side_work import FleetHost, FleetJob, FleetSideWork
from workstealing.jobs.side_work_verdicts import OUT_OF_SHARE
from workstealing.recruiting.observed_plan import Proposal
from workstealing.telemetry.events import REFUSALS, Outcome

__all__ = (
    "NOBODY",
    "NOT_ALL",
    "host_row",
    "job_row",
    "pace_text",
    "planned_text",
    "seen_ago",
    "summary_text",
    "why_text",
    "yield_text",
)

NOBODY = "No recruiter has published anything in the last hour."
NOT_ALL = "There are more jobs than the ledger has room for: the sums are too low."


def summary_text(seen: FleetSideWork) -> str:
    """Say what all of it costs."""
    return (
        f"The last hour of {plural(len(seen.hosts), 'host')}: side work took"
        f" {percent(seen.share)} of the processes' time."
    )


def job_row(job: FleetJob, now_ms: int) -> dict[str, str]:
    """Return the cells of a job by their titles; `time` is its share of time."""
    begun = job.drawn - job.refused
    last_ms = job.last_productive_ms
    return {
        "job": job.name,
        "host": job.host,
        "hosts": f"{job.hosts:,}",
        "pace": pace_text(job.rate, job.every, of_fleet=job.of_fleet),
        "drawn": f"{job.drawn:,}",
        "worked": f"{job.worked:,}",
        "empty": f"{job.outcomes[Outcome.EMPTY]:,}",
        "errors": f"{job.outcomes[Outcome.ERROR]:,}",
        "refused": _refusals(job),
        "mean": duration(job.seconds / begun) if begun else "",
        "time": percent(job.share),
        "find work": yield_text(job),
        "last worked": "not lately" if last_ms is None else seen_ago(last_ms, now_ms),
        "verdict": str(job.verdict.kind),
        "planned pace": planned_text(job, job.proposal()),
    }


def host_row(host: FleetHost, now_ms: int) -> dict[str, str]:
    """Return the cells of a host by their titles; `time` is its share of time."""
    per_second = host.calls / host.process_seconds if host.process_seconds else 0.0
    return {
        "host": host.name,
        "process time": duration(host.process_seconds),
        "moments": f"{host.calls:,}",
        "moments/s": one_decimal(per_second),
        "time": percent(host.share),
        "faults": f"{host.faults + host.setup_failures:,}",
        "last seen": seen_ago(host.seen_ms, now_ms),
    }


def pace_text(
    rate: float | None, every: float | None, *, of_fleet: bool = False
) -> str:
    """Name a pace: `0.003 of calls`, `every 30 s`, `every 30 s of the fleet`."""
    if rate is not None:
        return f"{rate:g} of calls"
    if every is None:
        return ""
    return f"every {every:g} s of the fleet" if of_fleet else f"every {every:g} s"


def planned_text(job: FleetJob, proposal: Proposal) -> str:
    """Name the pace that would be planned, if that can be told."""
    if not proposal.is_known:
        return "?"
    if proposal.factor == 1.0:
        return "as it is"
    rate, every = proposal.changed(job.rate), proposal.changed_every(job.every)
    return pace_text(rate, every, of_fleet=job.of_fleet)


def why_text(proposal: Proposal, jobs: Sequence[FleetJob]) -> str:
    """Give the reason for a proposal; name the job that takes most, if that is it."""
    if proposal.why != OUT_OF_SHARE:
        return proposal.why
    busiest = max(jobs, key=lambda job: job.seconds)
    return f"{proposal.why} ({busiest.name}, {percent(busiest.share)})"


def _refusals(job: FleetJob) -> str:
    """Name the reasons of refusals: `12 budget, 3 open`."""
    counts = [(job.outcomes[outcome], str(outcome)) for outcome in REFUSALS]
    return ", ".join(f"{count:,} {why}" for count, why in counts if count) or "0"


def yield_text(job: FleetJob) -> str:
    """Say which part of the slices found work."""
    return percent(job.yielded) if job.seen.judged else ""


def seen_ago(at_ms: int, now_ms: int) -> str:
    """Say how long ago something was."""
    return f"{duration_ms(max(0, now_ms - at_ms))} ago"
