"""Describes a schedule: what stands in Redis, and why it cannot be fired, if so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from workstealing.clock import LAST_MOMENT, utc_time
from workstealing.errors import BadSignature, ConfigurationError
from workstealing.queue.schedule_calls import ScheduleRow
from workstealing.tasks.schedule import Missed, tick_id
from workstealing.tasks.schedule_definition import ScheduleDefinition, signed_as
from workstealing.tasks.signing import Signer

__all__ = ("ScheduleState", "state_of_schedule")


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """A schedule as it stands in Redis; times are in UTC."""

    name: str
    task: str
    """The task that it submits, as `name@version`."""
    every: str | timedelta
    """A cron expression, or an interval."""
    timezone: str
    missed: Missed
    jitter: timedelta
    next: datetime | None
    """Its next tick; None while it is paused."""
    last: datetime | None
    """The last tick that was fired."""
    last_at: datetime | None
    """When it was fired, by the clock of the server."""
    last_id: str
    """The id of the task of that tick; empty before the first one."""
    fired: int
    """Ticks that were fired."""
    passed: int
    """Ticks that were missed and not made up for."""
    paused: datetime | None
    """Since when it is paused; None if it is not."""
    origin: Literal["code", "data"]
    """Declared by `@queue.every`, or made by `queue.schedule()`."""
    problem: str = ""
    """Why it cannot be fired; empty if it can."""


def state_of_schedule(row: ScheduleRow, signer: Signer | None) -> ScheduleState:
    """Describe a schedule; a definition that cannot be used is its problem.

    Without a signer, it is not looked whether the definition is genuine.
    """
    problem = ""
    try:
        definition = ScheduleDefinition.read(row.definition)
        if signer is not None:
            signer.verify(signed_as(row.name), row.definition)
    except ConfigurationError as error:
        definition, problem = _NOTHING, str(error)
    except BadSignature as error:
        problem = str(error)
    last_id = "" if row.last_tick_ms is None else tick_id(row.name, row.last_tick_ms)
    return ScheduleState(
        name=row.name,
        task=f"{definition.task}@{definition.version}" if definition.task else "",
        every=definition.every,
        timezone=definition.timezone,
        missed=definition.missed,
        jitter=timedelta(milliseconds=definition.jitter_ms),
        next=_moment(row.next_ms),
        last=_moment(row.last_tick_ms),
        last_at=_moment(row.last_at_ms),
        last_id=last_id,
        fired=row.fired,
        passed=row.missed,
        paused=_moment(row.paused_since_ms),
        origin="code" if row.is_declared else "data",
        problem=problem,
    )


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else utc_time(max(0, ms)) or LAST_MOMENT


_NOTHING = ScheduleDefinition(v=1, task="", version=1, payload=msgspec.Raw(b"{}"))
