"""The side work of the fleet as text that Prometheus reads: the last hour, by job.

| metric | labels |
| --- | --- |
| `workstealing_side_work_slices` | `job`, `host`, `outcome` |
| `workstealing_side_work_time_share` | `job`, `host` |
| `workstealing_side_work_last_productive_seconds` | `job`, `host` |
| `workstealing_side_work_open_breakers` | `target`, `host` |
"""

from __future__ import annotations

from collections.abc import Iterator

from workstealing.dashboard.gauges import escaped_label
from workstealing.jobs.side_work_ledger import FleetSideWork

__all__ = ("side_work_gauges",)


def side_work_gauges(seen: FleetSideWork) -> str:
    """Return the metrics of the fleet; nothing if no recruiter publishes."""
    lines = list(_lines(seen)) if seen.hosts else []
    return "".join(f"{line}\n" for line in lines)


def _lines(seen: FleetSideWork) -> Iterator[str]:
    yield from _family("slices", "Slices of the last hour, by how they ended.")
    for job in seen.by_host:
        for outcome, number in job.outcomes.items():
            labels = {"job": job.name, "host": job.host, "outcome": str(outcome)}
            yield _line("slices", number, **labels)
    yield from _family("time_share", "Part of the processes' time in the last hour.")
    for job in seen.by_host:
        yield _line("time_share", round(job.share, 6), job=job.name, host=job.host)
    yield from _family("last_productive_seconds", "Since a slice last worked.")
    for job in seen.by_host:
        if job.last_productive_ms is not None:
            ago = max(0, seen.now_ms - job.last_productive_ms) / 1000
            yield _line("last_productive_seconds", ago, job=job.name, host=job.host)
    yield from _family("open_breakers", "Targets that a host leaves alone.")
    for one in seen.open_targets:
        yield _line("open_breakers", 1, target=one.target, host=one.host)


def _family(name: str, description: str) -> Iterator[str]:
    yield f"# HELP workstealing_side_work_{name} {description}"
    yield f"# TYPE workstealing_side_work_{name} gauge"


def _line(name: str, value: float, /, **labels: str) -> str:
    written = ",".join(
        f'{label}="{escaped_label(word)}"' for label, word in labels.items()
    )
    return f"workstealing_side_work_{name}{{{written}}} {value}"
