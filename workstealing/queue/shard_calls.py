"""What is asked of the shards of a queue: how many there are, and what waits in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.placement import MOST_SHARDS
from workstealing.queue.producer_calls import read_outcomes
from workstealing.queue.replies import number, text, texts
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call, Flow, RedisCommand, ask

__all__ = (
    "ShardStatus",
    "declare_shards",
    "has_ids",
    "has_unique_keys",
    "read_shards",
    "shard_status",
)

_script = queue_scripts(__package__)
# Tasks looked up in one call, which reads their outcomes to learn whether they exist.
_IDS = 100


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """What a worker sees of a shard that it is not in."""

    waiting: int
    """Tasks that a worker would find there, at least."""
    members: int
    """Workers that live."""
    is_overdue: bool
    """Nobody has done its upkeep for a while."""
    parked: tuple[str, ...] = ()
    """Abilities that tasks are parked for; some of them, if there are very many."""
    due_ticks: int = 0
    """Ticks of schedules that have come."""
    next_tick_ms: int = -1
    """Until the next one; -1 if there is none."""

    @staticmethod
    def read(reply: Any) -> ShardStatus:
        """Read the reply of a script."""
        waiting, members, is_overdue, parked, due, next_ms = reply
        parked = texts(parked)
        return ShardStatus(waiting, members, bool(is_overdue), parked, due, next_ms)


def declare_shards(first: QueueKeys, wanted: int) -> Call[tuple[int, ...]]:
    """Have at least so many shards; return all their numbers so far, in order."""
    script = _script("declare_shards")
    return Call(script, script.keys(first), script.arguments(wanted=wanted), _numbers)


def read_shards(first: QueueKeys) -> RedisCommand[tuple[int, ...]]:
    """Return all numbers of shards so far, in order; the last is the current one."""
    return RedisCommand(("HGET", first.control, "shards"), _numbers)


def shard_status(keys: QueueKeys, settings: QueueSettings) -> Call[ShardStatus]:
    """Look at a shard from outside."""
    script = _script("shard_status")
    return Call(
        script,
        script.keys(keys),
        script.arguments(upkeep_ms=settings.upkeep_ms),
        ShardStatus.read,
    )


def has_ids(keys: QueueKeys, ids: Sequence[str]) -> Flow[list[bool]]:
    """Tell which of some tasks a shard knows."""
    found: list[bool] = []
    for start in range(0, len(ids), _IDS):
        seen = yield from ask(read_outcomes(keys, ids[start : start + _IDS]))
        found += (one.verdict != "unknown" for one in seen)
    return found


def has_unique_keys(keys: QueueKeys, unique: Sequence[str]) -> Flow[list[bool]]:
    """Tell which unique keys are taken in a shard."""
    command = RedisCommand(("HMGET", keys.uniques, *unique), list[Any])
    return [one is not None for one in (yield from ask(command))]


def _numbers(reply: Any) -> tuple[int, ...]:
    """Read numbers, whatever stands there; one shard if there are none."""
    known = [number(one) or 0 for one in text(reply or b"").split()]
    return tuple(min(one, MOST_SHARDS) for one in known if one > 0) or (1,)
