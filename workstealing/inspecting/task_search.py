"""Finds tasks by state, name, worker, error, id and age, a page at a time.

No page looks at more than 500 tasks: with a filter that few match, a page may be short
or empty and still be followed by another. A page goes on behind the last task of the
one before, wherever that task stands by then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from workstealing.errors import ConfigurationError
from workstealing.inspecting.container_walk import (
    CONTAINERS,
    HeldMember,
    TaskContainer,
    begin_walk,
    read_place,
)
from workstealing.inspecting.listing import (
    dead_letter_row,
    ended_row,
    has_ended,
    last_failure,
    not_begun_row,
    step_row,
    summaries,
    task_row,
    waiting_row,
)
from workstealing.inspecting.tracebacks import where_raised
from workstealing.inspecting.views import TaskRow
from workstealing.queue import limit_calls, listing_calls
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.listing_calls import TaskSummary
from workstealing.queue.pause_calls import Pauses
from workstealing.queue.steps import Flow, ask
from workstealing.tasks.outcome import ErrorReport, State
from workstealing.tasks.previews import preview_outcome

__all__ = (
    "LOOKED_AT",
    "SEARCHED",
    "TaskFilter",
    "TaskPage",
    "count_state",
    "group_of",
    "search_tasks",
)

SEARCHED = (
    "waiting",
    "assigned",
    "running",
    "delayed",
    "parked",
    "paused",
    "steps",
    "done",
    "dead",
)
"""The states that can be searched; `done` is all that ended well or was cancelled.

`steps` are those of chains and groups that wait for others to end, in no order.
"""

LOOKED_AT = 500
_STRETCH = 250
_RUNNING = 1000


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks are wanted; an empty field does not matter."""

    state: str = "waiting"
    task: str = ""
    """A name, or `name@version`."""
    worker: str = ""
    error: str = ""
    """A part of the reason, in capitals or not."""
    id: str = ""
    """What the id begins with."""
    older_ms: int = 0
    """Submitted, begun, ended or given up so long ago."""
    group: str = ""
    """Errors of one kind that were raised at one line, as `group_of` names them."""

    @property
    def is_any(self) -> bool:
        """Whether all tasks of the state are wanted."""
        given = (self.task, self.worker, self.error, self.id, self.group)
        return not any(given) and not self.older_ms

    def has(self, row: TaskRow, one: TaskSummary, now_ms: int) -> bool:
        """Return whether a task is wanted."""
        name = row.task.rpartition("@")[0]
        return (
            (not self.task or self.task in (row.task, name))
            and (not self.worker or self.worker == row.worker)
            and (not self.error or self.error.lower() in row.note.lower())
            and row.id.startswith(self.id)
            and (not self.older_ms or 0 < row.at_ms <= now_ms - self.older_ms)
            and (not self.group or self.group == group_of(_error_of(one)))
        )


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some of the tasks that match."""

    rows: tuple[TaskRow, ...]
    total: int
    """Tasks in that state, whether they match or not."""
    looked_at: int
    after: str
    """Where the next page begins; empty if this is the last one."""


def search_tasks(
    keys: QueueKeys, seen: Counts, wanted: TaskFilter, after: str, limit: int
) -> Flow[TaskPage]:
    """Find tasks behind a place, which the page before has named."""
    if wanted.state not in SEARCHED:
        raise ConfigurationError(
            f"state must be one of {', '.join(SEARCHED)}, got {wanted.state!r}"
        )
    total = count_state(wanted.state, seen)
    if wanted.state == "running":
        page = yield from _running(keys, wanted, seen, after, limit)
        return page
    if wanted.state == "steps":
        page = yield from _steps(keys, wanted, seen, after, limit)
        return page
    containers = yield from _containers(keys, wanted, seen)
    walk = yield from begin_walk(containers, after)
    rows: list[TaskRow] = []
    looked_at = 0
    while True:
        most = min(_STRETCH, LOOKED_AT - looked_at)
        if wanted.is_any:
            most = min(most, limit - len(rows))
        stretch = yield from walk.members(most)
        found = yield from _rows(keys, wanted.state, stretch, seen)
        for n, pair in enumerate(found):
            looked_at += 1
            if pair is not None and wanted.has(*pair, seen.now_ms):
                rows.append(pair[0])
            if len(rows) == limit:
                is_last = n == len(found) - 1 and walk.is_over
                after = "" if is_last else stretch[n].place
                return TaskPage(tuple(rows), total, looked_at, after)
        if len(stretch) < most or looked_at >= LOOKED_AT:
            return TaskPage(tuple(rows), total, looked_at, walk.place)


def group_of(error: ErrorReport | None) -> str:
    """Name the errors of one class that were raised at one line."""
    if error is None:
        return ""
    text = f"{error.type}\n{where_raised(error.traceback)}"
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


def _error_of(one: TaskSummary) -> ErrorReport | None:
    if one.outcome:
        return preview_outcome(one.outcome).error
    return preview_outcome(one.failures[0]).error if one.failures else None


def count_state(state: str, seen: Counts) -> int:
    """Return how many tasks are in a state."""
    running = seen.assigned
    not_now = seen.delayed + seen.paused
    totals = {
        "waiting": max(0, seen.unfinished - not_now - seen.assigned),
        "assigned": sum(seen.loads.values()),
        "running": max(0, running - sum(seen.loads.values())),
        "delayed": seen.delayed,
        "parked": seen.parked,
        "paused": seen.paused,
        "steps": seen.steps,
        "done": seen.outcomes,
        "dead": seen.dead,
    }
    return totals[state]


def _containers(
    keys: QueueKeys, wanted: TaskFilter, seen: Counts
) -> Flow[list[TaskContainer]]:
    state = wanted.state
    if state == "delayed":
        return [TaskContainer("later", keys.later, "rising")]
    if state == "dead":
        return [TaskContainer("dead", keys.dead, "falling")]
    if state == "done":
        return [TaskContainer("ended", keys.outcome_times, "ended")]
    if state == "paused":
        return [TaskContainer("aside", keys.aside, "rising")]
    if state == "assigned":
        return [
            TaskContainer(worker, keys.deque(worker), "list")
            for worker in sorted(seen.leases)
            if seen.loads.get(worker) and wanted.worker in ("", worker)
        ]
    if state == "parked":
        call = listing_calls.parked_abilities(keys, most=CONTAINERS)
        abilities = yield from ask(call)
        return [
            TaskContainer(ability, keys.parked_for(ability), "rising")
            for ability in sorted(abilities)
        ]
    inboxes = [
        TaskContainer(f"inbox:{n}", key, "list") for n, key in enumerate(keys.inboxes)
    ]
    return [*inboxes, TaskContainer("lines", keys.lines, "rising")]


def _rows(
    keys: QueueKeys, state: str, members: Sequence[HeldMember], seen: Counts
) -> Flow[list[tuple[TaskRow, TaskSummary] | None]]:
    """Read one row for each member; None for one that is there in name only."""
    tasks = yield from summaries(keys, [member.id for member in members])
    found = {one.id: one for one in tasks}
    in_lines = [member.name for member in members if member.container == "lines"]
    notes: dict[str, str] = {}
    if in_lines:
        notes = yield from _line_notes(keys, in_lines)
    rows: list[tuple[TaskRow, TaskSummary] | None] = []
    for member in members:
        one, note = found.get(member.id), notes.get(member.id, "")
        row = _row_of(one, state, member, seen.pauses, note) if one else None
        rows.append((row, one) if one and row else None)
    return rows


def _line_notes(keys: QueueKeys, members: Sequence[str]) -> Flow[dict[str, str]]:
    lines = {
        member.split("\0")[-1]: member.split("\0")[0].encode() for member in members
    }
    call = limit_calls.full_limits(keys, tuple(dict.fromkeys(lines.values())))
    limit_of = yield from ask(call)
    return {
        task_id: f"held back by limit {limit_of[line]}"
        for task_id, line in lines.items()
        if limit_of.get(line)
    }


def _row_of(
    one: TaskSummary, state: str, member: HeldMember, pauses: Pauses, note: str
) -> TaskRow | None:
    if state == "dead":
        return dead_letter_row(one, member.ms)
    if state == "done":
        return ended_row(one) if has_ended(one) else None
    if state == "delayed":
        note = last_failure(one)
        return task_row(one, State.DELAYED, "later", at_ms=member.ms, note=note)
    if not one.envelope:
        return None
    if state == "parked":
        reason = f"no worker could run {member.container}"
        return waiting_row(one, State.PARKED, "parked", reason)
    if state == "paused":
        return not_begun_row(one, State.PAUSED, "paused", pauses, "it is being resumed")
    if state == "assigned":
        return not_begun_row(one, State.ASSIGNED, f"queues/{member.container}", pauses)
    if one.worker:
        return None
    return not_begun_row(one, State.WAITING, "inbox", pauses, note or last_failure(one))


def _running(
    keys: QueueKeys, wanted: TaskFilter, seen: Counts, after: str, limit: int
) -> Flow[TaskPage]:
    """List what runs, of some workers at a time, the longest running first."""
    behind, place, member = read_place(after)
    names = (wanted.worker,) if wanted.worker else tuple(sorted(seen.leases))
    left = [name for name in names if name > behind and name in seen.leases]
    workers = left[:CONTAINERS]
    if not workers:
        return TaskPage((), count_state("running", seen), 0, "")
    held = list(
        (yield from ask(listing_calls.list_running(keys, workers, most=_RUNNING)))
    )
    held.sort(key=lambda one: (one[2], one[1]))
    if member:
        held = [one for one in held if (one[2], one[1]) > (place, member)]
    following = json.dumps([workers[-1], 0, ""]) if len(left) > len(workers) else ""
    total = max(len(held), count_state("running", seen))
    rows: list[TaskRow] = []
    for start in range(0, min(len(held), LOOKED_AT), _STRETCH):
        some_held = held[start : start + _STRETCH]
        found = yield from summaries(keys, [task_id for _, task_id, _ in some_held])
        by_id = {one.id: one for one in found}
        for n, (worker, task_id, at_ms) in enumerate(some_held, start + 1):
            one = by_id.get(task_id)
            if one is None:
                continue
            row = task_row(
                one,
                State.RUNNING,
                f"queues/{worker}",
                worker=worker,
                at_ms=at_ms,
                note=last_failure(one),
            )
            if wanted.has(row, one, seen.now_ms):
                rows.append(row)
            if n < len(held) and (len(rows) == limit or n == LOOKED_AT):
                here = json.dumps([behind, at_ms, task_id])
                return TaskPage(tuple(rows), total, n, here)
    return TaskPage(tuple(rows), total, len(held), following)


def _steps(
    keys: QueueKeys, wanted: TaskFilter, seen: Counts, after: str, limit: int
) -> Flow[TaskPage]:
    """List steps that wait for others; a hash has no order, so a page may be longer."""
    _, _, cursor = read_place(after)
    rows: list[TaskRow] = []
    looked_at = 0
    cursor = cursor or "0"
    while True:
        # What a scan has named must be shown: it cannot be gone back to.
        count = min(_STRETCH, limit) if wanted.is_any else _STRETCH
        cursor, ids = yield from ask(
            listing_calls.some_steps(keys, cursor, count=count)
        )
        for one in (yield from summaries(keys, ids)):
            looked_at += 1
            row = step_row(one) if one.envelope else None
            if row is not None and wanted.has(row, one, seen.now_ms):
                rows.append(row)
        is_enough = len(rows) >= limit or looked_at >= LOOKED_AT
        if cursor == "0" or is_enough:
            after = "" if cursor == "0" else json.dumps(["steps", 0, cursor])
            return TaskPage(tuple(rows), seen.steps, looked_at, after)
