"""Counts the tasks of a queue, describes its workers, and measures how fast it works.

A stat is read in a handful of round trips, however many tasks there are. Rates are
differences between two stats, by the server's clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from workstealing.inspecting.listing import MOST_ABILITIES, summaries
from workstealing.inspecting.views import (
    ParkedStat,
    PauseStat,
    QueueStat,
    QueueTotals,
    UpkeepStat,
    WorkerStat,
)
from workstealing.queue import listing_calls
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.listing_calls import (
    CHUNK,
    ParkedAbility,
    TaskSummary,
    WorkerInfo,
)
from workstealing.queue.pause_calls import count_paused
from workstealing.queue.replies import number, shown
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Flow, ask
from workstealing.tasks.previews import preview_envelope

__all__ = ("RateMeter", "Rates", "SomeWorkers", "read_stat")

# Stored beside the times of duties without being one.
_NOT_DUTIES = (
    "claimed",
    "cursor",
    "doubted",
    "looked",
    "permit_cursor",
    "surveyed",
)
# The first ids of an inbox may be of cancelled tasks that were not skipped yet.
_FRONT = 5
# Lines that are looked at for the oldest task.
_LINES = 50
_PREVIEW_BYTES = 512
# Names of tasks that are listed, paused or not.
_MOST_NAMES = 100
# Dead workers that a page describes, whichever others it shows.
_DEAD = 3


@dataclass(frozen=True, slots=True)
class Rates:
    """Tasks per second."""

    submitted: float
    done: float
    dead: float
    cancelled: float
    retried: float
    reassigned: float
    stolen: float


class RateMeter:
    """Turns a series of stats into rates.

    Args:
        window: a rate is the mean over at most this many seconds.
    """

    def __init__(self, window: float = 10.0) -> None:
        self._window_ms = window * 1000
        self._seen: deque[QueueStat] = deque()

    def note(self, now: QueueStat) -> Rates | None:
        """Add a stat and return the rates; None until there are two to compare."""
        seen = self._seen
        if seen and not _follows(seen[-1], now):
            seen.clear()
        seen.append(now)
        # One from before the window is kept, so that the window is covered entirely.
        while len(seen) > 2 and now.now_ms - seen[1].now_ms >= self._window_ms:
            seen.popleft()
        first = seen[0]
        passed_ms = now.now_ms - first.now_ms
        if passed_ms <= 0:
            return None
        before, after = first.totals, now.totals

        def per_second(name: str) -> float:
            number: int = getattr(after, name) - getattr(before, name)
            return number * 1000 / passed_ms

        return Rates(*map(per_second, Rates.__slots__))


@dataclass(frozen=True, slots=True)
class SomeWorkers:
    """Which workers a page describes; to describe one takes two commands."""

    most: int
    first: str | None = None
    """By name, from this one on; None: those with the longest deques."""

    def of(self, seen: Counts) -> tuple[str, ...]:
        """Name them; a few of the dead are always among them, for the alarm."""
        dead = [name for name, end in seen.leases.items() if end <= seen.now_ms]
        names = sorted(seen.leases)
        if self.first is None:
            names.sort(key=lambda name: -seen.loads.get(name, 0))
        else:
            names = [name for name in names if name >= self.first]
        return tuple(dict.fromkeys((*names[: self.most], *dead[:_DEAD])))


def read_stat(
    queue: str,
    run: str,
    server: str,
    keys: QueueKeys,
    settings: QueueSettings,
    seen: Counts,
    some: SomeWorkers | None = None,
) -> Flow[QueueStat]:
    """Read what else describes a queue than its counts, in a handful of round trips.

    With *some* workers, others are not described, and memory is not measured: it takes
    as many commands however many workers there are.
    """
    oldest_at_ms = yield from _oldest(keys, seen)
    living = yield from _living(keys, seen)
    names = tuple(seen.leases) if some is None else some.of(seen)
    workers = yield from _workers(keys, names)
    parked = (yield from _parked(keys)) if seen.parked else ()
    pauses = yield from _pauses(keys, seen)
    sizes = None if some else (yield from _memory_use(keys, names))
    # What a worker has locked is in its deque, or it runs.
    running = max(0, seen.assigned - sum(seen.loads.values()))
    if len(workers) == len(seen.leases):
        running = min(seen.assigned, sum(worker.running for worker in workers))
    is_known = _is_known(seen)
    if not is_known:
        # Schedules and limits can be there before any task.
        is_known = bool((yield from ask(listing_calls.count_existing(keys.shared()))))
    not_now = seen.delayed + seen.paused + seen.held_back
    due = max(0, seen.unfinished - not_now)
    backlog = due if seen.pauses.queue_since_ms is None else running
    return QueueStat(
        queue=queue,
        run=run,
        server=server,
        is_known=is_known,
        now_ms=seen.now_ms,
        input_ended=seen.input_ended,
        waiting=max(0, due + seen.held_back - seen.assigned),
        inbox=seen.inbox,
        oldest_at_ms=oldest_at_ms,
        assigned=seen.assigned - running,
        running=running,
        delayed=seen.delayed,
        parked=seen.parked,
        paused=seen.paused,
        held_back=seen.held_back,
        dead=seen.dead,
        outcomes=seen.outcomes,
        unfinished=seen.unfinished,
        backlog=backlog,
        living=living,
        backlog_per_worker=round(backlog / max(1, living), 3),
        workers=tuple(_worker_stat(worker, seen, settings) for worker in workers),
        parked_abilities=tuple(map(_parked_ability, parked)),
        pauses=pauses,
        task_names=_task_names(seen),
        totals=_totals(seen.stats),
        upkeep=_upkeep(seen),
        bytes=sizes,
        steps=seen.steps,
    )


def _workers(keys: QueueKeys, names: tuple[str, ...]) -> Flow[tuple[WorkerInfo, ...]]:
    """Read any number of workers, a chunk at a time."""
    workers: list[WorkerInfo] = []
    for start in range(0, len(names), CHUNK):
        some = names[start : start + CHUNK]
        workers += yield from ask(listing_calls.describe_workers(keys, some))
    return tuple(workers)


def _worker_stat(
    worker: WorkerInfo, seen: Counts, settings: QueueSettings
) -> WorkerStat:
    described = worker.description
    left = seen.leases[worker.name] - seen.now_ms
    lease_ms = number(described.get("lease_ms", settings.lease_ms)) or 0
    return WorkerStat(
        name=worker.name,
        is_alive=left > 0,
        waiting=worker.waiting,
        running=worker.running,
        stolen=seen.stats.get(f"stolen:{worker.name}", 0),
        lease_age_ms=max(0, lease_ms - left),
        lease_left_ms=left,
        host=shown(described.get("host", "")),
        pid=number(described.get("pid")) or 0,
        since_ms=number(described.get("since")) or 0,
    )


def _living(keys: QueueKeys, seen: Counts) -> Flow[int]:
    """Count the workers that live; with one command if only workers have leases."""
    if (yield from ask(listing_calls.count_members(keys))) == len(seen.leases):
        return sum(end > seen.now_ms for end in seen.leases.values())
    return (yield from ask(listing_calls.count_living(keys, seen.now_ms)))


def _is_known(seen: Counts) -> bool:
    traces = (seen.stats, seen.upkeep, seen.leases, seen.abilities, seen.tasks)
    return any(traces) or seen.outcomes > 0 or seen.input_ended or bool(seen.pauses)


def _oldest(keys: QueueKeys, seen: Counts) -> Flow[int | None]:
    """Read the fronts of inboxes and lines; only returned tasks are out of order."""
    ids: list[str] = []
    for inbox, length in zip(keys.inboxes, seen.inbox, strict=True):
        if length:
            ids += yield from ask(listing_calls.first_of(inbox, most=_FRONT))
    if seen.in_lines:
        ids += yield from ask(listing_calls.line_fronts(keys, most=_LINES))
    tasks = yield from summaries(keys, ids, most=_PREVIEW_BYTES)
    times = map(_waits_since, tasks)
    return min((at_ms for at_ms in times if at_ms), default=None)


def _waits_since(task: TaskSummary) -> int:
    """Return since when a task waits; 0 if nobody knows."""
    envelope = preview_envelope(task.envelope)
    return task.since_ms or number(envelope.due or envelope.at) or 0


def _parked(keys: QueueKeys) -> Flow[tuple[ParkedAbility, ...]]:
    abilities = yield from ask(
        listing_calls.parked_abilities(keys, most=MOST_ABILITIES)
    )
    if not abilities:
        return ()
    found = yield from ask(listing_calls.count_parked(keys, abilities))
    return tuple(parked for parked in found if parked.tasks)


def _pauses(keys: QueueKeys, seen: Counts) -> Flow[tuple[PauseStat, ...]]:
    since_ms, pauses = seen.pauses.queue_since_ms, seen.pauses
    found: list[PauseStat] = []
    if since_ms is not None:
        found.append(PauseStat("", since_ms, 0, pauses.reason("")))
    for name in list(pauses.tasks)[:_MOST_NAMES]:
        tasks = yield from ask(count_paused(keys, name))
        reason = f"task {name} is paused"
        found.append(PauseStat(name, pauses.tasks[name], tasks, reason))
    return tuple(found)


def _task_names(seen: Counts) -> tuple[str, ...]:
    names = sorted({ability.rpartition("@")[0] for ability in seen.abilities})
    return tuple(names[:_MOST_NAMES])


def _parked_ability(parked: ParkedAbility) -> ParkedStat:
    reason = "no worker can run it"
    if parked.workers:
        reason = "a worker can run it now; the next upkeep returns it to the inbox"
    return ParkedStat(parked.ability, parked.tasks, reason)


def _memory_use(
    keys: QueueKeys, workers: tuple[str, ...]
) -> Flow[dict[str, int] | None]:
    names = sorted(keys.shared())
    sizes = yield from ask(listing_calls.memory_usage(names))
    if None in sizes:
        return None
    used = {
        name.removeprefix(keys.prefix): size or 0
        for name, size in zip(names, sizes, strict=True)
    }
    own = [key for name in workers for key in (keys.deque(name), keys.running(name))]
    used["queues"] = 0
    for start in range(0, len(own), CHUNK):
        some = yield from ask(listing_calls.memory_usage(own[start : start + CHUNK]))
        used["queues"] += sum(size or 0 for size in some)
    return {name: size for name, size in used.items() if size}


def _totals(stats: dict[str, int]) -> QueueTotals:
    return QueueTotals(
        submitted=stats.get("submitted", 0),
        done=stats.get("done", 0),
        failed=stats.get("failed", 0),
        dead=stats.get("dead", 0),
        forged=stats.get("forged", 0),
        cancelled=stats.get("cancelled", 0),
        expired=stats.get("expired", 0),
        retried=stats.get("retry", 0),
        handed_back=stats.get("back", 0),
        reassigned=stats.get("reassigned", 0),
        stolen=stats.get("stolen", 0),
        forgotten=stats.get("forgotten", 0),
        brief=stats.get("brief", 0),
    )


def _upkeep(seen: Counts) -> UpkeepStat:
    prefix = "upkeep:"
    return UpkeepStat(
        done_at_ms={
            duty: at
            for duty, at in sorted(seen.upkeep.items())
            if duty not in _NOT_DUTIES
        },
        slices={
            name.removeprefix(prefix): slices
            for name, slices in sorted(seen.stats.items())
            if name.startswith(prefix)
        },
    )


def _follows(before: QueueStat, after: QueueStat) -> bool:
    """Return False if the queue was made anew in between, or shards went or came."""
    return (
        after.now_ms >= before.now_ms
        and after.unreachable == before.unreachable
        and after.totals.submitted >= before.totals.submitted
        and after.totals.done >= before.totals.done
    )
