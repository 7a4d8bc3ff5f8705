"""What a person should know first about a queue, as sentences.

An alarm is something that will not go away by itself, or that somebody should look at.
"""

from __future__ import annotations

from dataclasses import dataclass

from workstealing.inspecting.formatting import duration_ms, plural
from workstealing.inspecting.stat_rows import oldest_age
from workstealing.inspecting.views import QueueStat

__all__ = ("Alarm", "alarms_of")

# Upkeep takes the tasks of a dead worker back within seconds, if anybody does any.
_LONG_DEAD_MS = 60_000
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that somebody should look at."""

    headline: str
    """`100,000 tasks wait and no worker is alive`"""
    more: str
    """What to do about it, or what it means."""
    state: str
    """The state of the tasks that it is about; empty if it is about workers."""


def alarms_of(stat: QueueStat) -> tuple[Alarm, ...]:
    """Return what is wrong with a queue, the worst first."""
    found = (_unreachable(stat), _no_worker(stat), _parked(stat), _dead_holders(stat))
    return tuple(alarm for alarm in found if alarm is not None)


def _unreachable(stat: QueueStat) -> Alarm | None:
    away = stat.unreachable
    if not away:
        return None
    number = len(away) + len(stat.shards)
    named = ", ".join(map(str, away))
    return Alarm(
        f"{len(away)} of {plural(number, 'shard')} cannot be reached: {named}",
        "What they hold is missing from all numbers. Check their node of the Cluster;"
        " the other shards go on.",
        "",
    )


def _no_worker(stat: QueueStat) -> Alarm | None:
    is_paused = any(not pause.task for pause in stat.pauses)
    if stat.living or is_paused or not stat.backlog:
        return None
    wait = "task waits" if stat.backlog == 1 else "tasks wait"
    age = oldest_age(stat)
    waited = f"The oldest has waited for {age}. " if age else ""
    start, taken = "Start", stat.totals.brief
    if taken:
        # What of the backlog is brief is only known to the code of the tasks.
        tasks = plural(taken, "task")
        so_far = f"Spare moments have taken {tasks} so far, but only brief ones."
        start = f"{so_far} For others, start"
    return Alarm(
        f"{stat.backlog:,} {wait} and no worker is alive",
        f"{waited}{start} a worker: workstealing worker APP:QUEUE",
        "waiting",
    )


def _parked(stat: QueueStat) -> Alarm | None:
    stuck = sorted(
        (one for one in stat.parked_abilities if one.tasks),
        key=lambda one: -one.tasks,
    )
    if not stat.parked or not stuck:
        return None
    named = [f"{one.ability} ({one.tasks:,})" for one in stuck[:_NAMED]]
    if len(stuck) > _NAMED:
        named.append(plural(len(stuck) - _NAMED, "other"))
    whom = named[0]
    if len(named) > 1:
        whom = f"{', '.join(named[:-1])} or {named[-1]}"
    is_are = "is" if stat.parked == 1 else "are"
    return Alarm(
        f"{plural(stat.parked, 'task')} {is_are} parked",
        f"No worker could run {whom}. They go on when one joins that can.",
        "parked",
    )


def _dead_holders(stat: QueueStat) -> Alarm | None:
    dead = [
        worker
        for worker in stat.workers
        if worker.lease_left_ms < -_LONG_DEAD_MS and worker.waiting + worker.running
    ]
    if not dead:
        return None
    held = plural(sum(worker.waiting + worker.running for worker in dead), "task")
    longest = duration_ms(-min(worker.lease_left_ms for worker in dead))
    headline = (
        f"Worker {dead[0].name} has been dead for {longest} and still holds {held}"
    )
    if len(dead) > 1:
        who = f"{len(dead):,} workers have"
        headline = f"{who} been dead for up to {longest} and still hold {held}"
    return Alarm(
        headline, "Nobody does the upkeep that takes them back: start a worker.", ""
    )
