"""What a task logged or printed, as values."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Literal

import msgspec

__all__ = ("LONGEST_MESSAGE", "LogRecord", "Stream")

LONGEST_MESSAGE = 8 * 1024
"""Bytes of one message; the rest is cut off."""

Stream = Literal["log", "stdout", "stderr"]


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line that a task printed, or one record that it logged."""

    time: int
    """When, in milliseconds since 1970, by the clock of the worker."""
    message: str
    """Without the end of the line; with its traceback, if it has one."""
    stream: Stream = "log"
    level: str = ""
    """As `INFO`; empty for what was printed."""
    logger: str = ""
    attempt: int = 1
    sequence: int
    """Counts from 1, anew each time that the task is run."""
    worker: str = ""
    dropped: int = 0
    """How many before it could not be told."""

    def encode(self) -> bytes:
        """Write it as JSON."""
        return _ENCODE(self)

    @staticmethod
    def read(record: bytes) -> LogRecord:
        """Read what `encode` wrote."""
        return _DECODE(record)

    def __str__(self) -> str:
        if self.stream != "log":
            return self.message
        when = datetime.fromtimestamp(self.time / 1000, timezone.utc)
        return f"{when:%H:%M:%S} {self.level} {self.logger}: {self.message}"


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(LogRecord).decode
