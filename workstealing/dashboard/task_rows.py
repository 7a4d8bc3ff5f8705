"""Tasks as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.dashboard.markup import Column, Html, badge, link, table, tag
from workstealing.inspecting import TaskRow
from workstealing.inspecting.formatting import relative_time

__all__ = ("task_rows",)

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
