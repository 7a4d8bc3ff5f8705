"""What several pages show of tasks: rows of a table, and tracebacks."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.dashboard.markup import Column, Html, badge, link, table, tag
from workstealing.inspecting import TaskRow
from workstealing.inspecting.formatting import plural, relative_time
from workstealing.inspecting.tracebacks import parts_of_traceback

__all__ = ("task_rows", "trace_markup")

_COLUMNS: tuple[Column, ...] = (
    Column("id", "name"),
    Column("task", "name"),
    Column("state"),
    Column("worker", "name"),
    Column("when", "plain"),
    Column("failed", "number"),
    Column("stolen", "number"),
    Column("note", "wide"),
)


def task_rows(
    rows: Sequence[TaskRow],
    where: dict[str, str],
    now_ms: int,
    *,
    with_boxes: bool = False,
) -> Html:
    """List tasks; with a box for each, to be ticked."""
    cells = [_cells(row, where, now_ms) for row in rows]
    columns = _COLUMNS
    if with_boxes:
        columns = (Column("", "tick"), *_COLUMNS)
        cells = [(_box(row), *some) for row, some in zip(rows, cells, strict=True)]
    return table(columns, cells, [row.id for row in rows], label="Tasks")


def trace_markup(traceback: str) -> Html:
    """Return a traceback; frames of workstealing are shown on request."""
    parts = []
    for part in parts_of_traceback(traceback):
        lines = tag("div", part.text)
        if part.frames:
            frames = plural(part.frames, "frame")
            summary = tag("summary", f"{frames} of workstealing")
            lines = tag("details", summary, lines)
        parts.append(lines)
    return tag("div", *parts, class_="trace", tabindex="0")


def _cells(row: TaskRow, where: dict[str, str], now_ms: int) -> tuple[str, ...]:
    worker: str = row.worker
    if worker:
        worker = link("/worker", worker, **where, name=worker)
    return (
        link("/task", row.id, **where, id=row.id),
        row.task,
        badge(row.state.value),
        worker,
        relative_time(row.at_ms, now_ms),
        f"{row.attempts:,}" if row.attempts else "",
        f"{row.steals:,}" if row.steals else "",
        row.note,
    )


def _box(row: TaskRow) -> Html:
    return tag(
        "input",
        type="checkbox",
        name="id",
        value=row.id,
        aria_label=f"Tick {row.id}",
    )
