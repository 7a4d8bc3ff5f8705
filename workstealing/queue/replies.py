"""Reads replies of scripts alike, whether the user's client decodes them or not.

`text`, `texts` and `raw` are for what the library wrote itself. `shown`, `number` and
those made of them are for inspection: they never raise, whatever stands in a key.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from workstealing.tasks.attempt import Delivery

__all__ = (
    "begun",
    "deliveries",
    "deque_lengths",
    "events",
    "failures",
    "number",
    "pairs",
    "raw",
    "shown",
    "tallies",
    "text",
    "texts",
    "waits_since",
)

_LARGEST = 2**53


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


def deliveries(
    flat: Sequence[Any], shard: int, befell: Sequence[Any] = ()
) -> tuple[Delivery, ...]:
    """Return id, token, attempt, envelope, id, … as tasks of a shard.

    What befell some of them before is id, first line of its history, …
    """
    ids, tokens = texts(flat[::4]), texts(flat[1::4])
    tasks = tuple(map(Delivery, ids, tokens, flat[2::4], map(raw, flat[3::4])))
    if befell:
        since = dict(
            zip(texts(befell[::2]), map(waits_since, befell[1::2]), strict=True)
        )
        tasks = tuple(replace(one, since_ms=since.get(one.id, 0)) for one in tasks)
    return tuple(replace(one, shard=shard) for one in tasks) if shard else tasks


def deque_lengths(flat: Sequence[Any]) -> tuple[tuple[str, int], ...]:
    """Return worker, length of its deque, worker, … as pairs."""
    names, lengths = texts(flat[::2]), map(float, texts(flat[1::2]))
    return tuple(zip(names, map(int, lengths), strict=True))


def pairs(flat: Sequence[Any]) -> dict[str, str]:
    """Return name, value, name, value, … as a mapping."""
    words = tuple(map(shown, flat))
    return dict(zip(words[::2], words[1::2], strict=True))


def begun(value: Any) -> int:
    """Return when a worker took a task, as its `running` says it."""
    return number(shown(value).removeprefix("!")) or 0


def tallies(value: Any) -> tuple[int, int, int]:
    """Return attempts, deaths and steals, as the `history` of a task says them."""
    first = shown(value).partition("\n")[0]
    attempts, deaths, steals, *_ = (*first.split(":"), "", "", "")
    return number(attempts) or 0, number(deaths) or 0, number(steals) or 0


def failures(value: Any) -> tuple[bytes, ...]:
    """Return the outcomes of the last failed attempts, from the `history` of a task."""
    return tuple(raw(value).split(b"\n")[1:])


def events(value: Any) -> tuple[str, ...]:
    """Return the events of a task, as its `history` or `biographies` have them."""
    first = shown(value).partition("\n")[0]
    *_, noted = (*first.split(":", 3), "")[:4]
    return tuple(noted.split("\t")) if noted else ()


def waits_since(history: Any) -> int:
    """Return when a task was put back after it had been run; 0 if it never was.

    Then its wait counts anew: from when it failed, snoozed, was handed back or given
    back, or is due again; or from when it was replayed.
    """
    since_ms, was_taken = 0, False
    for event in events(history):
        letter, at_ms = event[0], number(event[1:].partition(" ")[0]) or 0
        if letter == "t":
            since_ms, was_taken = 0, True
        elif letter == "v" or (was_taken and (letter == "q" or not since_ms)):
            since_ms = at_ms
    return since_ms


def shown(value: Any) -> str:
    """Return a reply as text that can be printed; what is not UTF-8 is replaced."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value).encode(errors="replace").decode()


def number(value: Any) -> int | None:
    """Return a reply as a whole number that Lua can hold; None if it is no number."""
    try:
        read = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(read) else int(max(-_LARGEST, min(_LARGEST, read)))
