"""Lists the tasks in one place of a queue, up to a limit.

A list fetches only both ends of a long text, so envelopes and outcomes are previewed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workstealing.errors import ConfigurationError
from workstealing.inspecting.views import TaskRow
from workstealing.queue import inspection_calls, limit_calls, listing_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.listing_calls import CHUNK, TaskSummary
from workstealing.queue.pause_calls import Pauses, first_paused, read_pauses
from workstealing.queue.steps import Flow, ask
from workstealing.queue.task_output_calls import read_progress
from workstealing.tasks.context import Progress
from workstealing.tasks.outcome import State
from workstealing.tasks.previews import (
    one_line_reason,
    preview_envelope,
    preview_outcome,
)

__all__ = (
    "MOST_ABILITIES",
    "PLACES",
    "dead_letter_row",
    "ended_row",
    "has_ended",
    "last_failure",
    "latest_ended",
    "list_tasks",
    "not_begun_row",
    "notes_in_lines",
    "step_row",
    "summaries",
    "task_row",
    "waiting_row",
)

PLACES = ("inbox", "later", "running", "done", "dead", "parked", "paused", "steps")
"""The places that can be listed, besides `queues/WORKER`."""

MOST_ABILITIES = 100
"""Parked tasks are looked up for at most this many abilities."""

# Redis cannot read a part of what a hash holds: 25 tasks of 1 MB take it 12 ms. So more
# are read at once only where those before were short.
_AT_ONCE = 25
_SHORT_AT_ONCE = 100
_SHORT_BYTES = 4096
_ENDED_PAGES = 10
_PREVIEW_BYTES = 16_384
# Replaces bytes that are not UTF-8; the server knows no task by such an id.
_REPLACED = "\N{REPLACEMENT CHARACTER}"


def list_tasks(keys: QueueKeys, where: str, limit: int) -> Flow[tuple[TaskRow, ...]]:
    """List a place: the next to run first; of outcomes and dead letters, the latest."""
    if where.startswith("queues/"):
        worker = where.removeprefix("queues/").removesuffix("/inbox")
        ids = yield from ask(listing_calls.first_of(keys.deque(worker), most=limit))
        tasks = yield from summaries(keys, ids)
        place, pauses = f"queues/{worker}", (yield from ask(read_pauses(keys)))
        return tuple(not_begun_row(one, State.ASSIGNED, place, pauses) for one in tasks)
    if where not in _LISTERS:
        raise ConfigurationError(
            f"place must be one of {', '.join(PLACES)},"
            f" or queues/WORKER for the deque of a worker, got {where!r}"
        )
    found = yield from _LISTERS[where](keys, limit)
    return found


def summaries(
    keys: QueueKeys, ids: Sequence[str], *, most: int = _PREVIEW_BYTES
) -> Flow[list[TaskSummary]]:
    """Read what a list shows of each task; those that are gone are left out."""
    found: list[TaskSummary] = []
    while len(found) < len(ids):
        size = _AT_ONCE
        if found and max(one.size + len(one.outcome) for one in found) <= _SHORT_BYTES:
            size = _SHORT_AT_ONCE
        some = ids[len(found) : len(found) + size]
        found += yield from ask(listing_calls.summarize(keys, some, most=most))
    return [one for one in found if _exists(one) or _REPLACED in one.id]


def latest_ended(
    keys: QueueKeys, most: int, *, preview: int = _PREVIEW_BYTES
) -> Flow[list[TaskSummary]]:
    """Read what a list shows of the tasks that ended last, the latest first."""
    found: dict[str, TaskSummary] = {}
    after = b""
    # Ids whose outcomes were purged stay in the list, and are passed over.
    for _ in range(_ENDED_PAGES):
        size = min(CHUNK, most - len(found))
        times = keys.outcome_times
        call = listing_calls.ended(times, most=size, latest=True, after=after)
        page = yield from ask(call)
        tasks = yield from summaries(keys, [one.id for one in page], most=preview)
        found.update({one.id: one for one in tasks if has_ended(one)} | found)
        if len(found) >= most or len(page) < size:
            break
        after = page[-1].written
    return list(found.values())[:most]


def has_ended(one: TaskSummary) -> bool:
    """Tell whether a task is over, and no dead letter."""
    return bool(one.outcome) and not one.envelope


def notes_in_lines(keys: QueueKeys, most: int) -> Flow[dict[str, str]]:
    """Name some tasks in lines, and say of each what holds it back, if anything."""
    if most <= 0:
        return {}
    line_of = yield from ask(listing_calls.first_in_lines(keys, most=most))
    lines = tuple(dict.fromkeys(line_of.values()))
    if not lines:
        return {}
    limit_of = yield from ask(limit_calls.full_limits(keys, lines))
    return {
        task_id: f"held back by limit {limit_of[line]}" if limit_of[line] else ""
        for task_id, line in line_of.items()
    }


def _inbox(keys: QueueKeys, limit: int) -> Flow[tuple[TaskRow, ...]]:
    ids: list[str] = []
    for inbox in keys.inboxes:
        if len(ids) < limit:
            ids += yield from ask(listing_calls.first_of(inbox, most=limit - len(ids)))
    notes = yield from notes_in_lines(keys, limit - len(ids))
    tasks = yield from summaries(keys, [*ids, *notes])
    pauses = yield from ask(read_pauses(keys))
    # A list may still hold the id of a task that was cancelled or taken.
    return tuple(
        not_begun_row(one, State.WAITING, "inbox", pauses, notes.get(one.id, ""))
        for one in tasks
        if one.envelope and not one.worker
    )


def _later(keys: QueueKeys, limit: int) -> Flow[tuple[TaskRow, ...]]:
    due = dict((yield from ask(listing_calls.ranked(keys.later, most=limit))))
    tasks = yield from summaries(keys, tuple(due))
    return tuple(
        task_row(
            one,
            State.DELAYED,
            "later",
            at_ms=due[one.id],
            note=last_failure(one),
        )
        for one in tasks
    )


def _running(keys: QueueKeys, limit: int) -> Flow[tuple[TaskRow, ...]]:
    seen = yield from ask(inspection_calls.counts(keys))
    workers = tuple(seen.leases)
    held: list[tuple[str, str, int]] = []
    for start in range(0, len(workers), CHUNK):
        left = limit - len(held)
        if left > 0:
            some = workers[start : start + CHUNK]
            held += yield from ask(listing_calls.list_running(keys, some, most=left))
    tasks = yield from summaries(keys, [task_id for _, task_id, _ in held])
    holders = {task_id: (worker, at_ms) for worker, task_id, at_ms in held}
    told = yield from _progress_of(keys, tasks)
    return tuple(
        task_row(
            one,
            State.RUNNING,
            f"queues/{holders[one.id][0]}",
            worker=holders[one.id][0],
            at_ms=holders[one.id][1],
            progress=told.get(one.id),
        )
        for one in tasks
    )


def _progress_of(
    keys: QueueKeys, tasks: Sequence[TaskSummary]
) -> Flow[dict[str, Progress]]:
    """Read how far tasks are; those that do not say are left out."""
    told: dict[str, Progress] = {}
    for start in range(0, len(tasks), CHUNK):
        # Of a long envelope only both ends are here: it cannot be compared.
        some = [
            (one.id, one.envelope if len(one.envelope) == one.size else None)
            for one in tasks[start : start + CHUNK]
        ]
        found = yield from ask(read_progress(keys, some))
        for (task_id, _), said in zip(some, found, strict=True):
            progress = Progress.read_or_none(said)
            if progress is not None:
                told[task_id] = progress
    return told


def _done(keys: QueueKeys, limit: int) -> Flow[tuple[TaskRow, ...]]:
    return tuple(map(ended_row, (yield from latest_ended(keys, limit))))


def _dead(keys: QueueKeys, limit: int) -> Flow[tuple[TaskRow, ...]]:
    dead = dict(
        (yield from ask(listing_calls.ranked(keys.dead, most=limit, latest=True)))
    )
    tasks = yield from summaries(keys, tuple(dead))
    return tuple(dead_letter_row(one, dead[one.id]) for one in tasks)


def _parked(keys: QueueKeys, limit: int) -> Flow[tuple[TaskRow, ...]]:
    found: list[TaskRow] = []
    for ability in (
        yield from ask(listing_calls.parked_abilities(keys, most=MOST_ABILITIES))
    ):
        key, left = keys.parked_for(ability), limit - len(found)
        if left <= 0:
            break
        ranked = yield from ask(listing_calls.ranked(key, most=left))
        tasks = yield from summaries(keys, [task_id for task_id, _ in ranked])
        found += (
            waiting_row(one, State.PARKED, "parked", f"no worker could run {ability}")
            for one in tasks
            if one.envelope
        )
    return tuple(found)


def _paused(keys: QueueKeys, limit: int) -> Flow[tuple[TaskRow, ...]]:
    found: list[TaskRow] = []
    pauses = yield from ask(read_pauses(keys))
    for name in pauses.tasks:
        left = limit - len(found)
        if left <= 0:
            break
        ids = yield from ask(first_paused(keys, name, most=left))
        tasks = yield from summaries(keys, ids)
        found += (
            waiting_row(one, State.PAUSED, "paused", f"task {name} is paused")
            for one in tasks
        )
    return tuple(found)


def _steps(keys: QueueKeys, limit: int) -> Flow[tuple[TaskRow, ...]]:
    ids: dict[str, None] = {}
    cursor = "0"
    while len(ids) < limit:
        call = listing_calls.some_steps(keys, cursor, count=CHUNK)
        cursor, names = yield from ask(call)
        ids.update(dict.fromkeys(names))
        if cursor == "0":
            break
    tasks = yield from summaries(keys, tuple(ids)[:limit])
    return tuple(step_row(one) for one in tasks if one.envelope)


def step_row(one: TaskSummary) -> TaskRow:
    """Return a step of a chain or group that waits for others."""
    return waiting_row(one, State.WAITING, "steps", _what_it_waits_for(one))


def _what_it_waits_for(step: TaskSummary) -> str:
    after = preview_envelope(step.envelope).after
    if after is None:
        # Only both ends of a long envelope are read.
        return "waits for others to end"
    what = f"its group of {after.members}" if after.group else f"task {after.task}"
    return f"waits for {what}"


def not_begun_row(
    one: TaskSummary, state: State, place: str, pauses: Pauses, note: str = ""
) -> TaskRow:
    """Return a task that nobody has begun; it may be paused where it is."""
    reason = pauses.reason(preview_envelope(one.envelope).name)
    return waiting_row(one, State.PAUSED if reason else state, place, reason or note)


def waiting_row(one: TaskSummary, state: State, place: str, note: str = "") -> TaskRow:
    """Return a task that waits."""
    at_ms = preview_envelope(one.envelope).at
    return task_row(one, state, place, worker=one.worker, at_ms=at_ms, note=note)


def dead_letter_row(one: TaskSummary, at_ms: int) -> TaskRow:
    """Return a dead letter."""
    if not one.outcome:
        return task_row(one, State.DEAD, "dead", at_ms=at_ms)
    outcome = preview_outcome(one.outcome)
    return task_row(
        one,
        State(outcome.state),
        "dead",
        worker=outcome.worker,
        at_ms=at_ms,
        note=one_line_reason(outcome),
    )


def ended_row(one: TaskSummary) -> TaskRow:
    """Return a task that is over."""
    outcome = preview_outcome(one.outcome)
    return task_row(
        one,
        State(outcome.state),
        "outbox",
        worker=outcome.worker,
        at_ms=outcome.ended,
        note=one_line_reason(outcome),
    )


def last_failure(one: TaskSummary) -> str:
    """Say why a task is tried again; empty if it was submitted for later."""
    return one_line_reason(preview_outcome(one.failures[0])) if one.failures else ""


def task_row(
    one: TaskSummary,
    state: State,
    place: str,
    *,
    worker: str = "",
    at_ms: int = 0,
    note: str = "",
    progress: Progress | None = None,
) -> TaskRow:
    """Return a task as a row."""
    return TaskRow(
        id=one.id,
        task=_task_of(one),
        state=state,
        place=place,
        worker=worker,
        at_ms=at_ms,
        note=note if _exists(one) else "its id is not UTF-8",
        attempts=one.attempts,
        deaths=one.deaths,
        steals=one.steals,
        size=one.size,
        progress=progress,
    )


def _exists(one: TaskSummary) -> bool:
    return bool(one.envelope or one.outcome)


def _task_of(one: TaskSummary) -> str:
    if one.envelope:
        return preview_envelope(one.envelope).ability
    return preview_outcome(one.outcome).task if one.outcome else ""


_Lister = Callable[[QueueKeys, int], Flow[tuple[TaskRow, ...]]]
_LISTERS: dict[str, _Lister] = {
    "inbox": _inbox,
    "later": _later,
    "running": _running,
    "done": _done,
    "dead": _dead,
    "parked": _parked,
    "paused": _paused,
    "steps": _steps,
}
