"""What a caller says besides the payload: who calls, until when, and what is traced."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from workstealing.errors import ConfigurationError
from workstealing.tasks.checking import checked_seconds
from workstealing.tasks.envelope import LATEST_MS
from workstealing.tasks.logging import LogRecord
from workstealing.tasks.naming import LONGEST_NAME
from workstealing.tasks.permission import MOST_ROLES, checked_role
from workstealing.tasks.signature import Signature

__all__ = ("NOBODY", "Callee", "Channel", "ClientContext")

_LONGEST_TRACE = 512


class Channel(Protocol):
    """Receives what a task logs and prints."""

    def take(self, record: LogRecord) -> None:
        """Receive one record."""


class Callee(Protocol):
    """What can be called: a task that is defined here, or only its contract."""

    @property
    def name(self) -> str:
        """Return the name of the task."""

    @property
    def version(self) -> int:
        """Return what the payload means."""

    @property
    def signature(self) -> Signature:
        """Return what writes the payload and reads the result."""

    @property
    def permission(self) -> str | None:
        """Return what its caller must be allowed."""

    @property
    def priority(self) -> int:
        """Return 0 (urgent), 1 or 2 (whenever)."""


@dataclass(frozen=True, slots=True)
class ClientContext:
    """On whose behalf a task is called, and how.

    Its principal and roles are what the worker judges by. Who they are is for the
    program that calls to find out: a web application after a login, for example.
    """

    principal: str = ""
    """On whose behalf: a name or an id of up to 200 printable characters."""
    roles: Collection[str] = ()
    """The roles of the principal, at most 64."""
    logging: Channel | None = None
    """A `LoggingChannel` that is to receive what the task logs and prints."""
    deadline: datetime | timedelta | float | None = None
    """The task is not begun later: a time, or seconds from when it is called."""
    trace: str = ""
    """The trace that the call belongs to, as a W3C `traceparent`."""

    def __post_init__(self) -> None:
        _check_text(self.principal, "principal", LONGEST_NAME)
        _check_text(self.trace, "trace", _LONGEST_TRACE)
        object.__setattr__(self, "roles", _checked_roles(self.roles))
        if self.logging is not None and not hasattr(self.logging, "take"):
            raise ConfigurationError(
                f"logging must be a LoggingChannel, not {self.logging!r}"
            )
        if isinstance(self.deadline, datetime):
            if self.deadline.tzinfo is None:
                raise ConfigurationError(
                    "deadline needs a time zone: datetime.now(timezone.utc) has one"
                )
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


def _checked_roles(roles: Any) -> tuple[str, ...]:
    # A string is a collection too, of letters.
    if isinstance(roles, (str, bytes)) or not isinstance(roles, Collection):
        raise ConfigurationError(f"roles must be a collection of names, not {roles!r}")
    if len(roles) > MOST_ROLES:
        raise ConfigurationError(f"{len(roles)} roles are more than {MOST_ROLES}")
    if isinstance(roles, (set, frozenset)):
        roles = sorted(roles)
    return tuple(checked_role(role) for role in roles)


def _check_text(text: Any, what: str, longest: int) -> None:
    if not isinstance(text, str) or len(text) > longest or not text.isprintable():
        raise ConfigurationError(
            f"{what} has up to {longest} printable characters; this is"
            f" {ascii(text)[:80]}"
        )


NOBODY = ClientContext()
"""The context of a call that says nothing of itself."""
