"""Groups dead letters, and tasks that are tried again, by error and line.

The newest five hundred are looked at, so that it costs the same with a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workstealing.inspecting.listing import summaries
from workstealing.inspecting.task_search import group_of
from workstealing.inspecting.tracebacks import where_raised
from workstealing.queue import listing_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.listing_calls import TaskSummary
from workstealing.queue.steps import Flow, ask
from workstealing.tasks.previews import (
    one_line_reason,
    preview_envelope,
    preview_outcome,
)

__all__ = ("ErrorGroup", "ErrorGroups", "read_error_groups")

_LOOKED_AT = 500
# A traceback of the longest, and what stands around it.
_BYTES = 9 * 1024


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Errors of one class that were raised at one line."""

    group: str
    """Its name; empty if the tasks were given up without an error."""
    error: str
    """The class, or the reason."""
    where: str
    """`shop.py:64 in transcode`; empty if unknown."""
    tasks: int
    names: tuple[str, ...]
    """The names of those tasks."""
    message: str
    """Of the latest."""
    traceback: str
    """Of the latest."""
    latest_id: str
    latest_ms: int


@dataclass(frozen=True, slots=True)
class ErrorGroups:
    """Errors by kind, the most frequent first."""

    groups: tuple[ErrorGroup, ...]
    looked_at: int


def read_error_groups(shards: Sequence[QueueKeys], state: str) -> Flow[ErrorGroups]:
    """Group the newest dead letters, or what is tried again next, by their errors."""
    times: dict[str, int] = {}
    tasks: list[TaskSummary] = []
    most = _LOOKED_AT // len(shards)
    for keys in shards:
        key, latest = (keys.dead, True) if state == "dead" else (keys.later, False)
        some = dict(
            (yield from ask(listing_calls.ranked(key, most=most, latest=latest)))
        )
        tasks += yield from summaries(keys, tuple(some), most=_BYTES)
        times |= some
    by_group: dict[tuple[str, str], list[TaskSummary]] = {}
    for one in tasks:
        named = _named(one)
        if named is not None:
            by_group.setdefault(named, []).append(one)
    groups = [_group(*named, some, times) for named, some in by_group.items()]
    groups.sort(key=lambda one: (-one.tasks, one.error))
    return ErrorGroups(tuple(groups), len(times))


def _named(one: TaskSummary) -> tuple[str, str] | None:
    text = one.outcome or (one.failures[0] if one.failures else b"")
    if not text:
        return None
    outcome = preview_outcome(text)
    if outcome.error is None:
        return "", outcome.reason
    return group_of(outcome.error), outcome.error.type


def _group(
    group: str, error: str, some: Sequence[TaskSummary], times: dict[str, int]
) -> ErrorGroup:
    latest = max(some, key=lambda one: times.get(one.id, 0))
    outcome = preview_outcome(latest.outcome or latest.failures[0])
    traceback = outcome.error.traceback if outcome.error else ""
    names = {
        preview_envelope(one.envelope).ability if one.envelope else "" for one in some
    }
    return ErrorGroup(
        group=group,
        error=error,
        where=where_raised(traceback),
        tasks=len(some),
        names=tuple(sorted(names - {""})),
        message=one_line_reason(outcome),
        traceback=traceback,
        latest_id=latest.id,
        latest_ms=times.get(latest.id, 0),
    )
