"""Counts what is where, who is at it, and what was done: one flow for `stat`."""

from __future__ import annotations

from workstealing.inspecting.heads import heading_of
from workstealing.inspecting.values import (
    ParkedStat,
    Stat,
    Totals,
    Upkeep,
    WorkerStat,
)
from workstealing.queue import listing, reading
from workstealing.queue.call import Flow, ask
from workstealing.queue.keys import QueueKeys
from workstealing.queue.listing import CHUNK, Fellow, Parking
from workstealing.queue.reading import Counts
from workstealing.queue.replies import number, shown
from workstealing.queue.settings import QueueSettings

__all__ = ("count",)

# Kept beside the times of duties, and none themselves.
_NO_DUTIES = ("claimed", "cursor")
_PARKINGS = 100
# The first ones of an inbox may be cancelled ones that nobody passed over yet.
_FRONT = 5
_BEGINNING_BYTES = 512


def count(
    queue: str, run: str, server: str, keys: QueueKeys, settings: QueueSettings
) -> Flow[Stat]:
    """Look at all of a queue, in a handful of round trips."""
    seen = yield from ask(reading.counts(keys))
    oldest_at_ms = yield from _oldest(keys, seen)
    living = yield from ask(listing.living(keys, seen.now_ms))
    crew = yield from _crew_of(keys, tuple(seen.leases))
    parkings = yield from _parkings(keys)
    sizes = yield from _weigh(keys, tuple(seen.leases))
    running = min(seen.assigned, sum(fellow.running for fellow in crew))
    backlog = max(0, seen.unfinished - seen.delayed)
    return Stat(
        queue=queue,
        run=run,
        server=server,
        is_known=_is_known(seen),
        now_ms=seen.now_ms,
        is_closed=seen.is_closed,
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
        workers=tuple(_worker_stat(fellow, seen, settings) for fellow in crew),
        parkings=tuple(map(_parked_stat, parkings)),
        totals=_totals(seen.stats),
        upkeep=_upkeep(seen),
        bytes=sizes,
    )


def _crew_of(keys: QueueKeys, workers: tuple[str, ...]) -> Flow[tuple[Fellow, ...]]:
    """Ask about any number of workers, some at a time."""
    crew: list[Fellow] = []
    for start in range(0, len(workers), CHUNK):
        crew += yield from ask(listing.crew(keys, workers[start : start + CHUNK]))
    return tuple(crew)


def _worker_stat(fellow: Fellow, seen: Counts, settings: QueueSettings) -> WorkerStat:
    """Join what is known of a worker."""
    told = fellow.description
    left = seen.leases[fellow.name] - seen.now_ms
    lease_ms = number(told.get("lease_ms", settings.lease_ms)) or 0
    return WorkerStat(
        name=fellow.name,
        is_alive=left > 0,
        waiting=fellow.waiting,
        running=fellow.running,
        stolen=seen.stats.get(f"stolen:{fellow.name}", 0),
        lease_age_ms=max(0, lease_ms - left),
        lease_left_ms=left,
        host=shown(told.get("host", "")),
        pid=number(told.get("pid")) or 0,
        since_ms=number(told.get("since")) or 0,
    )


def _is_known(seen: Counts) -> bool:
    left = (seen.stats, seen.upkeep, seen.leases, seen.abilities, seen.tasks)
    return any(left) or seen.outcomes > 0 or seen.is_closed


def _oldest(keys: QueueKeys, seen: Counts) -> Flow[int | None]:
    """Look at the front of each inbox; each is in order, but for what came back."""
    ids: list[str] = []
    for inbox, length in zip(keys.inboxes, seen.inbox, strict=True):
        if length:
            ids += yield from ask(listing.first_of(inbox, most=_FRONT))
    if not ids:
        return None
    looked = yield from ask(listing.glance(keys, ids, most=_BEGINNING_BYTES))
    told = (number(heading_of(one.envelope).at) for one in looked if one.envelope)
    return min((at_ms for at_ms in told if at_ms), default=None)


def _parkings(keys: QueueKeys) -> Flow[tuple[Parking, ...]]:
    abilities = yield from ask(listing.abilities_waited_for(keys, most=_PARKINGS))
    if not abilities:
        return ()
    parkings = yield from ask(listing.waited_for(keys, abilities))
    return tuple(parking for parking in parkings if parking.tasks)


def _parked_stat(parking: Parking) -> ParkedStat:
    reason = "no worker can run it"
    if parking.workers:
        reason = "a worker can run it now; the next upkeep gives it back"
    return ParkedStat(parking.ability, parking.tasks, reason)


def _weigh(keys: QueueKeys, workers: tuple[str, ...]) -> Flow[dict[str, int] | None]:
    names = sorted(
        name
        for value in vars(keys).values()
        for name in ((value,) if isinstance(value, str) else value)
        if name != keys.prefix
    )
    sizes = yield from ask(listing.weigh(names))
    if None in sizes:
        return None
    weighed = {
        name.removeprefix(keys.prefix): size or 0
        for name, size in zip(names, sizes, strict=True)
    }
    own = [key for name in workers for key in (keys.deque(name), keys.running(name))]
    weighed["queues"] = 0
    for start in range(0, len(own), CHUNK):
        some = yield from ask(listing.weigh(own[start : start + CHUNK]))
        weighed["queues"] += sum(size or 0 for size in some)
    return {name: size for name, size in weighed.items() if size}


def _totals(stats: dict[str, int]) -> Totals:
    return Totals(
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


def _upkeep(seen: Counts) -> Upkeep:
    prefix = "upkeep:"
    return Upkeep(
        done_at_ms={
            duty: at
            for duty, at in sorted(seen.upkeep.items())
            if duty not in _NO_DUTIES
        },
        slices={
            name.removeprefix(prefix): slices
            for name, slices in sorted(seen.stats.items())
            if name.startswith(prefix)
        },
    )
