"""What those who have work to give ask of Redis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from workstealing.queue.call import Call
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
    channel: str = "",
) -> Call[Submitted]:
    """Put up to a thousand tasks, id and envelope, of one priority into the queue.

    What becomes of them is told on *channel*.
    """
    firsts = _firsts(tasks)
    limits = (due_ms, delay_ms, settings.max_length, len(firsts), channel)
    ids = (tasks[position][0] for position in firsts)
    envelopes = (tasks[position][1] for position in firsts)

    def parse(reply: Any) -> Submitted:
        verdict = cast("Literal['ok', 'full', 'closed']", text(reply[0]))
        known = {firsts[int(position)] for position in reply[1:]}
        if verdict == "ok" and len(firsts) < len(tasks):
            known.update(set(range(len(tasks))).difference(firsts))
        return Submitted(verdict, frozenset(known))

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
            keys.awaited,
            keys.dead,
        ),
        (*limits, *ids, *envelopes),
        parse,
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


def _firsts(tasks: Sequence[tuple[str, bytes]]) -> Sequence[int]:
    """Return where each id stands first: everywhere, but for careless callers."""
    if len({task_id for task_id, _ in tasks}) == len(tasks):
        return range(len(tasks))
    seen: dict[str, int] = {}
    for position, (task_id, _) in enumerate(tasks):
        seen.setdefault(task_id, position)
    return list(seen.values())
