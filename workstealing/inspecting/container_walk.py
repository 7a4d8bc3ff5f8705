"""Walks through the keys that hold ids, and names places at which a page can go on.

A place is a container, the number or time of a member, and its name: it is found again
wherever that member stands by then, or where it stood if it is gone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from workstealing.errors import ConfigurationError
from workstealing.queue import listing_calls
from workstealing.queue.replies import number, shown
from workstealing.queue.steps import Flow, RedisCommand, ask

__all__ = (
    "CONTAINERS",
    "ContainerWalk",
    "HeldMember",
    "TaskContainer",
    "begin_walk",
    "read_place",
)

CONTAINERS = 20
"""How many containers one page opens."""

# How far a list is searched for the task that the last page ended with.
_FAR = 10_000

_Position: TypeAlias = int | bytes
"""How many members are passed over; or, of those that ended, the last one of them."""


@dataclass(frozen=True, slots=True)
class TaskContainer:
    """A key that holds ids."""

    name: str
    key: str
    kind: str
    """`list`; `ended`: the list of outcomes, from the latest; `rising` or `falling`: a
    sorted set, from the lowest or the highest."""


@dataclass(frozen=True, slots=True)
class HeldMember:
    """A member of a container."""

    container: str
    name: str
    ms: int
    place: str
    """Where a page goes on behind it."""

    @property
    def id(self) -> str:
        """The task; the name of one in a line has more."""
        return self.name.rpartition("\0")[2]


class ContainerWalk:
    """Goes from container to container; there may be many, and most of them short."""

    def __init__(self, left: list[TaskContainer], first: _Position) -> None:
        self._left = left
        self._first = first
        self._opened = 0
        self._last: HeldMember | None = None

    @property
    def is_over(self) -> bool:
        """Whether no container is left."""
        return not self._left

    @property
    def place(self) -> str:
        """Where the next page goes on; empty if there is nothing more."""
        if self.is_over:
            return ""
        if self._last is not None and self._last.container == self._left[0].name:
            return self._last.place
        return json.dumps([self._left[0].name, 0, ""])

    def members(self, most: int) -> Flow[list[HeldMember]]:
        """Name the next ones; fewer if that would open too many containers."""
        found: list[HeldMember] = []
        while self._left and len(found) < most and self._opened < CONTAINERS:
            container, asked = self._left[0], most - len(found)
            some = yield from _named(container, self._first, asked)
            for n, (name, ms) in enumerate(some):
                place = ms
                if container.kind == "list" and isinstance(self._first, int):
                    place = self._first + n
                text = json.dumps([container.name, place, name])
                found.append(HeldMember(container.name, name, ms, text))
            if len(some) == asked:
                self._first = _behind(self._first, some)
            else:
                del self._left[0]
                self._opened += 1
                self._first = _start_of(self._left)
        self._last = found[-1] if found else self._last
        return found


def begin_walk(containers: list[TaskContainer], after: str) -> Flow[ContainerWalk]:
    """Go on behind the place that the page before has named."""
    name, place, member = read_place(after)
    left = [one for one in containers if one.name >= name]
    first = _start_of(left)
    if left and left[0].name == name:
        first = yield from _resume(left[0], place, member)
    return ContainerWalk(left, first)


def read_place(after: str) -> tuple[str, int, str]:
    """Read a place: a container, the number or time of a member, its name."""
    if not after:
        return "", 0, ""
    try:
        name, place, member = json.loads(after)
    except (ValueError, TypeError, RecursionError):
        name, place, member = None, None, None
    if _is_place(name, place, member):
        return name, place, member
    raise ConfigurationError(
        "after must be what the page before has named, or empty for the first page"
    )


def _named(
    container: TaskContainer, first: _Position, most: int
) -> Flow[list[tuple[str, int]]]:
    """Name some members of a container, and their milliseconds."""
    if isinstance(first, bytes):
        key = container.key
        ended = listing_calls.ended(key, most=most, latest=True, after=first)
        return [(one.id, one.expires_ms) for one in (yield from ask(ended))]
    if container.kind == "list":
        call = RedisCommand(
            ("LRANGE", container.key, first, first + most - 1),
            lambda reply: [(shown(one), 0) for one in reply],
        )
        return (yield from ask(call))
    latest = container.kind == "falling"
    ranked = listing_calls.ranked(container.key, most=most, latest=latest, first=first)
    return list((yield from ask(ranked)))


def _start_of(containers: Sequence[TaskContainer]) -> _Position:
    return b"" if containers and containers[0].kind == "ended" else 0


def _behind(first: _Position, some: Sequence[tuple[str, int]]) -> _Position:
    """Return the position behind some members, of which the first is at another."""
    if isinstance(first, bytes):
        task_id, expires_ms = some[-1]
        return f"{task_id} {expires_ms}".encode()
    return first + len(some)


def _resume(container: TaskContainer, place: int, member: str) -> Flow[_Position]:
    """Return the position behind a member, or where it was if it is gone."""
    key = container.key
    if container.kind == "ended":
        return f"{member} {place}".encode() if member else b""
    if not member:
        return 0
    if container.kind == "list":
        if place >= _FAR:
            return place + 1
        found = yield from ask(listing_calls.position(key, member, most=_FAR))
        # What was taken since stood in front of it, and it is gone with them.
        return 0 if found is None else found + 1
    rank, before = "ZRANK", ("-inf", f"({place}")
    if container.kind == "falling":
        rank, before = "ZREVRANK", (f"({place}", "+inf")
    score = yield from ask(listing_calls.score(key, member))
    if score == place:
        found = yield from ask(RedisCommand((rank, key, member), number))
        return (found or 0) + 1
    # It is gone, or stands elsewhere by now: go on where it stood. Many may have been
    # given up in the same millisecond; those stand in the order of their ids.
    low = yield from ask(RedisCommand(("ZCOUNT", key, *before), int))
    high = low + (yield from ask(RedisCommand(("ZCOUNT", key, place, place), int)))
    is_rising = container.kind == "rising"
    while low < high:
        middle = (low + high) // 2
        there = yield from _named(container, middle, 1)
        if there and (there[0][0].encode() < member.encode()) == is_rising:
            low = middle + 1
        else:
            high = middle
    return low


def _is_place(name: Any, place: Any, member: Any) -> bool:
    return isinstance(name, str) and type(place) is int and isinstance(member, str)
