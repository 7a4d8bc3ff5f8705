"""Reads what lately happened between workers: steals, and releases that joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from workstealing.inspecting.reachable_shards import read_reachable
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import number, shown
from workstealing.queue.steps import Flow, RedisCommand, ask

__all__ = ("QueueEvents", "Release", "Steal", "read_events")

# As many as the scripts keep.
_STEALS = 200
_RELEASES = 50

_Entries: TypeAlias = list[tuple[int, dict[str, str]]]
"""When something happened, and the fields that say what."""


@dataclass(frozen=True, slots=True)
class Steal:
    """Tasks that one worker took from the back of another's deque."""

    at_ms: int
    victim: str
    thief: str
    tasks: int


@dataclass(frozen=True, slots=True)
class Release:
    """A worker joined that can run what no worker could before."""

    at_ms: int
    worker: str
    abilities: tuple[str, ...]
    """What is new, as `name@version`; twenty at most."""


@dataclass(frozen=True, slots=True)
class QueueEvents:
    """What lately happened between workers, the latest first."""

    steals: tuple[Steal, ...]
    """At most two hundred."""
    releases: tuple[Release, ...]
    """At most fifty."""


def read_events(shards: Sequence[QueueKeys]) -> Flow[QueueEvents]:
    """Read the last steals and releases, without shards whose node is away."""
    found, _ = yield from read_reachable(shards, _of_shard)
    stolen = [one for of_shard, _ in found.values() for one in of_shard]
    joined = [one for _, of_shard in found.values() for one in of_shard]
    if len(shards) > 1:
        for entries in (stolen, joined):
            entries.sort(key=lambda one: -one[0])
    steals = [
        Steal(
            at_ms,
            fields.get("victim", "?"),
            fields.get("thief", "?"),
            number(fields.get("tasks")) or 0,
        )
        for at_ms, fields in stolen
    ]
    releases = [
        Release(at_ms, fields.get("worker", "?"), tuple(fields["new"].split("\n")))
        for at_ms, fields in joined
        if fields.get("new")
    ]
    return QueueEvents(tuple(steals[:_STEALS]), tuple(releases[:_RELEASES]))


def _of_shard(keys: QueueKeys) -> Flow[tuple[_Entries, _Entries]]:
    stolen = yield from ask(_last(keys.thefts, _STEALS))
    joined = yield from ask(_last(keys.releases, _RELEASES))
    return stolen, joined


def _last(key: str, most: int) -> RedisCommand[_Entries]:
    return RedisCommand(("XREVRANGE", key, "+", "-", "COUNT", most), _entries)


def _entries(reply: Any) -> _Entries:
    found = []
    for entry, fields in reply:
        if not isinstance(fields, dict):
            fields = dict(zip(fields[::2], fields[1::2], strict=True))
        at_ms = number(shown(entry).partition("-")[0]) or 0
        found.append((at_ms, {shown(k): shown(v) for k, v in fields.items()}))
    return found
