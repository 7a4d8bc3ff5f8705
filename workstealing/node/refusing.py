"""How a node says no: a code that a program reads and a text that a person reads.

The codes are those of Maelstrom. 0 is the only one that leaves open whether the
request was carried out; with all others it was not.
"""

from __future__ import annotations

from enum import IntEnum

from workstealing.errors import WorkStealingError

__all__ = ("Code", "Refused")


class Code(IntEnum):
    """Why a request got an error for a reply."""

    TIMEOUT = 0
    """Redis did not answer: it may have been carried out, or not."""
    NOT_SUPPORTED = 10
    """There is no such type of message."""
    TEMPORARILY_UNAVAILABLE = 11
    """Redis refuses, or the cluster is full: later it may work."""
    MALFORMED_REQUEST = 12
    """It is not JSON, or a field is missing, or has a value that it cannot have."""
    KEY_DOES_NOT_EXIST = 20
    """There is no such worker, or it does not hold that job."""
    KEY_ALREADY_EXISTS = 21
    """The worker or the job is there already."""
    PRECONDITION_FAILED = 22
    """There is nothing to steal, or to take."""


class Refused(WorkStealingError):
    """A request that cannot be granted."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return self.text
