"""What those who only look ask of Redis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workstealing.queue.call import Call, Command
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import begun, number, pairs, raw, shown, tallies
from workstealing.queue.scripts import load_script

__all__ = ("Counts", "Trace", "begun_at", "counts", "trace")


@dataclass(frozen=True, slots=True)
class Trace:
    """All that is known of a task, but for what its worker's own keys say."""

    now_ms: int
    envelope: bytes
    worker: str
    token: str
    outcome: bytes
    due_ms: int | None
    dead_at_ms: int | None
    needs: str
    """The ability that it is parked for."""
    attempts: int
    deaths: int
    steals: int
    is_cancelling: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """How many are where."""

    now_ms: int
    inbox: tuple[int, int, int]
    """By priority, cancelled ones that were not passed over yet included."""
    tasks: int
    """All that have not ended, and dead letters."""
    assigned: int
    """In deques or running."""
    outcomes: int
    delayed: int
    dead: int
    parked: int
    is_closed: bool
    stats: dict[str, int]
    upkeep: dict[str, int]
    leases: dict[str, int]
    """Up to a thousand workers and the end of their leases, ms."""
    loads: dict[str, int]
    abilities: dict[str, int]

    @property
    def unfinished(self) -> int:
        """Tasks that still want to be run."""
        return self.tasks - self.dead - self.parked


def trace(keys: QueueKeys, task_id: str, *, channel: str = "") -> Call[Trace]:
    """Read all about a task; its outcome will be told on a channel, if named."""
    return Call(
        load_script(__package__, "state"),
        (
            keys.task,
            keys.lock,
            keys.done,
            keys.later,
            keys.dead,
            keys.parked,
            keys.history,
            keys.cancels,
            keys.awaited,
        ),
        (task_id, channel),
        _trace,
        is_raw=True,
    )


def begun_at(keys: QueueKeys, worker: str, task_id: str) -> Command[int | None]:
    """Read when a worker took a task in hand; None if it waits in the deque."""
    return Command(
        ("HGET", keys.running(worker), task_id),
        lambda reply: None if reply is None else begun(reply),
    )


def counts(keys: QueueKeys) -> Call[Counts]:
    """Count what is where."""
    return Call(
        load_script(__package__, "counts"),
        (
            *keys.inboxes,
            keys.task,
            keys.lock,
            keys.outbox,
            keys.later,
            keys.dead,
            keys.parked,
            keys.workers,
            keys.control,
            keys.stats,
            keys.upkeep,
            keys.loads,
            keys.able,
        ),
        (),
        _counts,
    )


def _trace(reply: Any) -> Trace:
    now, envelope, lock, outcome, due, dead_at, needs, history, cancelling = reply
    worker, _, token = shown(lock).rpartition("#")
    return Trace(
        int(now),
        raw(envelope),
        worker,
        token,
        raw(outcome),
        _milliseconds(due),
        _milliseconds(dead_at),
        shown(needs),
        *tallies(history),
        bool(cancelling),
    )


def _milliseconds(score: Any) -> int | None:
    return number(score) if score else None


def _counts(reply: Any) -> Counts:
    now, urgent, normal, low, tasks, assigned, outcomes, delayed, dead = reply[:9]
    parked, closed, stats, upkeep, leases, loads, able = reply[9:]
    return Counts(
        int(now),
        (int(urgent), int(normal), int(low)),
        int(tasks),
        int(assigned),
        int(outcomes),
        int(delayed),
        int(dead),
        int(parked),
        bool(closed),
        _numbers(stats),
        _numbers(upkeep),
        _numbers(leases),
        _numbers(loads),
        _numbers(able),
    )


def _numbers(flat: Any) -> dict[str, int]:
    """Leave out what is no number: whoever wrote it, the rest can be told."""
    read = ((name, number(value)) for name, value in pairs(flat).items())
    return {name: value for name, value in read if value is not None}
