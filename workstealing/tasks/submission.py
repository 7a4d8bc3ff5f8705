"""What a caller says besides the payload: on whose behalf, when and how.

`ClientContext` is who calls, `SubmitOptions` how one submission is to be run; together
with the task they make its envelope, all but the payload.
"""

from __future__ import annotations

import os
from binascii import b2a_base64
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import TIMEOUT_MAX
from typing import Protocol

import msgspec

from workstealing._checks import (
    LONGEST_NAME,
    MOST_ROLES,
    checked_id,
    checked_printable,
    checked_roles,
    checked_seconds,
    checked_time,
    checked_whole,
)
from workstealing.errors import ConfigurationError
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.envelope import LATEST_MS, PRIORITIES, Envelope
from workstealing.tasks.limits import checked_weight, fair_line
from workstealing.tasks.output_capture import LogRecord
from workstealing.tasks.signing import LIFETIME_MS

__all__ = (
    "NOBODY",
    "ClientContext",
    "LogSink",
    "Submission",
    "SubmitOptions",
    "envelope_without_payload",
    "has_limits",
    "lines_of",
    "new_ids",
)

_LONGEST_TRACE = 512


class LogSink(Protocol):
    """Receives what a task logs and prints."""

    def take(self, record: LogRecord) -> None:
        """Receive one record."""


@dataclass(frozen=True, slots=True)
class ClientContext:
    """On whose behalf a task is called, and how.

    Workers decide by its principal and roles whether the task may run. It is up to the
    calling program, such as a web application after a login, to know who that is.
    """

    principal: str = ""
    """On whose behalf: a name or an id of up to 200 printable characters."""
    roles: Collection[str] = ()
    """The roles of the principal, at most 64."""
    logging: LogSink | None = None
    """A `LoggingChannel` that is to receive what the task logs and prints."""
    deadline: datetime | timedelta | float | None = None
    """The task is not begun later: a time, or seconds from when it is called."""
    trace: str = ""
    """The trace that the call belongs to, as a W3C `traceparent`."""

    def __post_init__(self) -> None:
        checked_printable(self.principal, "principal", LONGEST_NAME)
        checked_printable(self.trace, "trace", _LONGEST_TRACE)
        roles = checked_roles(self.roles, "roles", most=MOST_ROLES)
        object.__setattr__(self, "roles", roles)
        if self.logging is not None and not hasattr(self.logging, "take"):
            raise ConfigurationError(
                f"logging must be a LoggingChannel, not {self.logging!r}"
            )
        if isinstance(self.deadline, datetime):
            checked_time(self.deadline, "deadline")
        elif self.deadline is not None:
            checked_seconds(self.deadline, "deadline")

    def deadline_ms(self, now_ms: int) -> int | None:
        """Return the deadline of a call that is made now; since 1970."""
        if self.deadline is None:
            return None
        if isinstance(self.deadline, datetime):
            return max(1, round(self.deadline.timestamp() * 1000))
        after_ms = checked_seconds(self.deadline, "deadline") * 1000
        return round(min(now_ms + after_ms, LATEST_MS))


NOBODY = ClientContext()
"""The context of a call that says nothing of itself."""


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """When and how one submission is to be run."""

    id: str | None = None
    """The dedupe key: an id that is known already is not submitted again."""
    priority: int | None = None
    """0 is urgent, 2 is whenever; the task's own unless given."""
    delay: float | timedelta | None = None
    """Seconds from now."""
    at: datetime | None = None
    """Or else when; with a time zone."""
    context: ClientContext = NOBODY
    """On whose behalf, and how."""
    log: bool = False
    """Keep what the task logs and prints."""
    deadline_ms: int | None = None
    """Milliseconds since 1970: not begun later; the context's own unless given."""
    again: bool = False
    """Forget a task of the same id or unique key that has ended."""
    expires: float | timedelta | datetime | None = None
    """Not begun later: a time, or seconds after it is due; the task's own unless given.

    Of this and the deadline, the earlier one counts.
    """
    fair_key: str | None = None
    """Takes turns with tasks of other keys; the task's own unless given."""
    fair_weight: float | None = None
    """How many turns its key gets; the task's own unless given."""
    retries: int | None = None
    """How often it is tried again; as often as the task says unless given."""
    timeout: float | timedelta | None = None
    """Seconds that an attempt may last; as many as the task says unless given."""
    shard_key: str | None = None
    """Tasks of one key are in one shard; of a queue without shards it means nothing."""

    def __post_init__(self) -> None:
        if self.id is not None:
            checked_id(self.id)
        if self.priority is not None:
            checked_whole(self.priority, "priority", 0, PRIORITIES - 1)
        if self.delay is not None and self.at is not None:
            raise ConfigurationError("give delay= or at=, not both")
        if self.delay is not None:
            self._delay_seconds()
        if self.at is not None:
            checked_time(self.at, "at")
        if self.retries is not None:
            checked_whole(self.retries, "retries", 0)
        if self.timeout is not None:
            self._timeout_seconds()
        if self.fair_key is not None and not isinstance(self.fair_key, str):
            raise ConfigurationError(
                f"fair_key= of options() is the key itself, a string, not"
                f" {self.fair_key!r}"
            )
        if self.shard_key is not None:
            checked_id(self.shard_key, "shard_key")
        if self.fair_weight is not None:
            checked_weight(self.fair_weight)
        if not isinstance(self.context, ClientContext):
            raise ConfigurationError(
                f"context must be a ClientContext, not {self.context!r}"
            )
        for what, flag in (("again", self.again), ("log", self.log)):
            if not isinstance(flag, bool):
                raise ConfigurationError(f"{what} must be True or False, not {flag!r}")
        self._check_expiry()

    def expiry_ms(self, now_ms: int, own: float | None) -> int | None:
        """Return until when it may be begun, in milliseconds since 1970.

        *own* is what the task itself says, in seconds.
        """
        expires = own if self.expires is None else self.expires
        if expires is None:
            return None
        if isinstance(expires, datetime):
            return max(1, round(expires.timestamp() * 1000))
        due_ms = self.due_ms or now_ms + self.delay_ms
        after_ms = checked_seconds(expires, "expires") * 1000
        return round(min(due_ms + after_ms, LATEST_MS))

    @property
    def delay_ms(self) -> int:
        """Milliseconds from now; 0 is at once."""
        if self.delay is None:
            return 0
        return round(self._delay_seconds() * 1000)

    @property
    def due_ms(self) -> int:
        """Milliseconds since 1970; 0 is at once."""
        if self.at is None:
            return 0
        return max(1, round(self.at.timestamp() * 1000))

    def _check_expiry(self) -> None:
        if isinstance(self.expires, datetime):
            checked_time(self.expires, "expires")
            if self.at is not None and self.expires <= self.at:
                raise ConfigurationError(
                    f"expires= ({self.expires}) must be later than at= ({self.at}): it"
                    " would expire before it is due"
                )
        elif self.expires is not None:
            checked_seconds(self.expires, "expires")

    @property
    def timeout_seconds(self) -> float | None:
        """Seconds that an attempt may last, if that is said."""
        return None if self.timeout is None else self._timeout_seconds()

    def _timeout_seconds(self) -> float:
        return checked_seconds(self.timeout, "timeout", most=TIMEOUT_MAX)

    def _delay_seconds(self) -> float:
        return checked_seconds(
            self.delay, "delay", zero=True, most=LATEST_MS // 2 // 1000
        )


@dataclass(frozen=True, slots=True)
class Submission:
    """What became of tasks that were submitted."""

    ids: list[str]
    known: frozenset[int] = frozenset()
    """Positions of tasks that were there before, and were not submitted again.

    Their ids are those of the tasks that were there.
    """
    ended: Mapping[int, str] = field(default_factory=dict)
    """How those of them had ended that had."""


def envelope_without_payload(
    task: TaskInterface,
    options: SubmitOptions,
    *,
    time_ns: Callable[[], int],
    is_signed: bool = False,
    carried: dict[str, str] | None = None,
) -> Envelope:
    """Return what a submission says of a task; the payload is an empty object."""
    context = options.context
    now_ms = time_ns() // 1_000_000
    deadline_ms = options.deadline_ms
    if deadline_ms is None:
        deadline_ms = context.deadline_ms(now_ms)
    expiry_ms = options.expiry_ms(now_ms, _own_expiry(task))
    if expiry_ms is not None:
        deadline_ms = min(expiry_ms, deadline_ms or expiry_ms)
    return Envelope(
        v=1,
        name=task.name,
        version=task.version,
        priority=task.priority if options.priority is None else options.priority,
        at=now_ms,
        due=_due(now_ms, options),
        retries=options.retries,
        timeout=options.timeout_seconds,
        deadline=deadline_ms,
        expires=_expiry(now_ms, options) if is_signed else None,
        principal=context.principal,
        # On Python 3.10 an empty tuple is not always the one that is left out.
        roles=tuple(context.roles) or (),
        log=options.log or context.logging is not None,
        trace=context.trace,
        context=carried,
        restart=task.restart if isinstance(task, TaskDefinition) else "always",
        payload=msgspec.Raw(b"{}"),
    )


def lines_of(
    task: TaskInterface, payloads: Sequence[bytes], options: SubmitOptions
) -> tuple[list[str], dict[str, str]]:
    """Return the line of each task, and the limits that these name; mostly none."""
    priority = task.priority if options.priority is None else options.priority
    names = task.line_names if isinstance(task, TaskDefinition) else None
    fair_key, weight = options.fair_key, options.fair_weight
    if names is not None:
        lines = names.lines(task.signature, payloads, priority, fair_key, weight)
        return lines, names.numbers
    if fair_key is not None:
        return [fair_line(priority, fair_key, weight)] * len(payloads), {}
    return [], {}


def has_limits(task: TaskInterface) -> bool:
    """Return whether a task has a limit, which is counted in one place."""
    names = task.line_names if isinstance(task, TaskDefinition) else None
    return names is not None and bool(names.numbers)


def new_ids(count: int) -> list[str]:
    """Draw ids of 12 letters and digits, all from one call to the system.

    That is 71 random bits in what a server stores in 16 bytes, its own two included.
    """
    drawn = b2a_base64(os.urandom(9 * count), newline=False).translate(_ALPHANUMERIC)
    letters = drawn.decode()
    return [letters[start : start + 12] for start in range(0, 12 * count, 12)]


# An id that begins with a sign would be an option on a command line.
_ALPHANUMERIC = bytes.maketrans(b"+/", b"xz")


def _own_expiry(task: TaskInterface) -> float | None:
    return task.expires if isinstance(task, TaskDefinition) else None


def _due(now_ms: int, options: SubmitOptions) -> int:
    """Return when a task is due; 0 if at once."""
    if options.delay is None and options.at is None:
        return 0
    return min(max(now_ms + options.delay_ms, options.due_ms), LATEST_MS)


def _expiry(now_ms: int, options: SubmitOptions) -> int:
    due_ms = max(now_ms + options.delay_ms, options.due_ms)
    return min(due_ms + LIFETIME_MS, LATEST_MS)
