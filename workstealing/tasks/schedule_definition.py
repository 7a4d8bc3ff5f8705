"""The definition of a schedule, as it stands in Redis: which task, with what, and when.

A user makes one, with arguments that are checked here, or changes one. What is read
from Redis may have been written by anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from workstealing._checks import LARGEST, checked_seconds, did_you_mean
from workstealing.errors import ConfigurationError
from workstealing.tasks.envelope import LATEST_MS, NORMAL, PRIORITIES, Envelope
from workstealing.tasks.json_values import NOT_JSON
from workstealing.tasks.limits import checked_line
from workstealing.tasks.retry import Restart
from workstealing.tasks.schedule import Missed, Timing, checked_timing
from workstealing.tasks.signing import LIFETIME_MS

__all__ = (
    "ScheduleDefinition",
    "changed_definition",
    "checked_jitter",
    "checked_missed",
    "schedule_definition",
    "signed_as",
)

_LONGEST_JITTER = 86_400
_Milliseconds = Annotated[int, Meta(ge=0, le=LATEST_MS)]


class ScheduleDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule as it stands in Redis: which task, with what, and when.

    It has all that its tasks need, so that a process can fire it that does not know the
    task. Whoever fires it does so by this, not by its own code.
    """

    # First, so that it can be put before all that it covers.
    sig: str = ""
    """The signature of all the rest, on a queue with a secret."""
    v: Literal[1]
    task: str
    version: Annotated[int, Meta(ge=1, le=LARGEST)]
    every_ms: _Milliseconds = 0
    cron: str = ""
    timezone: str = "UTC"
    missed: Missed = "once"
    jitter_ms: _Milliseconds = 0
    priority: Annotated[int, Meta(ge=0, lt=PRIORITIES)] = NORMAL
    log: bool = False
    principal: str = ""
    roles: tuple[str, ...] = ()
    deadline_ms: _Milliseconds | None = None
    """Its tasks are not begun later than this after their tick."""
    restart: Restart = "always"
    line: str = ""
    """Where its tasks wait, if they have limits or a fair key."""
    limits: dict[str, str] = {}
    """The numbers of these limits."""
    unique: str = ""
    """The unique key of its tasks, if they have one."""
    unique_ends: Literal["s", "d", "w"] = "d"
    """When the key is free, as scripts write it: started, done, after a window."""
    unique_ms: _Milliseconds = 0
    """How long that window is."""
    payload: msgspec.Raw

    def encode(self) -> bytes:
        """Write it as JSON."""
        return _ENCODE(self)

    @staticmethod
    def read(definition: bytes) -> ScheduleDefinition:
        """Read a definition that anybody may have written."""
        try:
            read = _DECODE(definition)
        except NOT_JSON as error:
            raise ConfigurationError(f"not a schedule: {error}") from error
        checked_line(read.line)
        read.timing  # noqa: B018 - refuses what has no ticks
        if not bytes(read.payload).startswith(b"{"):
            raise ConfigurationError("not a schedule: the payload must be an object")
        return read

    @property
    def every(self) -> str | timedelta:
        """Return the interval, or else the cron expression."""
        return timedelta(milliseconds=self.every_ms) if self.every_ms else self.cron

    @property
    def timing(self) -> Timing:
        """Return when it ticks."""
        return checked_timing(self.every, None if self.every_ms else self.timezone)

    def envelope(self, due_ms: int, now_ms: int, *, is_signed: bool) -> Envelope:
        """Return the task that it submits; the times are the server's."""
        deadline_ms = self.deadline_ms
        if deadline_ms is not None:
            deadline_ms = min(due_ms + deadline_ms, LATEST_MS)
        return Envelope(
            v=1,
            name=self.task,
            version=self.version,
            priority=self.priority,
            at=now_ms,
            deadline=deadline_ms,
            expires=max(now_ms, due_ms) + LIFETIME_MS if is_signed else None,
            principal=self.principal,
            roles=self.roles or (),
            log=self.log,
            restart=self.restart,
            payload=self.payload,
        )


def schedule_definition(
    payload: bytes,
    *,
    every: Any,
    timezone: Any,
    missed: Any,
    jitter: Any,
    **envelope: Any,
) -> ScheduleDefinition:
    """Make a definition from a user's arguments; *envelope* has fields of its tasks."""
    timing = checked_timing(every, timezone)
    return ScheduleDefinition(
        v=1,
        every_ms=timing.every_ms,
        cron=timing.cron,
        timezone=timing.timezone,
        missed=checked_missed(missed),
        jitter_ms=checked_jitter(jitter),
        payload=msgspec.Raw(payload),
        **envelope,
    )


def changed_definition(
    former: ScheduleDefinition, changes: Mapping[str, Any]
) -> ScheduleDefinition:
    """Return a definition with another timing, jitter, or rule for missed ticks."""
    fields: dict[str, Any] = {}
    if "every" in changes or "timezone" in changes:
        every = changes.get("every", former.every)
        kept = former.timezone if former.cron and isinstance(every, str) else None
        timing = checked_timing(every, changes.get("timezone", kept))
        fields |= {
            "every_ms": timing.every_ms,
            "cron": timing.cron,
            "timezone": timing.timezone,
        }
    if "missed" in changes:
        fields["missed"] = checked_missed(changes["missed"])
    if "jitter" in changes:
        fields["jitter_ms"] = checked_jitter(changes["jitter"])
    return msgspec.structs.replace(former, sig="", **fields)


def checked_missed(missed: Any) -> Missed:
    """Return what becomes of missed ticks."""
    for word in _MISSED:
        if missed == word:
            return word
    near = did_you_mean(missed, _MISSED) if isinstance(missed, str) else None
    meant = f". Did you mean {near!r}?" if near else ""
    words = ", ".join(map(repr, _MISSED))
    raise ConfigurationError(f"missed must be one of {words}, not {missed!r}{meant}")


def checked_jitter(jitter: Any) -> int:
    """Return by how many milliseconds tasks are spread."""
    seconds = checked_seconds(jitter, "jitter", zero=True, most=_LONGEST_JITTER)
    return round(seconds * 1000)


def signed_as(name: str) -> str:
    """Return the id under which the definition of a schedule is signed."""
    # No id of a task has a space, so neither signature can pass for the other.
    return f"schedule {name}"


_MISSED: tuple[Missed, ...] = get_args(Missed)
_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(ScheduleDefinition).decode
