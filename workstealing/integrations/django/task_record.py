"""How a task of Django is stored in Redis: as a call, and as the record of its result.

The envelope of a task is deleted when it is done, so the record repeats the call. Times
are milliseconds since 1970.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import msgspec
from django.conf import settings
from django.utils.timezone import is_naive, make_aware, make_naive

from workstealing.queue.inspection_calls import Trace
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.outcome import TaskOutcome

__all__ = (
    "CallRecord",
    "EnqueuedCall",
    "from_milliseconds",
    "read_record",
    "to_milliseconds",
    "with_time_zone",
)


class EnqueuedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """The call of a task, as Django enqueued it."""

    args: list[Any]
    kwargs: dict[str, Any]
    enqueued: int
    priority: int = 0
    run_after: int | None = None


class CallRecord(msgspec.Struct, frozen=True):
    """A call and its result: what a finished task returns."""

    task: str
    """The path of its function."""
    call: EnqueuedCall
    value: Any = None
    """The return value of the function."""


def read_record(trace: Trace) -> CallRecord:
    """Read the call of a task, and its return value if it is done.

    Raises:
        LookupError: it was cancelled, it expired, or it is not a task of Django.
    """
    try:
        if trace.outcome:
            outcome = TaskOutcome.read(trace.outcome)
            if outcome.state == "done":
                return msgspec.json.decode(outcome.result, type=CallRecord)
        if not trace.envelope:
            raise LookupError("it was cancelled, or expired")
        envelope = Envelope.read(trace.envelope)
        payload = msgspec.json.decode(envelope.payload, type=_CallPayload)
    except msgspec.DecodeError as error:
        raise LookupError("the queue has such a task, but not one of Django") from error
    return CallRecord(envelope.name, payload.call)


def with_time_zone(when: datetime) -> datetime:
    """Add the current time zone to a time that has none."""
    aware: datetime = make_aware(when) if is_naive(when) else when
    return aware


def to_milliseconds(when: datetime) -> int:
    """Convert a time of Django."""
    return round(with_time_zone(when).timestamp() * 1000)


def from_milliseconds(at_ms: int) -> datetime:
    """Convert to a time of Django: with a time zone if `USE_TZ` is True."""
    try:
        utc = datetime.fromtimestamp(at_ms / 1000, timezone.utc)
        when: datetime = utc if settings.USE_TZ else make_naive(utc)
    except (OverflowError, OSError, ValueError):
        # No calendar has it, or not in this time zone.
        end = datetime.max if at_ms > 0 else datetime.min
        when = end.replace(tzinfo=timezone.utc) if settings.USE_TZ else end
    return when


class _CallPayload(msgspec.Struct):
    call: EnqueuedCall
