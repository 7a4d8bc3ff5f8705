"""The counts of several shards as those of one queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from workstealing.queue.inspection_calls import Counts
from workstealing.queue.pause_calls import Pauses

__all__ = ("added", "ended_since", "latest", "merged_counts", "merged_pauses")


def merged_counts(parts: Sequence[Counts]) -> Counts:
    """Add up what was counted in each shard; the clocks of their nodes are alike."""
    if len(parts) == 1:
        return parts[0]
    urgent, normal, low = (sum(part.inbox[n] for part in parts) for n in range(3))
    return Counts(
        now_ms=max(part.now_ms for part in parts),
        inbox=(urgent, normal, low),
        tasks=sum(part.tasks for part in parts),
        assigned=sum(part.assigned for part in parts),
        outcomes=sum(part.outcomes for part in parts),
        delayed=sum(part.delayed for part in parts),
        dead=sum(part.dead for part in parts),
        parked=sum(part.parked for part in parts),
        input_ended=any(part.input_ended for part in parts),
        stats=added(part.stats for part in parts),
        upkeep=latest(part.upkeep for part in parts),
        # A worker that moves may be in two shards for a moment.
        leases=latest(part.leases for part in parts),
        loads=added(part.loads for part in parts),
        abilities=added(part.abilities for part in parts),
        paused=sum(part.paused for part in parts),
        pauses=merged_pauses([part.pauses for part in parts]),
        in_lines=sum(part.in_lines for part in parts),
        held_back=sum(part.held_back for part in parts),
        steps=sum(part.steps for part in parts),
    )


def merged_pauses(parts: Sequence[Pauses]) -> Pauses:
    """Return what is paused in any shard, since it first was."""
    since = [one.queue_since_ms for one in parts if one.queue_since_ms is not None]
    names: dict[str, int] = {}
    for part in parts:
        for name, at_ms in part.tasks.items():
            names[name] = min(at_ms, names.get(name, at_ms))
    return Pauses(min(since, default=None), dict(sorted(names.items())))


def ended_since(before: Counts | None, now: Counts) -> bool:
    """Tell whether a task may have ended between two counts of all shards.

    Shards are not counted at one moment: a task may submit to one that was counted as
    empty, and end before its own is. If all were empty twice and nothing ended between,
    there was a moment, between the two counts, at which all were.
    """
    return before is None or before.stats != now.stats


def added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up numbers by their names."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def latest(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the latest of times by their names."""
    found: dict[str, int] = {}
    for part in parts:
        for name, at_ms in part.items():
            found[name] = max(at_ms, found.get(name, at_ms))
    return found
