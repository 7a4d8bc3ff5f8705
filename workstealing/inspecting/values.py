"""What one sees who looks at a queue, as values.

Names and meanings are stable: `workstealing queue stat --json` and `ls --json` print
them as they stand. Times are milliseconds, moments since 1970 by the server's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workstealing.tasks.outcome import State

__all__ = (
    "Entry",
    "Explanation",
    "Node",
    "ParkedStat",
    "QueuesFound",
    "Stat",
    "TaskView",
    "Totals",
    "Upkeep",
    "WorkerStat",
)


@dataclass(frozen=True, slots=True)
class WorkerStat:
    """One worker."""

    name: str
    is_alive: bool
    waiting: int
    """Tasks in its deque."""
    running: int
    """Tasks in its hands: the one that runs, and a few that are next."""
    stolen: int
    """Tasks that it took from others."""
    lease_age_ms: int
    """Since it renewed its lease."""
    lease_left_ms: int
    """Below 0 the lease is over, and the worker is taken for dead."""
    host: str
    pid: int
    since_ms: int
    """When it joined, by its own clock; 0 if it does not say."""


@dataclass(frozen=True, slots=True)
class ParkedStat:
    """Tasks that no worker could run."""

    ability: str
    """What they need, as `name@version`."""
    tasks: int
    reason: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What happened since the queue was made."""

    submitted: int
    done: int
    failed: int
    """They raised, and are not tried again."""
    dead: int
    """All that were given up: those, and what cannot be run at all."""
    forged: int
    """Refused, since their signatures did not hold."""
    cancelled: int
    retried: int
    handed_back: int
    """By workers that stopped."""
    reassigned: int
    """From workers that died."""
    stolen: int


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Which duty was last done when, and who did how many slices."""

    done_at_ms: dict[str, int]
    slices: dict[str, int]


@dataclass(frozen=True, slots=True)
class Stat:
    """How a queue is."""

    queue: str
    run: str
    server: str
    """Where it was looked for, without user and password."""
    is_known: bool
    """Something of it is there: tasks, workers, or what they left behind."""
    now_ms: int
    is_closed: bool
    """No more input comes."""
    waiting: int
    """Assigned to nobody."""
    inbox: tuple[int, int, int]
    """The same by priority; cancelled ones that were not passed over yet included."""
    oldest_at_ms: int | None
    """When the one of them that waits longest was submitted, as far as it is told."""
    assigned: int
    """In the deques of workers."""
    running: int
    delayed: int
    parked: int
    dead: int
    outcomes: int
    """Tasks that ended and whose outcome is still kept."""
    unfinished: int
    """All that still want to be run, delayed ones included."""
    backlog: int
    """Those of them that are due: waiting, assigned and running."""
    living: int
    """Workers that live."""
    backlog_per_worker: float
    """What an autoscaler wants; as if there were one worker when there is none."""
    workers: tuple[WorkerStat, ...]
    """A thousand at most, those first whose lease ends first."""
    parkings: tuple[ParkedStat, ...]
    totals: Totals
    upkeep: Upkeep
    bytes: dict[str, int] | None
    """Memory of each key, those of all deques as `queues`; None if it is not told."""


@dataclass(frozen=True, slots=True)
class QueuesFound:
    """Which queues a server has."""

    names: tuple[tuple[str, str], ...]
    """Queue and run, in order."""
    is_all: bool
    """False if the server has more keys than were looked at."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a list."""

    id: str
    task: str
    """`name@version`, `?` if its envelope cannot be read; empty if nobody told."""
    state: State
    place: str
    """Where it stands, as in the tree: `inbox`, `queues/pool.0`, `outbox`, …"""
    worker: str
    at_ms: int
    """When it was submitted, begun, is due, ended or was given up; 0 if unknown."""
    note: str
    """Why, if there is something to say."""
    attempts: int
    """That failed."""
    deaths: int
    """Workers that died running it."""
    steals: int
    size: int
    """Bytes of the envelope; 0 if it has ended."""


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task, with all that is kept of it."""

    id: str
    state: State
    summary: str
    """Where it is, in one line."""
    envelope: Any
    """As plain values, or as text if it is no JSON; None once it has ended."""
    outcome: Any
    """The same, without result and traceback; None until it ends."""
    result: Any
    traceback: str


@dataclass(frozen=True, slots=True)
class Node:
    """A folder or a file of the tree."""

    name: str
    note: str = ""
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task is where it is, in sentences."""

    id: str
    state: State
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.sentences)
