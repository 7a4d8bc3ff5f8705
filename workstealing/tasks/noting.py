"""What a task notes while it runs: how far it is, and where to go on."""

from __future__ import annotations

from typing import Any

import msgspec

from workstealing.errors import ConfigurationError
from workstealing.tasks.values import NOT_JSON, encode_value

__all__ = ("LARGEST_CHECKPOINT", "Progress", "encode_checkpoint")

LARGEST_CHECKPOINT = 256 * 1024
"""Bytes of one checkpoint."""


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a task is; `str()` says it in words."""

    done: float
    total: float | None = None
    note: str = ""

    def encode(self) -> bytes:
        """Write it as JSON."""
        return _ENCODE(self)

    @staticmethod
    def read(progress: bytes) -> Progress:
        """Read what `encode` wrote."""
        return _DECODE(progress)

    def __str__(self) -> str:
        words = f"{self.done:g}"
        if self.total is not None:
            words += f" of {self.total:g}"
        return f"{words}, {self.note}" if self.note else words


def encode_checkpoint(value: Any) -> bytes:
    """Write a checkpoint as JSON; refuse what is none, and what is too large."""
    try:
        encoded = encode_value(value)
    except NOT_JSON as error:
        raise ConfigurationError(
            f"a checkpoint must be told in JSON: {error}; save plain values"
        ) from error
    if len(encoded) > LARGEST_CHECKPOINT:
        raise ConfigurationError(
            f"the checkpoint has {len(encoded):,} bytes and the limit is"
            f" {LARGEST_CHECKPOINT:,}: store the data elsewhere and save where it is"
        )
    return encoded


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(Progress).decode
