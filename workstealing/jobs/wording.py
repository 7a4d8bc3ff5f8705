"""Reads replies alike, whether the user's client decodes them or not."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ("Value", "pairs", "text", "texts")

Value: TypeAlias = str | bytes


def text(value: Any) -> str:
    """Return a string of a reply, or of a user's id, as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def texts(values: Any) -> list[str]:
    """Return a list of strings as text."""
    return [text(value) for value in values]


def pairs(flat: list[Value]) -> dict[Value, Value]:
    """Turn key, value, key, value, … into a dictionary."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
