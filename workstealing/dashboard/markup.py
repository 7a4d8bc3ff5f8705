"""Writes HTML, in which foreign text is always text, never markup.

A child or attribute that is a plain string is always escaped; only the result of `tag`
is not. Invisible characters, and those that change the direction of writing, are shown
by their codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import urlencode

from workstealing._printing import printable
from workstealing.inspecting import QueueStat, TaskRow, WorkerStat
from workstealing.inspecting.formatting import plural, relative_time
from workstealing.inspecting.stat_rows import live_first, worker_row

__all__ = (
    "Html",
    "document",
    "entries_table",
    "link",
    "sparkline",
    "table",
    "tag",
    "text",
    "workers_table",
)

_VOID = frozenset(("input", "link", "meta"))
_WORKERS = 200
_WIDTH, _HEIGHT = 120, 24


class Html(str):
    """Markup that is known to be well-formed; made by this module only."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | int | float | bool) -> Html:
    """Return an element; `class_` and `data_x` mean `class` and `data-x`."""
    written = "".join(_attribute(*one) for one in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{text(*children)}</{name}>")


def text(*children: str) -> Html:
    """Return texts and elements, one after the other."""
    return Html("".join(_child(child) for child in children))


def link(path: str, label: str, class_: str = "", **query: str) -> Html:
    """Return a link to one of our own pages."""
    where = f"{path}?{urlencode(query)}" if query else path
    return tag("a", label, href=where, class_=class_ or False)


def document(*children: str) -> str:
    """Return a whole page."""
    return f"<!doctype html>\n{tag('html', *children, lang='en')}\n"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    """Return a table; numbers are aligned to the right."""
    head = tag("thead", tag("tr", *(tag("th", title) for title in titles)))
    body = tag("tbody", *(tag("tr", *map(_cell, row)) for row in rows))
    return tag("div", tag("table", head, body), class_="scroll")


def workers_table(seen: QueueStat) -> Html:
    """Show the workers with their deques, the live ones first."""
    workers = live_first(seen.workers)
    if not workers:
        return tag("p", "No live workers.", class_="quiet")
    longest = max(worker.waiting for worker in workers)
    titles = ("worker", "state", "deque", "", "running", "stolen", "renewed", "process")
    rows = [_worker_cells(worker, longest) for worker in workers[:_WORKERS]]
    more = len(workers) - _WORKERS
    below = text()
    if more > 0:
        below = tag("p", f"… {plural(more, 'more worker')}", class_="quiet")
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
                relative_time(entry.at_ms, now_ms),
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


def _child(child: str) -> str:
    return child if isinstance(child, Html) else escape(printable(child))


def _attribute(name: str, value: str | float | bool) -> str:
    if value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {written}"
    return f' {written}="{escape(printable(str(value)))}"'


def _worker_cells(worker: WorkerStat, longest: int) -> tuple[str, ...]:
    row = worker_row(worker)
    # The first word of a state is a class of the style sheet.
    state = tag("span", row["state"], class_=f"state {row['state'].split()[0]}")
    return (
        row["worker"],
        state,
        row["deque"],
        _bar(worker.waiting, longest),
        row["running"],
        row["stolen"],
        row["renewed"],
        f"{row['host']} {row['pid']}".strip(),
    )


def _bar(value: int, longest: int) -> Html:
    share = round(value / longest * _WIDTH) if longest else 0
    return _drawing("bar", tag("rect", width=share, height=_HEIGHT))


def _drawing(kind: str, shape: Html) -> Html:
    size = f"0 0 {_WIDTH} {_HEIGHT}"
    return tag("svg", shape, viewBox=size, preserveAspectRatio="none", class_=kind)


def _cell(value: str) -> Html:
    is_number = value.replace(",", "").replace(".", "").isdigit()
    return tag("td", value, class_="number" if is_number else False)
