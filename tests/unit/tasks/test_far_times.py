"""Times at the ends of the calendar, and beyond."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo

import msgspec
import pytest

from workstealing.errors import ConfigurationError
from workstealing.tasks.envelope import LATEST_MS, Envelope
from workstealing.tasks.outcome import State, TaskState
from workstealing.tasks.output_capture import LogRecord
from workstealing.tasks.schedule_definition import ScheduleDefinition
from workstealing.tasks.submission import ClientContext, SubmitOptions

EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-14))


@pytest.mark.parametrize("ms", [253_402_300_800_000, LATEST_MS, -LATEST_MS, 10**30])
def test_a_state_beyond_the_calendar_is_told_in_milliseconds(ms: int) -> None:
    state = str(TaskState(State.DELAYED, since_ms=ms))

    assert state == f"delayed until {ms} ms after 1970"


def test_a_record_beyond_the_calendar_is_told_in_milliseconds() -> None:
    record = LogRecord(time=LATEST_MS, sequence=1, message="hi")

    assert str(record).startswith(f"{LATEST_MS} ms after 1970 ")


def test_a_task_of_a_schedule_may_expire_beyond_the_calendar() -> None:
    definition = ScheduleDefinition(
        v=1, task="t", version=1, deadline_ms=LATEST_MS, payload=msgspec.Raw(b"{}")
    )

    envelope = definition.envelope(1000, 0, is_signed=False)

    assert Envelope.read(envelope.encode()).deadline == LATEST_MS


@pytest.mark.parametrize("zone", [EAST, WEST])
def test_the_ends_of_the_calendar_are_times_in_every_zone(zone: tzinfo) -> None:
    first, last = (end.replace(tzinfo=zone) for end in (datetime.min, datetime.max))

    assert SubmitOptions(at=first).due_ms == 1
    assert 0 < SubmitOptions(at=last).due_ms < LATEST_MS
    assert ClientContext(deadline=first).deadline_ms(0) == 1
    assert 0 < (ClientContext(deadline=last).deadline_ms(0) or 0) < LATEST_MS


@pytest.mark.parametrize("delay", [timedelta.max, 1e300, 10**30])
def test_a_delay_that_no_clock_can_tell_is_refused(delay: float | timedelta) -> None:
    with pytest.raises(ConfigurationError, match="delay must be 0 seconds or more"):
        SubmitOptions(delay=delay)


def test_a_zone_that_does_not_know_its_offset_is_none() -> None:
    class Nowhere(tzinfo):
        def utcoffset(self, when: datetime | None) -> None:
            return None

    with pytest.raises(ConfigurationError, match="at needs a time zone"):
        SubmitOptions(at=datetime.max.replace(tzinfo=Nowhere()))
