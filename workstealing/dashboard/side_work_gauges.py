"""The side work of the fleet as text that Prometheus reads: the last hour, by job.

| metric | labels |
| --- | --- |
| `workstealing_side_work_slices` | `side_job`, `host`, `outcome` |
| `workstealing_side_work_time_share` | `side_job`, `host` |
| `workstealing_side_work_last_productive_seconds` | `side_job`, `host` |
| `workstealing_side_work_open_breakers` | `target`, `host` |
| `workstealing_side_work_verdict` (0 or 1) | `side_job`, `verdict` |
| `workstealing_side_work_calls_per_second` | `side_job` |
| `workstealing_side_work_rate` | `side_job` |
| `workstealing_side_work_planned_rate` | `side_job` |
| `workstealing_side_work_interval_seconds` | `side_job` |
| `workstealing_side_work_planned_interval_seconds` | `side_job` |

Those without the label `host` are about the whole fleet. A planned value is the present
one if too little was measured to plan another. The label that names a job is
`side_job`: Prometheus has a `job` of its own, and would rename ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workstealing.dashboard.gauges import family, sample
from workstealing.jobs.fleet_side_work import FleetJob, FleetSideWork
from workstealing.jobs.side_work_verdicts import Verdict

__all__ = ("side_work_gauges",)


def side_work_gauges(seen: FleetSideWork) -> str:
    """Return the metrics of the fleet; nothing if no recruiter publishes."""
    lines = list(_lines(seen)) if seen.hosts else []
    return "".join(f"{line}\n" for line in lines)


def _lines(seen: FleetSideWork) -> Iterator[str]:
    yield from _by_host(seen)
    yield from _family("open_breakers", "Targets that a host leaves alone.")
    for one in seen.open_targets:
        yield _line("open_breakers", 1, target=one.target, host=one.host)
    yield from _family("verdict", "How a job fares in the whole fleet.")
    for job in seen.jobs:
        for kind in Verdict:
            is_so = int(job.verdict.kind is kind)
            yield _line("verdict", is_so, side_job=job.name, verdict=str(kind))
    for name, description, value in _FLEET_FAMILIES:
        yield from _family(name, description)
        for job in seen.jobs:
            number = value(job)
            if number is not None:
                yield _line(name, number, side_job=job.name)


def _by_host(seen: FleetSideWork) -> Iterator[str]:
    yield from _family("slices", "Slices of the last hour, by how they ended.")
    for job in seen.by_host:
        for outcome, number in job.outcomes.items():
            yield _line("slices", number, **_on_host(job), outcome=str(outcome))
    yield from _family("time_share", "Part of the processes' time in the last hour.")
    for job in seen.by_host:
        yield _line("time_share", round(job.share, 6), **_on_host(job))
    yield from _family("last_productive_seconds", "Since a slice last worked.")
    for job in seen.by_host:
        if job.last_productive_ms is not None:
            ago = max(0, seen.now_ms - job.last_productive_ms) / 1000
            yield _line("last_productive_seconds", ago, **_on_host(job))


def _on_host(job: FleetJob) -> dict[str, str]:
    return {"side_job": job.name, "host": job.host}


_FLEET_FAMILIES: tuple[tuple[str, str, Callable[[FleetJob], float | None]], ...] = (
    (
        "calls_per_second",
        "Moments offered by the processes that have it.",
        lambda job: round(job.calls_per_second, 3),
    ),
    ("rate", "The rate in force.", lambda job: job.rate),
    (
        "planned_rate",
        "The rate that would be planned from what was seen.",
        lambda job: job.proposal().changed(job.rate),
    ),
    ("interval_seconds", "The interval in force.", lambda job: job.every),
    (
        "planned_interval_seconds",
        "The interval that would be planned from what was seen.",
        lambda job: job.proposal().changed_every(job.every),
    ),
)


def _family(name: str, description: str) -> Iterator[str]:
    return family(f"side_work_{name}", "gauge", description)


def _line(name: str, value: float, **labels: str) -> str:
    return sample(f"side_work_{name}", value, **labels)
