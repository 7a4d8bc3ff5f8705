"""The page of a queue's schedules and limits."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.client.schedule_state import ScheduleState
from workstealing.dashboard.dashboard_data import QueueSnapshot
from workstealing.dashboard.layout import (
    Reader,
    act_form,
    frame,
    queue_crumb,
    queue_head,
    where_of,
)
from workstealing.dashboard.markup import Column, Html, badge, link, table, tag, text
from workstealing.inspecting.formatting import plural
from workstealing.inspecting.schedule_rows import SCHEDULE_TITLES, schedule_row
from workstealing.inspecting.stat_rows import limit_text
from workstealing.queue.limit_calls import LimitState

__all__ = ("schedules_page",)

_SCHEDULES = 200
_LIMITS = 100
_KEYS = 20
_KINDS = {
    "schedule": "name",
    "task": "name",
    "fired": "number",
    "passed": "number",
    "last": "name",
    "note": "wide",
}


def schedules_page(
    snapshot: QueueSnapshot,
    schedules: Sequence[ScheduleState],
    limits: Sequence[LimitState],
    reader: Reader,
) -> str:
    """Show the schedules of a queue, with their next ticks, and its limits."""
    seen = snapshot.stat
    body: list[str] = [queue_head(seen, "schedules and limits", reader)]
    body.append(tag("h2", "Schedules"))
    rows, where = [], where_of(seen)
    for state in schedules[:_SCHEDULES]:
        cells = schedule_row(state, seen.now_ms)
        named = {**where, "name": state.name}
        if state.last_id:
            cells["last"] = link("/task", cells["last"], **where, id=state.last_id)
        if state.paused:
            cells["next"] = badge("paused")
        actions = ("resume" if state.paused else "pause", "run", "remove")
        forms = (act_form(reader, one, named, path="/steer") for one in actions)
        rows.append((*cells.values(), text(*forms)))
    if rows:
        columns = [Column(one, _KINDS.get(one, "")) for one in SCHEDULE_TITLES]
        keys = [state.name for state in schedules[:_SCHEDULES]]
        body.append(table([*columns, Column("")], rows, keys, label="Schedules"))
    else:
        body.append(tag("p", "No schedules.", class_="quiet"))
    more = len(schedules) - _SCHEDULES
    if more > 0:
        body.append(tag("p", f"… {plural(more, 'more schedule')}", class_="quiet"))
    body += (tag("h2", "Limits"), _limits(limits))
    return frame(seen.queue, [queue_crumb(seen)], body, reader, seen=seen)


def _limits(limits: Sequence[LimitState]) -> Html:
    if not limits:
        return tag("p", "No limits.", class_="quiet")
    columns = (
        Column("limit", "name"),
        Column("allows"),
        Column("key", "name"),
        Column("running", "number"),
        Column("held back", "number"),
    )
    rows, keys = [], []
    for limit in limits[:_LIMITS]:
        uses = limit.keys[:_KEYS]
        for use in uses:
            cells = (f"{use.running:,}", f"{use.held_back:,}")
            rows.append((limit.name, limit_text(limit), use.key, *cells))
            keys.append(f"{limit.name}={use.key}")
        if not uses:
            rows.append((limit.name, limit_text(limit), "", "", "0"))
            keys.append(limit.name)
    return table(columns, rows, keys, label="Limits")
