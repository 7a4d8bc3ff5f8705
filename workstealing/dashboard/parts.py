"""Pieces of pages: tables, bars and lines."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.dashboard.markup import Html, link, tag, text
from workstealing.inspecting import QueueStat, TaskRow, WorkerStat
from workstealing.inspecting.formatting import duration_ms

__all__ = ("entries_table", "numbers", "sparkline", "table", "workers_table")

_WORKERS = 200
_WIDTH, _HEIGHT = 120, 24


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    """Return a table; numbers are aligned to the right."""
    head = tag("thead", tag("tr", *(tag("th", title) for title in titles)))
    body = tag("tbody", *(tag("tr", *map(_cell, row)) for row in rows))
    return tag("div", tag("table", head, body), class_="scroll")


def numbers(seen: QueueStat) -> tuple[str, ...]:
    """Return how many are waiting, assigned, running, delayed, parked and dead."""
    places = (
        *(seen.waiting, seen.assigned, seen.running),
        *(seen.delayed, seen.parked, seen.dead),
    )
    return tuple(f"{number:,}" for number in places)


def workers_table(seen: QueueStat) -> Html:
    """Show the workers with their deques, the live ones first."""
    workers = sorted(
        seen.workers, key=lambda worker: (not worker.is_alive, worker.name)
    )
    if not workers:
        return tag("p", "No live workers.", class_="quiet")
    longest = max(worker.waiting for worker in workers)
    rows = [
        (
            worker.name,
            _state(worker),
            f"{worker.waiting:,}",
            _bar(worker.waiting, longest),
            f"{worker.running:,}",
            f"{worker.stolen:,}",
            f"{duration_ms(worker.lease_age_ms)} ago",
            f"{worker.host} {worker.pid or ''}".strip(),
        )
        for worker in workers[:_WORKERS]
    ]
    titles = (
        "worker",
        "state",
        "deque",
        "",
        "running",
        "stolen",
        "heartbeat",
        "process",
    )
    more = len(workers) - _WORKERS
    below = tag("p", f"… {more:,} more", class_="quiet") if more > 0 else text()
    return text(table(titles, rows), below)


def entries_table(
    entries: Sequence[TaskRow],
    where: dict[str, str],
    now_ms: int,
    tracebacks: dict[str, str],
) -> Html:
    """List tasks; a traceback is shown on request."""
    rows = []
    for entry in entries:
        note = entry.note
        if entry.id in tracebacks:
            trace = tag("pre", tracebacks[entry.id], class_="error")
            note = tag("details", tag("summary", note or "traceback"), trace)
        rows.append(
            (
                link("/task", entry.id, **where, id=entry.id),
                entry.task,
                tag("span", entry.state.value, class_=f"state {entry.state.value}"),
                entry.worker,
                _when(entry.at_ms, now_ms),
                f"{entry.attempts:,}" if entry.attempts else "",
                f"{entry.steals:,}" if entry.steals else "",
                note,
            )
        )
    titles = ("id", "task", "state", "worker", "when", "failed", "stolen", "note")
    return table(titles, rows)


def sparkline(history: Sequence[float]) -> Html:
    """Draw the history of a rate."""
    if len(history) < 2:
        return text()
    highest = max(history) or 1.0
    step = _WIDTH / (len(history) - 1)
    points = " ".join(
        f"{number * step:.1f},{_HEIGHT - 1 - value / highest * (_HEIGHT - 2):.1f}"
        for number, value in enumerate(history)
    )
    return _drawing("spark", tag("polyline", points=points))


def _bar(value: int, longest: int) -> Html:
    share = round(value / longest * _WIDTH) if longest else 0
    return _drawing("bar", tag("rect", width=share, height=_HEIGHT))


def _drawing(kind: str, shape: Html) -> Html:
    size = f"0 0 {_WIDTH} {_HEIGHT}"
    return tag("svg", shape, viewBox=size, preserveAspectRatio="none", class_=kind)


def _cell(value: str) -> Html:
    is_number = value.replace(",", "").replace(".", "").isdigit()
    return tag("td", value, class_="number" if is_number else False)


def _state(worker: WorkerStat) -> Html:
    if not worker.is_alive:
        label = f"dead for {duration_ms(-worker.lease_left_ms)}"
        return tag("span", label, class_="state dead")
    word = "running" if worker.running else "idle"
    return tag("span", word, class_=f"state {word}")


def _when(at_ms: int, now_ms: int) -> str:
    if not at_ms:
        return ""
    return (
        f"in {duration_ms(at_ms - now_ms)}"
        if at_ms > now_ms
        else f"{duration_ms(now_ms - at_ms)} ago"
    )
