"""Lays out one frame of `workstealing top`; does no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from workstealing.cli.tables import PagePart, TextTable
from workstealing.inspecting import QueueStat, Rates, WorkerStat
from workstealing.inspecting.formatting import duration_ms, one_decimal, timestamp

__all__ = ("TopFrame", "top_page")

_NONE = "-"


@dataclass(frozen=True, slots=True)
class TopFrame:
    """What is known at one moment."""

    name: str
    """Queue and run."""
    stat: QueueStat | None = None
    """The last one that was read; None if there is none yet."""
    rates: Rates | None = None
    problem: str = ""
    """Why the queue cannot be read now; empty if it can."""
    silent_ms: int = 0
    """For how long it could not be read."""


def top_page(frame: TopFrame, workers: int) -> list[PagePart]:
    """Lay out one frame, with at most so many workers."""
    seen = frame.stat
    if seen is None:
        return [f"{frame.name}: {frame.problem}"]
    ended = "; its input has ended" if seen.input_ended else ""
    unknown = "" if seen.is_known else ": there is no such queue, or it was never used"
    now = timestamp(seen.now_ms)
    parts: list[PagePart] = [f"{frame.name} on {seen.server} at {now}{ended}{unknown}"]
    if frame.problem:
        silent = duration_ms(frame.silent_ms)
        parts.append(
            f"REDIS NOT REACHED for {silent}, last numbers below: {frame.problem}"
        )
    parts += (
        _places(seen),
        _rates(frame.rates),
        _workers(seen, workers),
        _upkeep(seen),
    )
    return parts


def _places(seen: QueueStat) -> TextTable:
    oldest = seen.oldest_at_ms
    cells = {
        "waiting": f"{seen.waiting:,}",
        "assigned": f"{seen.assigned:,}",
        "running": f"{seen.running:,}",
        "delayed": f"{seen.delayed:,}",
        "parked": f"{seen.parked:,}",
        "dead": f"{seen.dead:,}",
        "outcomes": f"{seen.outcomes:,}",
        "oldest": _NONE if oldest is None else duration_ms(seen.now_ms - oldest),
    }
    table = TextTable(tuple(cells), right=tuple(cells))
    table.add(*cells.values())
    return table


def _rates(rates: Rates | None) -> TextTable:
    names = Rates.__slots__
    table = TextTable(
        tuple(f"{name}/s" for name in names), right=[f"{n}/s" for n in names]
    )
    cells = (
        _NONE if rates is None else one_decimal(getattr(rates, name)) for name in names
    )
    table.add(*cells)
    return table


def _workers(seen: QueueStat, most: int) -> TextTable:
    numbers = ("deque", "running", "stolen", "renewed")
    table = TextTable(("worker", "state", *numbers, "host", "pid"), right=numbers)
    # Those alive first; of the dead ones the number matters.
    workers = sorted(
        seen.workers, key=lambda worker: (not worker.is_alive, worker.name)
    )
    for worker in workers[:most]:
        table.add(
            worker.name,
            _state(worker),
            f"{worker.waiting:,}",
            f"{worker.running:,}",
            f"{worker.stolen:,}",
            f"{duration_ms(worker.lease_age_ms)} ago",
            worker.host,
            str(worker.pid or ""),
        )
    if not workers:
        table.footer.append("no worker is alive")
    if len(workers) > most:
        table.footer.append(f"… {len(workers) - most:,} more workers")
    return table


def _state(worker: WorkerStat) -> str:
    if not worker.is_alive:
        return f"dead for {duration_ms(-worker.lease_left_ms)}"
    return "running" if worker.running else "idle"


def _upkeep(seen: QueueStat) -> str:
    ages = (
        f"{duty} {duration_ms(seen.now_ms - at_ms)} ago"
        for duty, at_ms in seen.upkeep.done_at_ms.items()
    )
    return f"Upkeep: {', '.join(ages) or 'none yet'}"
