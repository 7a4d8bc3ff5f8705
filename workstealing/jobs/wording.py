"""Reads replies alike, whether the user's client decodes them or not.

Names are text. One that a foreign writer wrote and that is not UTF-8 becomes text with
lone surrogates; `raw` and `sendable` turn it back into the same bytes.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

__all__ = ("Value", "is_text", "pairs", "raw", "sendable", "text", "texts")

Value: TypeAlias = str | bytes


def text(value: Any) -> str:
    """Return a string of a reply, or of a user's id, as text."""
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return str(value)


def texts(values: Any) -> list[str]:
    """Return a list of strings as text."""
    return [text(value) for value in values]


def raw(name: str) -> bytes:
    """Return the bytes that `text` was given."""
    return name.encode(errors="surrogateescape")


def sendable(name: str) -> str:
    """Return a name as a call wants it; one that is no text, as its bytes."""
    return name if is_text(name) else cast("str", raw(name))


def is_text(name: str) -> bool:
    """Tell whether a name is UTF-8 in Redis, which lone surrogates are not."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def pairs(flat: list[Value]) -> dict[Value, Value]:
    """Turn key, value, key, value, … into a dictionary."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
