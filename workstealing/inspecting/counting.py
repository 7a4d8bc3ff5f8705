"""Counts the tasks in each place, describes the workers, and sums up what was done."""

from __future__ import annotations

from workstealing.inspecting.previews import preview_envelope
from workstealing.inspecting.views import (
    ParkedStat,
    QueueStat,
    QueueTotals,
    UpkeepStat,
    WorkerStat,
)
from workstealing.queue import inspection_calls, listing_calls
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.listing_calls import CHUNK, ParkedAbility, WorkerInfo
from workstealing.queue.replies import number, shown
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Flow, ask

__all__ = ("read_stat",)

# Stored beside the times of duties without being one.
_NOT_DUTIES = ("claimed", "cursor")
_MOST_ABILITIES = 100
# The first ids of an inbox may be of cancelled tasks that were not skipped yet.
_FRONT = 5
_PREVIEW_BYTES = 512


def read_stat(
    queue: str, run: str, server: str, keys: QueueKeys, settings: QueueSettings
) -> Flow[QueueStat]:
    """Read all counts of a queue, in a handful of round trips."""
    seen = yield from ask(inspection_calls.counts(keys))
    oldest_at_ms = yield from _oldest(keys, seen)
    living = yield from ask(listing_calls.count_living(keys, seen.now_ms))
    workers = yield from _workers(keys, tuple(seen.leases))
    parked = yield from _parked(keys)
    sizes = yield from _memory_use(keys, tuple(seen.leases))
    running = min(seen.assigned, sum(worker.running for worker in workers))
    backlog = max(0, seen.unfinished - seen.delayed)
    return QueueStat(
        queue=queue,
        run=run,
        server=server,
        is_known=_is_known(seen),
        now_ms=seen.now_ms,
        input_ended=seen.input_ended,
        waiting=max(0, backlog - seen.assigned),
        inbox=seen.inbox,
        oldest_at_ms=oldest_at_ms,
        assigned=seen.assigned - running,
        running=running,
        delayed=seen.delayed,
        parked=seen.parked,
        dead=seen.dead,
        outcomes=seen.outcomes,
        unfinished=seen.unfinished,
        backlog=backlog,
        living=living,
        backlog_per_worker=round(backlog / max(1, living), 3),
        workers=tuple(_worker_stat(worker, seen, settings) for worker in workers),
        parked_abilities=tuple(map(_parked_ability, parked)),
        totals=_totals(seen.stats),
        upkeep=_upkeep(seen),
        bytes=sizes,
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


def _is_known(seen: Counts) -> bool:
    traces = (seen.stats, seen.upkeep, seen.leases, seen.abilities, seen.tasks)
    return any(traces) or seen.outcomes > 0 or seen.input_ended


def _oldest(keys: QueueKeys, seen: Counts) -> Flow[int | None]:
    """Read the front of each inbox; only returned tasks are out of order."""
    ids: list[str] = []
    for inbox, length in zip(keys.inboxes, seen.inbox, strict=True):
        if length:
            ids += yield from ask(listing_calls.first_of(inbox, most=_FRONT))
    if not ids:
        return None
    tasks = yield from ask(listing_calls.summarize(keys, ids, most=_PREVIEW_BYTES))
    times = (number(preview_envelope(one.envelope).at) for one in tasks if one.envelope)
    return min((at_ms for at_ms in times if at_ms), default=None)


def _parked(keys: QueueKeys) -> Flow[tuple[ParkedAbility, ...]]:
    abilities = yield from ask(
        listing_calls.parked_abilities(keys, most=_MOST_ABILITIES)
    )
    if not abilities:
        return ()
    found = yield from ask(listing_calls.count_parked(keys, abilities))
    return tuple(parked for parked in found if parked.tasks)


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
        retried=stats.get("retry", 0),
        handed_back=stats.get("back", 0),
        reassigned=stats.get("reassigned", 0),
        stolen=stats.get("stolen", 0),
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
