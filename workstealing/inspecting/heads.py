"""Reads the beginnings and ends of envelopes and outcomes, as a list shows them.

A long text comes with its middle cut out, and a foreign one may be no JSON at all. What
can be found is told; nothing here raises.
"""

from __future__ import annotations

import re

import msgspec

from workstealing.errors import BadOutcome
from workstealing.tasks.envelope import NORMAL
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.values import NOT_JSON

__all__ = ("Heading", "heading_of", "outcome_of", "reason_of")


class Heading(msgspec.Struct, frozen=True):
    """Which task an envelope is of."""

    name: str = "?"
    version: int = 0
    priority: int = NORMAL
    at: int = 0

    @property
    def ability(self) -> str:
        """Return it as `name@version`; `?` if nobody can tell."""
        return f"{self.name}@{self.version}" if self.version else self.name


def heading_of(envelope: bytes) -> Heading:
    """Read as much of an envelope as there is."""
    try:
        return _DECODE(envelope)
    except NOT_JSON:
        told = _FIELD.findall(envelope.decode(errors="replace"))
    # The first of each counts: a payload may have the same words.
    found = dict(reversed(told))
    try:
        return msgspec.convert(found, Heading, strict=False)
    except NOT_JSON:
        return Heading()


def outcome_of(outcome: bytes) -> TaskOutcome:
    """Read as much of an outcome as there is; its result and traceback may miss."""
    try:
        return TaskOutcome.read(outcome)
    except BadOutcome:
        told = outcome.decode(errors="replace")
    # Results and tracebacks are long; what stands before and after them is not.
    found = dict(_STATE.findall(told[:_NEAR])) | dict(_ENDING.findall(told[-_NEAR:]))
    try:
        return msgspec.convert(found, TaskOutcome, strict=False)
    except NOT_JSON:
        return TaskOutcome(state="dead", reason="its outcome cannot be read")


def reason_of(outcome: TaskOutcome) -> str:
    """Say why it ended as it did, in one line; empty if it is done."""
    error = outcome.error
    if error is None:
        return outcome.reason
    message = error.message.partition("\n")[0]
    return f"{error.type}: {message}" if message else error.type


_NEAR = 500
_DECODE = msgspec.json.Decoder(Heading).decode
_FIELD = re.compile(r'"(name|version|priority|at)"\s*:\s*"?([^",}]+)')
_STATE = re.compile(r'^\{"(state)":"(\w+)"')
_ENDING = re.compile(r'"(task|worker|ended|took|attempt)":"?([^",}]+)')
