"""What a task of Django is in Redis: an order, and what is told of it when it is done.

The envelope of a task is gone when it is done, so what it leaves behind names the order
again. Times are milliseconds since 1970.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import msgspec
from django.conf import settings
from django.utils.timezone import is_naive, make_aware, make_naive

from workstealing.queue.reading import Trace
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.outcome import TaskOutcome

__all__ = ("Order", "Told", "aware", "milliseconds", "moment", "told_by")


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """What Django knows of a task when it is enqueued."""

    args: list[Any]
    kwargs: dict[str, Any]
    enqueued: int
    priority: int = 0
    run_after: int | None = None


class Told(msgspec.Struct, frozen=True):
    """What a task leaves behind."""

    task: str
    """The path of its function."""
    order: Order
    value: Any = None
    """What it returned."""


def told_by(seen: Trace) -> Told:
    """Read the order of a task, and what it returned if it is done.

    Raises:
        LookupError: nothing is left of it, or it is no task of Django.
    """
    try:
        if seen.outcome:
            outcome = TaskOutcome.read(seen.outcome)
            if outcome.state == "done":
                return msgspec.json.decode(outcome.result, type=Told)
        if not seen.envelope:
            raise LookupError("it was cancelled")
        envelope = Envelope.read(seen.envelope)
        payload = msgspec.json.decode(envelope.payload, type=_Payload)
    except msgspec.DecodeError as error:
        raise LookupError("it is a task of the queue, but not of Django") from error
    return Told(envelope.name, payload.order)


def aware(when: datetime) -> datetime:
    """Give a time zone to a time that has none."""
    there: datetime = make_aware(when) if is_naive(when) else when
    return there


def milliseconds(when: datetime) -> int:
    """Write a time as Redis keeps it."""
    return round(aware(when).timestamp() * 1000)


def moment(at_ms: int) -> datetime:
    """Read a time as Django wants it: with a time zone if `USE_TZ` says so."""
    utc = datetime.fromtimestamp(at_ms / 1000, timezone.utc)
    when: datetime = utc if settings.USE_TZ else make_naive(utc)
    return when


class _Payload(msgspec.Struct):
    order: Order
