"""Draws a queue as the folders that it stands for: inbox, outbox and queues.

A task that is assigned has its `.lock`, one that ended its `.done`. Of each folder only
a few are told, and how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workstealing.inspecting.heads import outcome_of
from workstealing.inspecting.listing import glances
from workstealing.inspecting.values import Node
from workstealing.inspecting.wording import counted, span
from workstealing.queue import listing, reading
from workstealing.queue.call import Flow, ask
from workstealing.queue.keys import QueueKeys
from workstealing.queue.reading import Counts
from workstealing.tasks.outcome import TaskOutcome

__all__ = ("tree",)

# Among how many of the latest outcomes those of a worker are looked for.
_OUTCOMES = 200
_FEW_BYTES = 1024
_ABILITIES = 100

Ended = list[tuple[str, TaskOutcome]]


def tree(queue: str, run: str, keys: QueueKeys, limit: int) -> Flow[Node]:
    """Draw a queue; each folder tells at most *limit* of a kind."""
    seen = yield from ask(reading.counts(keys))
    latest = yield from _latest(keys, max(limit, _OUTCOMES))
    queues, locks = yield from _queues(keys, seen, latest, limit)
    inbox = yield from _inbox(keys, seen, latest, locks, limit)
    folders = [inbox]
    for build in (_later, _parked, _dead):
        folder = yield from build(keys, seen, limit)
        folders += [folder] if folder.children else []
    folders += [_outbox(seen, latest, limit), queues]
    note = "the run, closed: no more input" if seen.is_closed else "the run"
    return Node(queue, "the queue", (Node(run, note, tuple(folders)),))


def _latest(keys: QueueKeys, most: int) -> Flow[Ended]:
    ranked = yield from ask(listing.ranked(keys.outbox, most=most, latest=True))
    ids = [task_id for task_id, _ in ranked]
    looked = yield from glances(keys, ids, most=_FEW_BYTES)
    return [(one.id, outcome_of(one.outcome)) for one in looked if one.outcome]


def _inbox(
    keys: QueueKeys,
    seen: Counts,
    latest: Ended,
    locks: Sequence[tuple[str, str]],
    limit: int,
) -> Flow[Node]:
    waiting: list[str] = []
    for inbox in keys.inboxes:
        if len(waiting) < limit:
            call = listing.first_of(inbox, most=limit - len(waiting))
            waiting += yield from ask(call)
    unassigned = max(0, seen.unfinished - seen.delayed - seen.assigned)
    files = [Node(task_id) for task_id in waiting]
    files += _more(unassigned - len(waiting), "unassigned")
    for task_id, holder in locks[:limit]:
        files += [Node(task_id), Node(f"{task_id}.lock", holder)]
    files += _more(seen.assigned - len(locks[:limit]), "with a .lock")
    for task_id, _ in latest[:limit]:
        files += [Node(task_id), Node(f"{task_id}.done")]
    files += _more(seen.outcomes - len(latest[:limit]), "with a .done")
    return Node("inbox", f"{unassigned:,} unassigned", tuple(files))


def _outbox(seen: Counts, latest: Ended, limit: int) -> Node:
    files = [_ended(*one) for one in latest[:limit]]
    files += _more(seen.outcomes - len(files))
    return Node("outbox", f"{seen.outcomes:,} ended", tuple(files))


def _queues(
    keys: QueueKeys, seen: Counts, latest: Ended, limit: int
) -> Flow[tuple[Node, list[tuple[str, str]]]]:
    """Draw the workers; return also the locks that were met on the way."""
    folders: list[Node] = []
    locks: list[tuple[str, str]] = []
    names = [*seen.leases, *_gone(seen, latest)]
    for name in names[:limit]:
        (fellow,) = yield from ask(listing.crew(keys, (name,)))
        waiting = yield from ask(listing.first_of(keys.deque(name), most=limit))
        held = yield from ask(listing.in_hand(keys, (name,), most=limit))
        running = [task_id for _, task_id, _ in held]
        looked = yield from glances(keys, [*running, *waiting], most=_FEW_BYTES)
        locks += [(o.id, f"{o.worker}#{o.token}") for o in looked if o.worker == name]
        inbox = [*map(Node, waiting), *_more(fellow.waiting - len(waiting))]
        in_hand = [*map(Node, running), *_more(fellow.running - len(running))]
        own = [(task_id, ended) for task_id, ended in latest if ended.worker == name]
        outbox = [_ended(*one) for one in own[:limit]]
        outbox += _more(len(own) - len(outbox), f"of the latest {len(latest):,}")
        children = [Node("inbox", "", tuple(inbox))]
        children += [Node("running", "", tuple(in_hand))] if in_hand else []
        children += [Node("outbox", "", tuple(outbox))]
        note = _lease(seen, name)
        folders.append(Node(name, note, tuple(children)))
    folders += _more(len(names) - limit)
    note = counted(len(seen.leases), "worker")
    return Node("queues", note, tuple(folders)), locks


def _gone(seen: Counts, latest: Ended) -> list[str]:
    """Name workers that left, but whose work is still to be seen."""
    names = dict.fromkeys(outcome.worker for _, outcome in latest if outcome.worker)
    return [name for name in names if name not in seen.leases]


def _lease(seen: Counts, worker: str) -> str:
    if worker not in seen.leases:
        return "left"
    left = seen.leases[worker] - seen.now_ms
    return f"lease holds for {span(left)}" if left > 0 else f"dead for {span(-left)}"


def _later(keys: QueueKeys, seen: Counts, limit: int) -> Flow[Node]:
    due = yield from ask(listing.ranked(keys.later, most=limit))
    files = [
        Node(task_id, f"due in {span(max(0, at_ms - seen.now_ms))}")
        for task_id, at_ms in due
    ]
    files += _more(seen.delayed - len(due))
    return Node("later", f"{seen.delayed:,} delayed", tuple(files))


def _dead(keys: QueueKeys, seen: Counts, limit: int) -> Flow[Node]:
    dead = yield from ask(listing.ranked(keys.dead, most=limit, latest=True))
    files = [Node(task_id) for task_id, _ in dead]
    files += _more(seen.dead - len(dead))
    return Node("dead", counted(seen.dead, "dead letter"), tuple(files))


def _parked(keys: QueueKeys, seen: Counts, limit: int) -> Flow[Node]:
    abilities = yield from ask(listing.abilities_waited_for(keys, most=_ABILITIES))
    folders: list[Node] = []
    if abilities:
        counts = yield from ask(listing.waited_for(keys, abilities[:limit]))
        for parking in counts:
            key = keys.parked_for(parking.ability)
            ids = yield from ask(listing.first_of(key, most=limit))
            files = [*map(Node, ids), *_more(parking.tasks - len(ids))]
            folders += [Node(parking.ability, "", tuple(files))] if files else []
        folders += _more(len(abilities) - limit)
    return Node("parked", f"{seen.parked:,} parked", tuple(folders))


def _ended(task_id: str, outcome: TaskOutcome) -> Node:
    return Node(task_id, "" if outcome.state == "done" else outcome.state)


def _more(number: int, what: str = "") -> Iterable[Node]:
    return [Node(f"… {number:,} more {what}".rstrip())] if number > 0 else []
