"""Draws a queue as it goes, for `workstealing top`; does no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from workstealing.cli.sheets import Part, Sheet
from workstealing.inspecting.rates import Rates
from workstealing.inspecting.values import Stat, WorkerStat
from workstealing.inspecting.wording import moment, rate, span

__all__ = ("View", "page")

_NONE = "-"


@dataclass(frozen=True, slots=True)
class View:
    """What is known at one moment."""

    name: str
    """Of queue and run."""
    stat: Stat | None = None
    """What was last seen; None if nothing ever was."""
    rates: Rates | None = None
    problem: str = ""
    """Why nothing is seen now; empty if all is well."""
    silent_ms: int = 0
    """For how long nothing was seen."""


def page(view: View, workers: int) -> list[Part]:
    """Draw one frame, with so many workers at most."""
    seen = view.stat
    if seen is None:
        return [f"{view.name}: {view.problem}"]
    closed = ", closed: no more input" if seen.is_closed else ""
    unknown = "" if seen.is_known else ": there is no such queue, or nobody used it yet"
    title = f"{view.name} on {seen.server} at {moment(seen.now_ms)}{closed}{unknown}"
    parts: list[Part] = [title]
    if view.problem:
        silent = span(view.silent_ms)
        parts.append(f"NOT REACHED for {silent}, this is from before: {view.problem}")
    parts += (_places(seen), _rates(view.rates), _crew(seen, workers), _upkeep(seen))
    return parts


def _places(seen: Stat) -> Sheet:
    oldest = seen.oldest_at_ms
    cells = {
        "waiting": f"{seen.waiting:,}",
        "assigned": f"{seen.assigned:,}",
        "running": f"{seen.running:,}",
        "delayed": f"{seen.delayed:,}",
        "parked": f"{seen.parked:,}",
        "dead": f"{seen.dead:,}",
        "outcomes": f"{seen.outcomes:,}",
        "oldest waits": _NONE if oldest is None else span(seen.now_ms - oldest),
    }
    made = Sheet(tuple(cells), right=tuple(cells))
    made.add(*cells.values())
    return made


def _rates(rates: Rates | None) -> Sheet:
    names = Rates.__slots__
    made = Sheet(tuple(f"{name}/s" for name in names), right=[f"{n}/s" for n in names])
    cells = (_NONE if rates is None else rate(getattr(rates, name)) for name in names)
    made.add(*cells)
    return made


def _crew(seen: Stat, most: int) -> Sheet:
    numbers = ("deque", "running", "stolen", "renewed")
    made = Sheet(("worker", "state", *numbers, "host", "process"), right=numbers)
    # The living first: of the dead one wants to know how many.
    crew = sorted(seen.workers, key=lambda worker: (not worker.is_alive, worker.name))
    for worker in crew[:most]:
        made.add(
            worker.name,
            _state(worker),
            f"{worker.waiting:,}",
            f"{worker.running:,}",
            f"{worker.stolen:,}",
            f"{span(worker.lease_age_ms)} ago",
            worker.host,
            str(worker.pid or ""),
        )
    if not crew:
        made.more.append("no worker lives")
    if len(crew) > most:
        made.more.append(f"… {len(crew) - most:,} more workers")
    return made


def _state(worker: WorkerStat) -> str:
    if not worker.is_alive:
        return f"dead for {span(-worker.lease_left_ms)}"
    return "runs" if worker.running else "rests"


def _upkeep(seen: Stat) -> str:
    ages = (
        f"{duty} {span(seen.now_ms - at_ms)} ago"
        for duty, at_ms in seen.upkeep.done_at_ms.items()
    )
    return f"Upkeep: {', '.join(ages) or 'none yet'}"
