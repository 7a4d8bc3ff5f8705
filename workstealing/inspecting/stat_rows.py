"""What every view of a queue shows of it, as texts: counts, workers, limits, totals.

`queue stat`, `top`, the dashboard and the gauges lay these out in their own ways, but
take titles, order and wording from here, so they agree with each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from workstealing.inspecting.formatting import (
    duration,
    duration_ms,
    plural,
    timestamp,
)
from workstealing.inspecting.views import QueueStat, WorkerStat
from workstealing.queue.limit_calls import LimitState
from workstealing.tasks.context import Progress

__all__ = (
    "PLACE_TITLES",
    "WORKER_TITLES",
    "limit_text",
    "live_first",
    "oldest_age",
    "pause_lines",
    "place_counts",
    "remaining_time",
    "totals_text",
    "upkeep_ages",
    "worker_row",
)

PLACE_TITLES = (
    "waiting",
    "assigned",
    "running",
    "delayed",
    "parked",
    "paused",
    "held_back",
    "dead",
)
"""Where a task can be before its outcome is final; fields of `QueueStat`."""

WORKER_TITLES = (
    "worker",
    "state",
    "deque",
    "running",
    "stolen",
    "renewed",
    "host",
    "pid",
)


# An estimate from less of a task would jump about.
_EARLY = 0.01


def place_counts(stat: QueueStat) -> dict[str, str]:
    """Return how many tasks are in each place."""
    return {place: f"{getattr(stat, place):,}" for place in PLACE_TITLES}


def oldest_age(stat: QueueStat) -> str:
    """Return how long the oldest task has been waiting; empty if none waits."""
    if stat.oldest_at_ms is None:
        return ""
    return duration_ms(stat.now_ms - stat.oldest_at_ms)


def pause_lines(stat: QueueStat) -> list[str]:
    """Return what is paused, a line each: the queue has been paused since …"""
    lines = []
    for pause in stat.pauses:
        ago = duration_ms(stat.now_ms - pause.since_ms)
        aside = f"; {plural(pause.tasks, 'task')} put aside" if pause.tasks else ""
        since = f"since {timestamp(pause.since_ms)}, for {ago}"
        who = pause.reason.removesuffix(" is paused")
        lines.append(f"{who} has been paused {since}{aside}")
    return lines


def live_first(workers: Iterable[WorkerStat]) -> list[WorkerStat]:
    """Return the workers by name, those that are alive before those that are dead."""
    return sorted(workers, key=lambda worker: (not worker.is_alive, worker.name))


def worker_row(worker: WorkerStat) -> dict[str, str]:
    """Return a worker as a row of cells, by `WORKER_TITLES`."""
    state = "running" if worker.running else "idle"
    if not worker.is_alive:
        state = f"dead for {duration_ms(-worker.lease_left_ms)}"
    cells = (
        worker.name,
        state,
        f"{worker.waiting:,}",
        f"{worker.running:,}",
        f"{worker.stolen:,}",
        f"{duration_ms(worker.lease_age_ms)} ago",
        worker.host,
        str(worker.pid or ""),
    )
    return dict(zip(WORKER_TITLES, cells, strict=True))


def limit_text(limit: LimitState) -> str:
    """Return what a limit allows, and whether an operator has set it."""
    allowed = f"{limit.concurrency or 0:,} at once"
    if limit.rate is not None and limit.period is not None:
        allowed = f"{limit.rate:,} in {duration(limit.period)}"
    return f"{allowed}, set by an operator" if limit.is_overridden else allowed


def remaining_time(progress: Progress, passed_ms: int) -> str:
    """Estimate how long a task still takes; empty if it is too early to tell."""
    share = progress.done / progress.total if progress.total else 0.0
    if passed_ms <= 0 or not _EARLY < share < 1:
        return ""
    return duration_ms(round(passed_ms * (1 - share) / share))


def totals_text(stat: QueueStat) -> str:
    """Return what has happened since the queue was created: 3 submitted, 0 done, …

    What spare moments took is only said where they take any.
    """
    return ", ".join(
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in asdict(stat.totals).items()
        if number or name != "brief"
    )


def upkeep_ages(stat: QueueStat) -> dict[str, str]:
    """Return how long ago each duty of upkeep was last done."""
    return {
        duty: f"{duration_ms(stat.now_ms - at_ms)} ago"
        for duty, at_ms in stat.upkeep.done_at_ms.items()
    }
