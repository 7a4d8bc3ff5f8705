"""Schedules as rows of a table, for the command line and the dashboard."""

from __future__ import annotations

from datetime import datetime, timedelta

from workstealing.client.schedule_state import ScheduleState
from workstealing.inspecting.formatting import duration, relative_time

__all__ = ("SCHEDULE_TITLES", "schedule_row")

_TITLES = "schedule task every next last fired passed from note"
SCHEDULE_TITLES = tuple(_TITLES.split())
# Workers look once a second.
_LATE_MS = 10_000


def schedule_row(state: ScheduleState, now_ms: int) -> dict[str, str]:
    """Return the cells of a schedule by their titles."""
    every = state.every
    if isinstance(every, timedelta):
        every = duration(every.total_seconds())
    elif state.timezone != "UTC":
        every = f"{every} {state.timezone}"
    following = "paused" if state.paused else _relative(state.next, now_ms)
    cells = (
        state.name,
        state.task,
        every,
        following,
        _relative(state.last, now_ms),
        f"{state.fired:,}",
        f"{state.passed:,}",
        state.origin,
        state.problem or _overdue(state, now_ms),
    )
    return dict(zip(SCHEDULE_TITLES, cells, strict=True))


def _overdue(state: ScheduleState, now_ms: int) -> str:
    if state.next is None or now_ms - _ms(state.next) <= _LATE_MS:
        return ""
    return "overdue: nobody fires it"


def _relative(moment: datetime | None, now_ms: int) -> str:
    return "" if moment is None else relative_time(_ms(moment), now_ms)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
