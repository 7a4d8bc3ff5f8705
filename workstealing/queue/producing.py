"""What those who have work to give ask of Redis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, cast

from workstealing.queue.call import Argument, Call
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import text
from workstealing.queue.scripts import load_script
from workstealing.queue.settings import QueueSettings

__all__ = ("Cancelled", "Submitted", "cancel", "close", "replay", "submit")

Cancelled = Literal["unknown", "ended", "asked", "cancelled", "moved"]


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submission."""

    verdict: Literal["ok", "full", "closed"]
    known: frozenset[int]
    """Positions of ids that were there already."""


def submit(
    keys: QueueKeys,
    settings: QueueSettings,
    tasks: Sequence[tuple[str, bytes]],
    *,
    priority: int,
    due_ms: int = 0,
    delay_ms: int = 0,
) -> Call[Submitted]:
    """Put up to a thousand tasks, id and envelope, of one priority into the queue."""
    flat: list[Argument] = [due_ms, delay_ms, settings.max_length, len(tasks)]
    flat.extend(task_id for task_id, _ in tasks)
    flat.extend(chain.from_iterable(tasks))
    return Call(
        load_script(__package__, "submit"),
        (
            keys.inboxes[priority],
            keys.task,
            keys.done,
            keys.later,
            keys.control,
            keys.bell,
            keys.stats,
            keys.graves,
            *keys.inboxes,
        ),
        tuple(flat),
        _submitted,
    )


def cancel(
    keys: QueueKeys, settings: QueueSettings, task_id: str, worker: str, outcome: bytes
) -> Call[Cancelled]:
    """Cancel a task that *worker* holds, or nobody if that is empty."""
    return Call(
        load_script(__package__, "cancel"),
        (
            keys.task,
            keys.lock,
            keys.done,
            keys.outbox,
            keys.later,
            keys.dead,
            keys.running(worker),
            keys.cancels,
            keys.history,
            keys.parked,
            keys.stats,
            keys.awaited,
            keys.graves,
            keys.deque(worker),
            keys.loads,
        ),
        (task_id, worker, outcome, settings.retention_ms),
        lambda reply: cast("Cancelled", text(reply)),
    )


def replay(keys: QueueKeys, task_id: str, *, drop: bool) -> Call[bool]:
    """Put a dead letter back into its inbox, or drop it for good."""
    return Call(
        load_script(__package__, "replay"),
        (
            keys.dead,
            keys.task,
            keys.done,
            keys.history,
            *keys.inboxes,
            keys.lock,
            keys.bell,
        ),
        (task_id, int(drop)),
        bool,
    )


def close(keys: QueueKeys, *, closed: bool) -> Call[bool]:
    """Say that no more input comes, or that it does again."""
    return Call(
        load_script(__package__, "close"), (keys.control,), (int(closed),), bool
    )


def _submitted(reply: Any) -> Submitted:
    verdict = cast("Literal['ok', 'full', 'closed']", text(reply[0]))
    return Submitted(verdict, frozenset(int(position) for position in reply[1:]))
