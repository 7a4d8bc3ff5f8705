"""Finds tasks by state, name, worker, error, id and age, a page at a time.

No page looks at more than a thousand tasks: with a filter that few match, a page may be
short or empty and still be followed by another. A page goes on behind the last task of
the one before, wherever that task stands by then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from workstealing.errors import ConfigurationError
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
from workstealing.queue import inspection_calls, limit_calls, listing_calls
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.listing_calls import CHUNK, TaskSummary
from workstealing.queue.pause_calls import Pauses
from workstealing.queue.replies import number, shown
from workstealing.queue.steps import Flow, RedisCommand, ask
from workstealing.tasks.outcome import ErrorReport, State
from workstealing.tasks.previews import preview_outcome

__all__ = ("SEARCHED", "TaskFilter", "TaskPage", "group_of", "search_tasks")

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

_LOOKED_AT = 1000
_STRETCH = 250
_CONTAINERS = 40
# How far a list is searched for the task that the last page ended with.
_FAR = 10_000
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


@dataclass(frozen=True, slots=True)
class _Container:
    """A key that holds ids."""

    name: str
    key: str
    kind: str
    """`list`; `ended`: the list of outcomes, from the latest; `rising` or `falling`: a
    sorted set, from the lowest or the highest."""


def search_tasks(
    keys: QueueKeys, wanted: TaskFilter, after: str, limit: int
) -> Flow[TaskPage]:
    """Find tasks behind a place, which the page before has named."""
    if wanted.state not in SEARCHED:
        raise ConfigurationError(
            f"state must be one of {', '.join(SEARCHED)}, got {wanted.state!r}"
        )
    seen = yield from ask(inspection_calls.counts(keys))
    total = _total(wanted.state, seen)
    if wanted.state == "running":
        page = yield from _running(keys, wanted, seen, after, limit)
        return page
    if wanted.state == "steps":
        page = yield from _steps(keys, wanted, seen, after, limit)
        return page
    containers = yield from _containers(keys, wanted.state, seen)
    name, place, member = _read_place(after)
    rows: list[TaskRow] = []
    looked_at = 0
    left = [one for one in containers if one.name >= name]
    for container in left[:_CONTAINERS]:
        first: _Position = b"" if container.kind == "ended" else 0
        if container.name == name:
            first = yield from _resume(container, place, member)
        while True:
            most = min(_STRETCH, _LOOKED_AT - looked_at)
            if wanted.is_any:
                most = min(most, limit - len(rows))
            stretch = yield from _members(container, first, most)
            found = yield from _rows(keys, wanted.state, container, stretch, seen)
            for n, (one, row) in enumerate(found):
                looked_at += 1
                if row is not None and wanted.has(row, one, seen.now_ms):
                    rows.append(row)
                if len(rows) == limit:
                    here = _place(container, first, stretch, n)
                    is_last = (
                        n == len(found) - 1
                        and len(stretch) < most
                        and container is left[-1]
                    )
                    after = "" if is_last else here
                    return TaskPage(tuple(rows), total, looked_at, after)
            if len(stretch) < most:
                break
            if looked_at >= _LOOKED_AT:
                here = _place(container, first, stretch, len(stretch) - 1)
                return TaskPage(tuple(rows), total, looked_at, here)
            first = _behind(first, stretch)
    more = left[_CONTAINERS:]
    after = json.dumps([more[0].name, 0, ""]) if more else ""
    return TaskPage(tuple(rows), total, looked_at, after)


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


def _total(state: str, seen: Counts) -> int:
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


def _containers(keys: QueueKeys, state: str, seen: Counts) -> Flow[list[_Container]]:
    if state == "delayed":
        return [_Container("later", keys.later, "rising")]
    if state == "dead":
        return [_Container("dead", keys.dead, "falling")]
    if state == "done":
        return [
            _Container("ended", keys.outcome_times, "ended"),
            # What releases before this one have written is older.
            _Container("outbox", keys.outbox, "falling"),
        ]
    if state == "paused":
        return [_Container("aside", keys.aside, "rising")]
    if state == "assigned":
        return [
            _Container(worker, keys.deque(worker), "list")
            for worker in sorted(seen.leases)
            if seen.loads.get(worker)
        ]
    if state == "parked":
        call = listing_calls.parked_abilities(keys, most=_CONTAINERS)
        abilities = yield from ask(call)
        return [
            _Container(ability, keys.parked_for(ability), "rising")
            for ability in sorted(abilities)
        ]
    inboxes = [
        _Container(f"inbox:{n}", key, "list") for n, key in enumerate(keys.inboxes)
    ]
    return [*inboxes, _Container("lines", keys.lines, "rising")]


_Member = tuple[str, int]
"""A member of a container, and its milliseconds."""
_Position: TypeAlias = int | bytes
"""How many members are passed over; or, of those that ended, the last one of them."""


def _members(container: _Container, first: _Position, most: int) -> Flow[list[_Member]]:
    if isinstance(first, bytes):
        key = container.key
        ended = listing_calls.ended(key, most=most, latest=True, after=first)
        return [(one.id, one.expires_ms) for one in (yield from ask(ended))]
    if container.kind == "list":
        call = RedisCommand(
            ("LRANGE", container.key, first, first + most - 1),
            lambda reply: [(shown(one), 0) for one in reply],
        )
        return (yield from ask(call))
    latest = container.kind == "falling"
    ranked = listing_calls.ranked(container.key, most=most, latest=latest, first=first)
    return list((yield from ask(ranked)))


def _behind(first: _Position, stretch: Sequence[_Member]) -> _Position:
    """Return the position behind a stretch that begins at another."""
    if isinstance(first, bytes):
        task_id, expires_ms = stretch[-1]
        return f"{task_id} {expires_ms}".encode()
    return first + len(stretch)


def _resume(container: _Container, place: int, member: str) -> Flow[_Position]:
    """Return the position behind a member, or where it was if it is gone."""
    key = container.key
    if container.kind == "ended":
        return f"{member} {place}".encode() if member else b""
    if not member:
        return 0
    if container.kind == "list":
        if place >= _FAR:
            return place + 1
        found = yield from ask(listing_calls.position(key, member, most=_FAR))
        # What was taken since stood in front of it, and it is gone with them.
        return 0 if found is None else found + 1
    rank, before = "ZRANK", ("-inf", f"({place}")
    if container.kind == "falling":
        rank, before = "ZREVRANK", (f"({place}", "+inf")
    score = yield from ask(listing_calls.score(key, member))
    if score == place:
        found = yield from ask(RedisCommand((rank, key, member), number))
        return (found or 0) + 1
    # It is gone, or stands elsewhere by now: go on where it stood. Many may have been
    # given up in the same millisecond; those stand in the order of their ids.
    low = yield from ask(RedisCommand(("ZCOUNT", key, *before), int))
    high = low + (yield from ask(RedisCommand(("ZCOUNT", key, place, place), int)))
    is_rising = container.kind == "rising"
    while low < high:
        middle = (low + high) // 2
        there = yield from _members(container, middle, 1)
        if there and (there[0][0].encode() < member.encode()) == is_rising:
            low = middle + 1
        else:
            high = middle
    return low


def _rows(
    keys: QueueKeys,
    state: str,
    container: _Container,
    members: Sequence[_Member],
    seen: Counts,
) -> Flow[list[tuple[TaskSummary, TaskRow | None]]]:
    """Read one row for each member; None for one that is there in name only."""
    ids = [member.split("\0")[-1] for member, _ in members]
    times = dict(zip(ids, (ms for _, ms in members), strict=True))
    found = {one.id: one for one in (yield from summaries(keys, ids))}
    notes: dict[str, str] = {}
    if container.name == "lines" and members:
        notes = yield from _line_notes(keys, members)
    gone = TaskSummary("", b"", 0, "", "", b"", 0, 0, 0)
    return [
        (
            found.get(task_id, gone),
            _row_of(
                found[task_id],
                state,
                container.name,
                times[task_id],
                seen.pauses,
                notes.get(task_id, ""),
            )
            if task_id in found
            else None,
        )
        for task_id in ids
    ]


def _line_notes(keys: QueueKeys, members: Sequence[_Member]) -> Flow[dict[str, str]]:
    lines = {
        member.split("\0")[-1]: member.split("\0")[0].encode() for member, _ in members
    }
    call = limit_calls.full_limits(keys, tuple(dict.fromkeys(lines.values())))
    limit_of = yield from ask(call)
    return {
        task_id: f"held back by limit {limit_of[line]}"
        for task_id, line in lines.items()
        if limit_of.get(line)
    }


def _row_of(
    one: TaskSummary, state: str, container: str, ms: int, pauses: Pauses, note: str
) -> TaskRow | None:
    if state == "dead":
        return dead_letter_row(one, ms)
    if state == "done":
        return ended_row(one) if has_ended(one) else None
    if state == "delayed":
        return task_row(one, State.DELAYED, "later", at_ms=ms, note=last_failure(one))
    if not one.envelope:
        return None
    if state == "parked":
        reason = f"no worker could run {container}"
        return waiting_row(one, State.PARKED, "parked", reason)
    if state == "paused":
        return waiting_row(one, State.PAUSED, "paused", "its name is paused")
    if state == "assigned":
        return not_begun_row(one, State.ASSIGNED, f"queues/{container}", pauses)
    if one.worker:
        return None
    return not_begun_row(one, State.WAITING, "inbox", pauses, note or last_failure(one))


def _running(
    keys: QueueKeys, wanted: TaskFilter, seen: Counts, after: str, limit: int
) -> Flow[TaskPage]:
    """List what runs; that is never more than the slots of the workers."""
    workers = tuple(sorted(seen.leases))
    held: list[tuple[str, str, int]] = []
    for start in range(0, len(workers), CHUNK):
        room = _RUNNING - len(held)
        if room > 0:
            some = workers[start : start + CHUNK]
            held += yield from ask(listing_calls.list_running(keys, some, most=room))
    held.sort(key=lambda one: (one[2], one[1]))
    _, place, member = _read_place(after)
    if member:
        held = [one for one in held if (one[2], one[1]) > (place, member)]
    rows: list[TaskRow] = []
    for start in range(0, len(held), _STRETCH):
        some_held = held[start : start + _STRETCH]
        found = yield from summaries(keys, [task_id for _, task_id, _ in some_held])
        by_id = {one.id: one for one in found}
        for worker, task_id, at_ms in some_held:
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
            if len(rows) == limit:
                here = json.dumps(["running", at_ms, task_id])
                is_last = (worker, task_id, at_ms) == held[-1]
                total = max(len(held), len(rows))
                return TaskPage(tuple(rows), total, total, "" if is_last else here)
    return TaskPage(tuple(rows), len(held), len(held), "")


def _steps(
    keys: QueueKeys, wanted: TaskFilter, seen: Counts, after: str, limit: int
) -> Flow[TaskPage]:
    """List steps that wait for others; a hash has no order, so a page may be longer."""
    _, _, cursor = _read_place(after)
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
        is_enough = len(rows) >= limit or looked_at >= _LOOKED_AT
        if cursor == "0" or is_enough:
            after = "" if cursor == "0" else json.dumps(["steps", 0, cursor])
            return TaskPage(tuple(rows), seen.steps, looked_at, after)


def _place(
    container: _Container, first: _Position, stretch: Sequence[_Member], n: int
) -> str:
    name, ms = stretch[n]
    place = ms
    if container.kind == "list" and isinstance(first, int):
        place = first + n
    return json.dumps([container.name, place, name])


def _read_place(after: str) -> tuple[str, int, str]:
    if not after:
        return "", 0, ""
    try:
        name, place, member = json.loads(after)
    except (ValueError, TypeError, RecursionError):
        name, place, member = None, None, None
    if _is_place(name, place, member):
        return name, place, member
    raise ConfigurationError(
        "after must be what the page before has named, or empty for the first page"
    )


def _is_place(name: Any, place: Any, member: Any) -> bool:
    return isinstance(name, str) and type(place) is int and isinstance(member, str)
