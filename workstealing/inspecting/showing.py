"""Shows one task with all that is kept of it."""

from __future__ import annotations

import json
from typing import Any

from workstealing.errors import TaskNotFound
from workstealing.inspecting.explaining import sentences_on
from workstealing.inspecting.finding import find
from workstealing.inspecting.heads import outcome_of
from workstealing.inspecting.values import TaskView
from workstealing.queue.call import Flow
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.outcome import State, TaskOutcome

__all__ = ("show",)


def show(keys: QueueKeys, settings: QueueSettings, task_id: str) -> Flow[TaskView]:
    """Show a task; `TaskNotFound` if nothing is kept of it."""
    found = yield from find(keys, task_id)
    if found.state is State.UNKNOWN:
        raise TaskNotFound(f"there is no task {task_id}, or its outcome has expired")
    sentences = yield from sentences_on(keys, settings, found)
    seen = found.trace
    outcome = outcome_of(seen.outcome) if seen.outcome else None
    return TaskView(
        id=task_id,
        state=found.state,
        summary=sentences[0],
        envelope=_plain(seen.envelope) if seen.envelope else None,
        outcome=None if outcome is None else _told(outcome),
        result=None if outcome is None else _plain(bytes(outcome.result)),
        traceback=outcome.error.traceback if outcome and outcome.error else "",
    )


def _plain(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.decode(errors="replace")


def _told(outcome: TaskOutcome) -> dict[str, Any]:
    told: dict[str, Any] = {"state": outcome.state}
    if outcome.error is not None:
        told["error"] = {"type": outcome.error.type, "message": outcome.error.message}
    if outcome.reason:
        told["reason"] = outcome.reason
    if outcome.worker:
        told["worker"] = outcome.worker
    return told | {
        "ended": outcome.ended,
        "took": outcome.took,
        "attempt": outcome.attempt,
    }
