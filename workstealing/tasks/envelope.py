"""The envelope: a task as it stands in Redis.

One JSON object that a person reads in redis-cli and a program in any language
writes; `docs/envelope.md` is its specification. Fields at their default are left
out. Fields that a reader does not know are ignored, so new optional ones need no new
format version. Nobody rewrites an envelope: what changes in the life of a task
(attempts, holder, outcome) is kept beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from workstealing._checks import (
    LARGEST,
    LONGEST_NAME,
    LONGEST_ROLE,
    MOST_ROLES,
    checked_task_name,
)
from workstealing.errors import BadEnvelope, InvalidName, UnknownEnvelope
from workstealing.tasks.json_values import NOT_JSON
from workstealing.tasks.retry import Restart

__all__ = (
    "LATEST_MS",
    "MOST_MEMBERS",
    "NORMAL",
    "PRIORITIES",
    "After",
    "Envelope",
    "EnvelopeTemplate",
    "member_id",
)

PRIORITIES = 3
"""Priorities are 0 (urgent) to 2 (whenever)."""
NORMAL = 1
MOST_MEMBERS = 100_000
"""Members of a group: what came of them is one argument of the step after it."""
# Beyond that the numbers of Lua, and of many a JSON reader, are no longer exact.
LATEST_MS = 2**53
"""The largest time, in milliseconds since 1970."""

_Priority = Annotated[int, Meta(ge=0, lt=PRIORITIES)]
_Version = Annotated[int, Meta(ge=1, le=LARGEST)]
_Count = Annotated[int, Meta(ge=0, le=LARGEST)]
_Members = Annotated[int, Meta(ge=0, le=MOST_MEMBERS)]
_Seconds = Annotated[float, Meta(gt=0)]
_Milliseconds = Annotated[int, Meta(ge=0, le=LATEST_MS)]
_Id = Annotated[str, Meta(max_length=LONGEST_NAME)]
_Principal = Annotated[str, Meta(max_length=LONGEST_NAME)]
_Role = Annotated[str, Meta(min_length=1, max_length=LONGEST_ROLE)]
_Value = Annotated[str, Meta(max_length=1000)]
_Carried = Annotated[dict[str, _Value], Meta(max_length=64)]
_Roles = Annotated[tuple[_Role, ...], Meta(max_length=MOST_ROLES)]


class After(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a step waits for, and the argument that takes what comes of it."""

    task: _Id = ""
    """The step before it."""
    group: _Id = ""
    """Or else the group before it, whose members are `<group>-0`, `<group>-1`, …"""
    members: _Members = 0
    """How many the group has."""
    into: str = ""
    """The argument that takes the result; none if it is empty."""

    @property
    def ids(self) -> list[str]:
        """The tasks that it waits for."""
        if self.group:
            return [member_id(self.group, place) for place in range(self.members)]
        return [self.task]


def member_id(group: str, place: int) -> str:
    """Return the id of a member of a group, so that nobody has to list them."""
    return f"{group}-{place}"


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which task, and with what."""

    # First, so that it can be put before all that it covers.
    sig: str = ""
    """The signature of all the rest, where one is wanted."""
    v: Literal[1]
    """The version of this format."""
    name: str
    """The name of the task."""
    version: _Version
    """The version of the task: what its payload means."""
    priority: _Priority = NORMAL
    at: _Milliseconds = 0
    """When it was submitted, in milliseconds since 1970; 0 if it is not said."""
    due: _Milliseconds = 0
    """When it is to be run, if not at once; only said for those who measure waits."""
    retries: _Count | None = None
    """How often it is tried again, if not as often as the task itself says."""
    timeout: _Seconds | None = None
    """How many seconds it may run, if not as many as the task itself says."""
    deadline: _Milliseconds | None = None
    """The caller has given up by then: it is not begun later."""
    expires: _Milliseconds | None = None
    """A signed one is not begun later, so that it cannot be brought back for ever."""
    principal: _Principal = ""
    """On whose behalf it is called."""
    roles: _Roles = ()
    """The roles of the principal."""
    log: bool = False
    """The caller wants to see what the task logs."""
    trace: str = ""
    """The trace that it belongs to, as a W3C `traceparent`."""
    context: _Carried | None = None
    """Context variables of the caller that are set around the task, by name."""
    restart: Restart = "always"
    """After what it is run again: no more than this, and than the task itself says."""
    after: After | None = None
    """What it waits for, if it is a step of a chain or follows a group."""
    # Last, so that all that a batch has in common stands before it.
    payload: msgspec.Raw
    """A JSON object: argument name to value."""

    @property
    def ability(self) -> str:
        """What a worker must be able to run: `name@version`."""
        return f"{self.name}@{self.version}"

    def encode(self) -> bytes:
        """Write it as JSON."""
        return _ENCODE(self)

    @staticmethod
    def read(envelope: bytes) -> Envelope:
        """Read an envelope that anybody may have written."""
        try:
            read = _DECODE(envelope)
            _check_name(read.name)
        except (*NOT_JSON, InvalidName) as error:
            raise _refusal(envelope, error) from error
        if memoryview(read.payload)[0] != _OPENING_BRACE:
            raise BadEnvelope(
                "not an envelope: the payload must be a JSON object, argument name to"
                " value"
            )
        return read

    @staticmethod
    def read_or_none(envelope: bytes) -> Envelope | None:
        """Read an envelope; None if this release cannot."""
        try:
            return Envelope.read(envelope)
        except (BadEnvelope, UnknownEnvelope):
            return None


@dataclass(frozen=True, slots=True)
class EnvelopeTemplate:
    """All that the envelopes of a batch have in common, written once."""

    prefix: bytes

    @classmethod
    def of(cls, envelope: Envelope) -> EnvelopeTemplate:
        """Take everything but the payload."""
        blank = msgspec.structs.replace(envelope, payload=msgspec.Raw(b"{}"))
        return cls(blank.encode().removesuffix(b"{}}"))

    def around(self, payload: bytes) -> bytes:
        """Return the envelope of one payload; the same bytes as `encode`."""
        return self.prefix + payload + b"}"


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(Envelope).decode
_OPENING_BRACE = ord("{")
# A queue has few names of tasks, and each is read again and again.
_check_name = lru_cache(maxsize=1024)(checked_task_name)


class _Format(msgspec.Struct):
    v: int


def _refusal(envelope: bytes, error: Exception) -> BadEnvelope | UnknownEnvelope:
    try:
        version = msgspec.json.decode(envelope, type=_Format).v
    except NOT_JSON:
        version = 1
    if version != 1:
        return UnknownEnvelope(
            f"the envelope has format version {version} and this release reads 1:"
            " upgrade the worker, or write v 1"
        )
    return BadEnvelope(f"not an envelope: {error}")
