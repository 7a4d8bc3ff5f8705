"""Reads as much of an envelope or an outcome as possible.

Lists fetch only both ends of a long text, and another program may have written
something that is not JSON at all. So these functions return what they find, and never
raise.
"""

from __future__ import annotations

import re

import msgspec

from workstealing.errors import BadOutcome
from workstealing.tasks.envelope import NORMAL, After
from workstealing.tasks.json_values import NOT_JSON
from workstealing.tasks.outcome import TaskOutcome

__all__ = ("EnvelopePreview", "one_line_reason", "preview_envelope", "preview_outcome")


class EnvelopePreview(msgspec.Struct, frozen=True):
    """Which task an envelope is for."""

    name: str = "?"
    version: int = 0
    priority: int = NORMAL
    at: int = 0
    due: int = 0
    deadline: int | None = None
    after: After | None = None

    @property
    def ability(self) -> str:
        """Return `name@version`; `?` if it cannot be read."""
        return f"{self.name}@{self.version}" if self.version else self.name


def preview_envelope(envelope: bytes) -> EnvelopePreview:
    """Read as much of an envelope as there is."""
    try:
        return _DECODE(envelope)
    except NOT_JSON:
        fields = _FIELD.findall(envelope.decode(errors="replace"))
    # The first of each counts: the payload may contain the same names.
    found = dict(reversed(fields))
    try:
        return msgspec.convert(found, EnvelopePreview, strict=False)
    except NOT_JSON:
        return EnvelopePreview()


def preview_outcome(outcome: bytes) -> TaskOutcome:
    """Read as much of an outcome as there is; result and traceback may be missing."""
    try:
        return TaskOutcome.read(outcome)
    except BadOutcome:
        text = outcome.decode(errors="replace")
    # Results and tracebacks are long; what surrounds them is not.
    found = dict(_STATE.findall(text[:_NEAR])) | dict(_ENDING.findall(text[-_NEAR:]))
    try:
        return msgspec.convert(found, TaskOutcome, strict=False)
    except NOT_JSON:
        return TaskOutcome(state="dead", reason="its outcome cannot be read")


def one_line_reason(outcome: TaskOutcome) -> str:
    """Return in one line why a task ended as it did; empty if it is done."""
    error = outcome.error
    if error is None:
        return outcome.reason
    message = error.message.partition("\n")[0]
    return f"{error.type}: {message}" if message else error.type


_NEAR = 500
_DECODE = msgspec.json.Decoder(EnvelopePreview).decode
_FIELD = re.compile(r'"(name|version|priority|at|due|deadline)"\s*:\s*"?([^",}]+)')
_STATE = re.compile(r'^\{"(state)":"(\w+)"')
_ENDING = re.compile(r'"(task|worker|ended|took|attempt)":"?([^",}]+)')
