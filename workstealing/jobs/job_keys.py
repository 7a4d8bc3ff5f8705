"""Keys and names of users: checked, kept in one hash slot, and read as text.

What a job keeps beside a user's key is in the hash slot of that key, so that one script
may touch both in a Cluster. Keys of users may be in any slot: a single server takes
them together, a Cluster takes those of one slot, so there a page of keys costs as many
calls as it has slots.

Names are text. A name that somebody else wrote and that is not UTF-8 becomes text with
lone surrogates (`lossless_text`); `sendable` turns it back into the same bytes.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

from workstealing._checks import is_text
from workstealing.errors import ConfigurationError
from workstealing.queue.steps import SINGLE

__all__ = (
    "Value",
    "beside",
    "by_slot",
    "checked_key",
    "lossless_text",
    "lossless_texts",
    "mapping_of",
    "sendable",
    "slot_of",
)

Value: TypeAlias = str | bytes

_SLOTS = 16384


def checked_key(key: str) -> str:
    """Refuse a key that no second key could share a Cluster slot with."""
    if not isinstance(key, str) or not key or not is_text(key):
        raise ConfigurationError(f"a key must be a non-empty string, not {key!r}")
    if _tag(key) is None and "}" in key:
        raise ConfigurationError(
            f"{key!r} has a '}}' but no hash tag: write it as '{{name}}…', so that the"
            " keys of the job can share its Cluster slot"
        )
    return key


def beside(key: str, suffix: str) -> str:
    """Return a key for *suffix* that lives in the slot of *key*."""
    return f"{key}:{suffix}" if _tag(key) else f"{{{key}}}:{suffix}"


def by_slot(keys: Iterable[Value], nodes: Sequence[str]) -> list[list[Value]]:
    """Group *keys* by slot; if *nodes* is a single server, they are one group."""
    groups: dict[int, list[Value]] = {}
    clustered = tuple(nodes) != SINGLE
    for key in keys:
        groups.setdefault(slot_of(key) if clustered else 0, []).append(key)
    return list(groups.values())


def slot_of(key: Value) -> int:
    """Return the hash slot of a key, by the Cluster specification."""
    name = _raw(key) if isinstance(key, str) else key
    start = name.find(b"{")
    end = name.find(b"}", start + 1)
    if 0 <= start < end - 1:
        name = name[start + 1 : end]
    return crc_hqx(name, 0) % _SLOTS


def lossless_text(value: Any) -> str:
    """Return a string of a reply, or a user's id, as text, whatever its bytes are."""
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return str(value)


def lossless_texts(values: Any) -> list[str]:
    """Return a list of strings as text."""
    return [lossless_text(value) for value in values]


def sendable(name: str) -> str:
    """Return a name as a call takes it; a name that is not text, as its bytes."""
    return name if is_text(name) else cast("str", _raw(name))


def mapping_of(flat: list[Value]) -> dict[Value, Value]:
    """Turn key, value, key, value, … into a dictionary."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _raw(name: str) -> bytes:
    """Return the bytes that `lossless_text` was given."""
    return name.encode(errors="surrogateescape")


def _tag(key: str) -> str | None:
    start = key.find("{")
    end = key.find("}", start + 1)
    return key[start + 1 : end] or None if 0 <= start < end else None
