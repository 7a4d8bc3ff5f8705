"""Reads what scripts reply: bytes or text, whatever the client was told to return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ("begun", "pairs", "raw", "raws", "text", "texts")


def text(value: Any) -> str:
    """Return a reply as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Return several replies as text."""
    return tuple(
        value.decode() if isinstance(value, bytes) else str(value) for value in values
    )


def raw(value: Any) -> bytes:
    """Return a reply as bytes."""
    return value if isinstance(value, bytes) else str(value).encode()


def raws(values: Iterable[Any]) -> tuple[bytes, ...]:
    """Return several replies as bytes."""
    return tuple(raw(value) for value in values)


def pairs(flat: Sequence[Any]) -> dict[str, str]:
    """Return name, value, name, value, … as a mapping."""
    words = texts(flat)
    return dict(zip(words[::2], words[1::2], strict=True))


def begun(value: Any) -> int:
    """Return when a worker took a task in hand, as its `running` says it."""
    return int(text(value).removeprefix("!"))
