"""Returns a queue as a tree of folders: inbox, outbox and queues.

Tasks that a worker has are shown with their `.lock`, and ended ones with their `.done`.
Each folder shows a few tasks, and how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workstealing.inspecting.formatting import duration_ms, plural
from workstealing.inspecting.listing import (
    MOST_ABILITIES,
    latest_ended,
    notes_in_lines,
    summaries,
)
from workstealing.inspecting.views import TreeNode
from workstealing.queue import inspection_calls, listing_calls
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.pause_calls import count_paused, first_paused
from workstealing.queue.steps import Flow, ask
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.previews import preview_outcome

__all__ = ("read_tree",)

# The outbox of a worker shows its tasks among this many of the latest outcomes.
_OUTCOMES = 200
_PREVIEW_BYTES = 1024

EndedTasks = list[tuple[str, TaskOutcome]]


def read_tree(queue: str, run: str, keys: QueueKeys, limit: int) -> Flow[TreeNode]:
    """Return the tree; each folder shows at most *limit* tasks of a kind."""
    seen = yield from ask(inspection_calls.counts(keys))
    latest = yield from _latest(keys, max(limit, _OUTCOMES))
    queues, locks = yield from _queues(keys, seen, latest, limit)
    inbox = yield from _inbox(keys, seen, latest, locks, limit)
    folders = [inbox]
    for build in (_later, _parked, _paused, _dead):
        folder = yield from build(keys, seen, limit)
        folders += [folder] if folder.children else []
    folders += [_outbox(seen, latest, limit), queues]
    notes = ["the run", *(["its input has ended"] if seen.input_ended else [])]
    note = "; ".join([*notes, *seen.pauses.sentences()])
    return TreeNode(queue, "the queue", (TreeNode(run, note, tuple(folders)),))


def _latest(keys: QueueKeys, most: int) -> Flow[EndedTasks]:
    tasks = yield from latest_ended(keys, most, preview=_PREVIEW_BYTES)
    return [(one.id, preview_outcome(one.outcome)) for one in tasks]


def _inbox(
    keys: QueueKeys,
    seen: Counts,
    latest: EndedTasks,
    locks: Sequence[tuple[str, str]],
    limit: int,
) -> Flow[TreeNode]:
    waiting: list[str] = []
    for inbox in keys.inboxes:
        if len(waiting) < limit:
            call = listing_calls.first_of(inbox, most=limit - len(waiting))
            waiting += yield from ask(call)
    notes: dict[str, str] = {}
    if seen.in_lines:
        notes = yield from notes_in_lines(keys, limit - len(waiting))
    unassigned = max(0, seen.unfinished - seen.delayed - seen.assigned - seen.paused)
    files = [TreeNode(task_id) for task_id in waiting]
    files += [TreeNode(task_id, note) for task_id, note in notes.items()]
    files += _more(unassigned - len(files), "unassigned")
    for task_id, holder in locks[:limit]:
        files += [TreeNode(task_id), TreeNode(f"{task_id}.lock", holder)]
    files += _more(seen.assigned - len(locks[:limit]), "with a .lock")
    for task_id, _ in latest[:limit]:
        files += [TreeNode(task_id), TreeNode(f"{task_id}.done")]
    files += _more(seen.outcomes - len(latest[:limit]), "with a .done")
    held = f", {seen.held_back:,} of them held back" if seen.held_back else ""
    return TreeNode("inbox", f"{unassigned:,} unassigned{held}", tuple(files))


def _outbox(seen: Counts, latest: EndedTasks, limit: int) -> TreeNode:
    files = [_ended(*one) for one in latest[:limit]]
    files += _more(seen.outcomes - len(files))
    return TreeNode("outbox", f"{seen.outcomes:,} ended", tuple(files))


def _queues(
    keys: QueueKeys, seen: Counts, latest: EndedTasks, limit: int
) -> Flow[tuple[TreeNode, list[tuple[str, str]]]]:
    """Return the folder of each worker, and the locks found on the way."""
    folders: list[TreeNode] = []
    locks: list[tuple[str, str]] = []
    names = [*seen.leases, *_gone(seen, latest)]
    for name in names[:limit]:
        (worker,) = yield from ask(listing_calls.describe_workers(keys, (name,)))
        waiting = yield from ask(listing_calls.first_of(keys.deque(name), most=limit))
        held = yield from ask(listing_calls.list_running(keys, (name,), most=limit))
        running = [task_id for _, task_id, _ in held]
        tasks = yield from summaries(keys, [*running, *waiting], most=_PREVIEW_BYTES)
        locks += [(o.id, f"{o.worker}#{o.token}") for o in tasks if o.worker == name]
        inbox = [*map(TreeNode, waiting), *_more(worker.waiting - len(waiting))]
        picked_up = [*map(TreeNode, running), *_more(worker.running - len(running))]
        own = [(task_id, ended) for task_id, ended in latest if ended.worker == name]
        outbox = [_ended(*one) for one in own[:limit]]
        outbox += _more(len(own) - len(outbox), f"of the latest {len(latest):,}")
        children = [TreeNode("inbox", "", tuple(inbox))]
        children += [TreeNode("running", "", tuple(picked_up))] if picked_up else []
        children += [TreeNode("outbox", "", tuple(outbox))]
        note = _lease(seen, name)
        folders.append(TreeNode(name, note, tuple(children)))
    folders += _more(len(names) - limit)
    note = plural(len(seen.leases), "worker")
    return TreeNode("queues", note, tuple(folders)), locks


def _gone(seen: Counts, latest: EndedTasks) -> list[str]:
    """Name workers that have left, but whose outcomes are still kept."""
    names = dict.fromkeys(outcome.worker for _, outcome in latest if outcome.worker)
    return [name for name in names if name not in seen.leases]


def _lease(seen: Counts, worker: str) -> str:
    if worker not in seen.leases:
        return "left"
    left = seen.leases[worker] - seen.now_ms
    if left <= 0:
        return f"dead for {duration_ms(-left)}"
    return f"lease valid for {duration_ms(left)}"


def _later(keys: QueueKeys, seen: Counts, limit: int) -> Flow[TreeNode]:
    due = yield from ask(listing_calls.ranked(keys.later, most=limit))
    files = [
        TreeNode(task_id, f"due in {duration_ms(max(0, at_ms - seen.now_ms))}")
        for task_id, at_ms in due
    ]
    files += _more(seen.delayed - len(due))
    return TreeNode("later", f"{seen.delayed:,} delayed", tuple(files))


def _dead(keys: QueueKeys, seen: Counts, limit: int) -> Flow[TreeNode]:
    dead = yield from ask(listing_calls.ranked(keys.dead, most=limit, latest=True))
    files = [TreeNode(task_id) for task_id, _ in dead]
    files += _more(seen.dead - len(dead))
    return TreeNode("dead", plural(seen.dead, "dead letter"), tuple(files))


def _parked(keys: QueueKeys, seen: Counts, limit: int) -> Flow[TreeNode]:
    abilities = yield from ask(
        listing_calls.parked_abilities(keys, most=MOST_ABILITIES)
    )
    folders: list[TreeNode] = []
    if abilities:
        counts = yield from ask(listing_calls.count_parked(keys, abilities[:limit]))
        for parking in counts:
            key = keys.parked_for(parking.ability)
            ranked = yield from ask(listing_calls.ranked(key, most=limit))
            files = [TreeNode(task_id) for task_id, _ in ranked]
            files += _more(parking.tasks - len(ranked))
            folders += [TreeNode(parking.ability, "", tuple(files))] if files else []
        folders += _more(len(abilities) - limit)
    return TreeNode("parked", f"{seen.parked:,} parked", tuple(folders))


def _paused(keys: QueueKeys, seen: Counts, limit: int) -> Flow[TreeNode]:
    folders: list[TreeNode] = []
    for name in list(seen.pauses.tasks)[:limit]:
        tasks = yield from ask(count_paused(keys, name))
        ids = yield from ask(first_paused(keys, name, most=limit))
        files = [*map(TreeNode, ids), *_more(tasks - len(ids))]
        folders.append(TreeNode(name, f"{tasks:,} put aside", tuple(files)))
    folders += _more(len(seen.pauses.tasks) - limit)
    return TreeNode("paused", f"{seen.paused:,} paused", tuple(folders))


def _ended(task_id: str, outcome: TaskOutcome) -> TreeNode:
    return TreeNode(task_id, "" if outcome.state == "done" else outcome.state)


def _more(number: int, what: str = "") -> Iterable[TreeNode]:
    return [TreeNode(f"… {number:,} more {what}".rstrip())] if number > 0 else []
