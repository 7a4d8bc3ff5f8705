"""Sorts keys of users into groups that one script may be given.

A single server takes any keys together. A Cluster takes those of one hash slot, so
there a page of keys costs as many calls as it has slots.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Iterable, Sequence
from typing import cast

from workstealing.jobs.wording import Value, raw
from workstealing.queue.call import SINGLE

__all__ = ("declared", "slot_of", "together")

_SLOTS = 16384


def together(keys: Iterable[Value], nodes: Sequence[str]) -> list[list[Value]]:
    """Group *keys* by slot, or not at all where *nodes* says it is no Cluster."""
    groups: dict[int, list[Value]] = {}
    clustered = tuple(nodes) != SINGLE
    for key in keys:
        groups.setdefault(slot_of(key) if clustered else 0, []).append(key)
    return list(groups.values())


def slot_of(key: Value) -> int:
    """Return the hash slot of a key, by the Cluster specification."""
    name = raw(key) if isinstance(key, str) else key
    start = name.find(b"{")
    end = name.find(b"}", start + 1)
    if 0 <= start < end - 1:
        name = name[start + 1 : end]
    return crc_hqx(name, 0) % _SLOTS


def declared(keys: Sequence[Value]) -> tuple[str, ...]:
    """Return keys as a call wants them; bytes that are no text stay as they are."""
    return cast("tuple[str, ...]", tuple(keys))
