"""Finds one task for those who look; also one whose outcome cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from workstealing.inspecting.heads import outcome_of
from workstealing.queue.call import Flow
from workstealing.queue.keys import QueueKeys
from workstealing.queue.locating import locate
from workstealing.queue.reading import Trace
from workstealing.tasks.noting import Progress
from workstealing.tasks.outcome import State

__all__ = ("Finding", "find")


@dataclass(frozen=True, slots=True)
class Finding:
    """A task as it was found."""

    id: str
    state: State
    trace: Trace
    begun_at_ms: int | None
    """When its worker took it in hand, if it has."""
    progress: Progress | None = None
    """How far it says that it is, while it runs."""


def find(keys: QueueKeys, task_id: str) -> Flow[Finding]:
    """Look a task up."""
    found = yield from locate(keys, task_id)
    state = found.place or State(outcome_of(found.trace.outcome).state)
    return Finding(task_id, state, found.trace, found.begun_at_ms, found.progress)
