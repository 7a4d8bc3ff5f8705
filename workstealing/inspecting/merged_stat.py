"""The stats of several shards as that of one queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

from workstealing.inspecting.views import (
    ParkedStat,
    PauseStat,
    QueueStat,
    QueueTotals,
    ShardStat,
    UpkeepStat,
    WorkerStat,
)
from workstealing.queue.merged_counts import added, latest

__all__ = ("merged_stat",)

_MOST_WORKERS = 1000
_MOST_NAMES = 100
_SUMMED = (
    *("waiting", "assigned", "running", "delayed", "parked", "paused", "held_back"),
    *("dead", "outcomes", "unfinished", "backlog", "living", "steps"),
)


def merged_stat(found: Mapping[int, QueueStat], away: Sequence[int]) -> QueueStat:
    """Add up the stats of shards, by their numbers; without those that are away."""
    parts = tuple(found.values())
    first = parts[0]
    if len(parts) == 1 and not away:
        return first
    sums = {name: sum(getattr(part, name) for part in parts) for name in _SUMMED}
    urgent, normal, low = (sum(part.inbox[n] for part in parts) for n in range(3))
    oldest = [one.oldest_at_ms for one in parts if one.oldest_at_ms is not None]
    workers = _workers(part.workers for part in parts)
    return replace(
        first,
        **sums,
        inbox=(urgent, normal, low),
        is_known=any(part.is_known for part in parts),
        now_ms=max(part.now_ms for part in parts),
        input_ended=any(part.input_ended for part in parts),
        oldest_at_ms=min(oldest, default=None),
        backlog_per_worker=round(sums["backlog"] / max(1, sums["living"]), 3),
        workers=workers[:_MOST_WORKERS],
        parked_abilities=_parked(part.parked_abilities for part in parts),
        pauses=_pauses(part.pauses for part in parts),
        task_names=tuple(sorted({name for part in parts for name in part.task_names}))[
            :_MOST_NAMES
        ],
        totals=_totals([part.totals for part in parts]),
        upkeep=UpkeepStat(
            done_at_ms=latest(part.upkeep.done_at_ms for part in parts),
            slices=added(part.upkeep.slices for part in parts),
        ),
        bytes=None
        if any(part.bytes is None for part in parts)
        else added(part.bytes or {} for part in parts),
        shards=tuple(
            ShardStat(
                shard,
                part.waiting,
                part.assigned + part.running,
                part.living,
                part.totals.done,
            )
            for shard, part in found.items()
        ),
        unreachable=tuple(away),
    )


def _workers(parts: Iterable[Sequence[WorkerStat]]) -> tuple[WorkerStat, ...]:
    """Name each worker once: one that moves may be in two shards for a while."""
    found: dict[str, WorkerStat] = {}
    for part in parts:
        for one in part:
            other = found.get(one.name)
            if other is not None:
                newer = max(one, other, key=lambda each: each.lease_left_ms)
                one = replace(
                    newer,
                    waiting=one.waiting + other.waiting,
                    running=one.running + other.running,
                    stolen=one.stolen + other.stolen,
                )
            found[one.name] = one
    return tuple(sorted(found.values(), key=lambda one: one.lease_left_ms))


def _parked(parts: Iterable[Sequence[ParkedStat]]) -> tuple[ParkedStat, ...]:
    found: dict[str, ParkedStat] = {}
    for part in parts:
        for one in part:
            other = found.get(one.ability)
            tasks = one.tasks + (other.tasks if other else 0)
            found[one.ability] = replace(one, tasks=tasks)
    return tuple(found.values())


def _pauses(parts: Iterable[Sequence[PauseStat]]) -> tuple[PauseStat, ...]:
    found: dict[str, PauseStat] = {}
    for part in parts:
        for one in part:
            other = found.get(one.task)
            if other is not None:
                since_ms = min(one.since_ms, other.since_ms)
                tasks = one.tasks + other.tasks
                one = replace(one, since_ms=since_ms, tasks=tasks)
            found[one.task] = one
    return tuple(found[name] for name in sorted(found))


def _totals(parts: Sequence[QueueTotals]) -> QueueTotals:
    names = [field.name for field in fields(QueueTotals)]
    return QueueTotals(
        **{name: sum(getattr(part, name) for part in parts) for name in names}
    )
