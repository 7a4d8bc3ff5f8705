"""Finds one task: what is kept of it, and which place that means."""

from __future__ import annotations

from dataclasses import dataclass

from workstealing.queue import reading, telling
from workstealing.queue.call import Flow, ask
from workstealing.queue.keys import QueueKeys
from workstealing.queue.reading import Trace
from workstealing.tasks.noting import Progress
from workstealing.tasks.outcome import State

__all__ = ("Located", "locate")


@dataclass(frozen=True, slots=True)
class Located:
    """A task as it was found."""

    trace: Trace
    begun_at_ms: int | None
    """When its worker took it in hand, if it has."""
    place: State | None
    """Where it is; None if it has ended, then its outcome says how."""
    progress: Progress | None = None
    """How far it says that it is, while it runs."""


def locate(keys: QueueKeys, task_id: str) -> Flow[Located]:
    """Look a task up."""
    seen = yield from ask(reading.trace(keys, task_id))
    begun_at, progress = None, None
    if seen.worker and not seen.outcome:
        begun_at = yield from ask(reading.begun_at(keys, seen.worker, task_id))
    if begun_at is not None:
        call = telling.noted(keys, task_id, seen.envelope, "progress")
        shown = yield from ask(call)
        progress = None if shown is None else Progress.read(shown)
    return Located(seen, begun_at, _place(seen, begun_at), progress)


def _place(seen: Trace, begun_at: int | None) -> State | None:
    if seen.outcome:
        return None
    if not seen.envelope:
        return State.UNKNOWN
    known = (
        (seen.dead_at_ms is not None, State.DEAD),
        (bool(seen.needs), State.PARKED),
        (seen.due_ms is not None, State.DELAYED),
        (begun_at is not None, State.RUNNING),
        (bool(seen.worker), State.ASSIGNED),
    )
    return next((state for is_so, state in known if is_so), State.WAITING)
