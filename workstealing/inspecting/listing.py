"""Lists the tasks of one place of a queue, at most as many as were asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workstealing.errors import ConfigurationError
from workstealing.inspecting.heads import heading_of, outcome_of, reason_of
from workstealing.inspecting.values import Entry
from workstealing.queue import listing, reading
from workstealing.queue.call import Flow, ask
from workstealing.queue.keys import QueueKeys
from workstealing.queue.listing import CHUNK, Glance
from workstealing.tasks.outcome import State

__all__ = ("PLACES", "entries", "glances")

PLACES = ("inbox", "later", "running", "done", "dead", "parked")
"""What can be listed, besides `queues/WORKER`."""

_ENOUGH_BYTES = 16_384
_ABILITIES = 100
# Stands in a name for what is not UTF-8; nothing is found under such a name.
_REPLACED = "\N{REPLACEMENT CHARACTER}"


def entries(keys: QueueKeys, where: str, limit: int) -> Flow[tuple[Entry, ...]]:
    """List a place: the next ones first, of outcomes and dead letters the latest."""
    if where.startswith("queues/"):
        worker = where.removeprefix("queues/").removesuffix("/inbox")
        ids = yield from ask(listing.first_of(keys.deque(worker), most=limit))
        looked = yield from glances(keys, ids)
        place = f"queues/{worker}"
        return tuple(_waiting(one, State.ASSIGNED, place) for one in looked)
    if where not in _LISTERS:
        raise ConfigurationError(
            f"there is no place {where!r}: choose {', '.join(PLACES)},"
            " or queues/WORKER for the deque of a worker"
        )
    found = yield from _LISTERS[where](keys, limit)
    return found


def glances(
    keys: QueueKeys, ids: Sequence[str], *, most: int = _ENOUGH_BYTES
) -> Flow[list[Glance]]:
    """Look at tasks, some at a time; those that are gone altogether are left out."""
    looked: list[Glance] = []
    for start in range(0, len(ids), CHUNK):
        call = listing.glance(keys, ids[start : start + CHUNK], most=most)
        looked += yield from ask(call)
    return [one for one in looked if _is_there(one) or _REPLACED in one.id]


def _inbox(keys: QueueKeys, limit: int) -> Flow[tuple[Entry, ...]]:
    ids: list[str] = []
    for inbox in keys.inboxes:
        if len(ids) < limit:
            ids += yield from ask(listing.first_of(inbox, most=limit - len(ids)))
    looked = yield from glances(keys, ids)
    # An id may still stand in a list after its task was cancelled, or taken.
    return tuple(
        _waiting(one, State.WAITING, "inbox")
        for one in looked
        if one.envelope and not one.worker
    )


def _later(keys: QueueKeys, limit: int) -> Flow[tuple[Entry, ...]]:
    due = dict((yield from ask(listing.ranked(keys.later, most=limit))))
    looked = yield from glances(keys, tuple(due))
    return tuple(
        _entry(one, State.DELAYED, "later", at_ms=due[one.id]) for one in looked
    )


def _running(keys: QueueKeys, limit: int) -> Flow[tuple[Entry, ...]]:
    seen = yield from ask(reading.counts(keys))
    workers = tuple(seen.leases)
    held: list[tuple[str, str, int]] = []
    for start in range(0, len(workers), CHUNK):
        left = limit - len(held)
        if left > 0:
            some = workers[start : start + CHUNK]
            held += yield from ask(listing.in_hand(keys, some, most=left))
    looked = yield from glances(keys, [task_id for _, task_id, _ in held])
    begun = {task_id: (worker, at_ms) for worker, task_id, at_ms in held}
    return tuple(
        _entry(
            one,
            State.RUNNING,
            f"queues/{begun[one.id][0]}",
            worker=begun[one.id][0],
            at_ms=begun[one.id][1],
        )
        for one in looked
    )


def _done(keys: QueueKeys, limit: int) -> Flow[tuple[Entry, ...]]:
    ended = yield from ask(listing.ranked(keys.outbox, most=limit, latest=True))
    looked = yield from glances(keys, [task_id for task_id, _ in ended])
    return tuple(_ended(one) for one in looked if one.outcome)


def _dead(keys: QueueKeys, limit: int) -> Flow[tuple[Entry, ...]]:
    dead = dict((yield from ask(listing.ranked(keys.dead, most=limit, latest=True))))
    looked = yield from glances(keys, tuple(dead))
    return tuple(
        _entry(
            one,
            State.DEAD,
            "dead",
            worker=outcome_of(one.outcome).worker if one.outcome else "",
            at_ms=dead[one.id],
            note=reason_of(outcome_of(one.outcome)) if one.outcome else "",
        )
        for one in looked
    )


def _parked(keys: QueueKeys, limit: int) -> Flow[tuple[Entry, ...]]:
    found: list[Entry] = []
    for ability in (
        yield from ask(listing.abilities_waited_for(keys, most=_ABILITIES))
    ):
        key, left = keys.parked_for(ability), limit - len(found)
        if left <= 0:
            break
        ids = yield from ask(listing.first_of(key, most=left))
        looked = yield from glances(keys, ids)
        found += (
            _waiting(one, State.PARKED, "parked", f"no worker could run {ability}")
            for one in looked
            if one.envelope
        )
    return tuple(found)


def _waiting(one: Glance, state: State, place: str, note: str = "") -> Entry:
    at_ms = heading_of(one.envelope).at
    return _entry(one, state, place, worker=one.worker, at_ms=at_ms, note=note)


def _ended(one: Glance) -> Entry:
    outcome = outcome_of(one.outcome)
    return _entry(
        one,
        State(outcome.state),
        "outbox",
        worker=outcome.worker,
        at_ms=outcome.ended,
        note=reason_of(outcome),
    )


def _entry(
    one: Glance,
    state: State,
    place: str,
    *,
    worker: str = "",
    at_ms: int = 0,
    note: str = "",
) -> Entry:
    return Entry(
        id=one.id,
        task=_task_of(one),
        state=state,
        place=place,
        worker=worker,
        at_ms=at_ms,
        note=note if _is_there(one) else "its id is not UTF-8",
        attempts=one.attempts,
        deaths=one.deaths,
        steals=one.steals,
        size=one.size,
    )


def _is_there(one: Glance) -> bool:
    return bool(one.envelope or one.outcome)


def _task_of(one: Glance) -> str:
    if one.envelope:
        return heading_of(one.envelope).ability
    return outcome_of(one.outcome).task if one.outcome else ""


_Lister = Callable[[QueueKeys, int], Flow[tuple[Entry, ...]]]
_LISTERS: dict[str, _Lister] = {
    "inbox": _inbox,
    "later": _later,
    "running": _running,
    "done": _done,
    "dead": _dead,
    "parked": _parked,
}
