"""The values an inspector returns.

Names and meanings are stable: `workstealing queue stat --json` and `ls --json` print
them unchanged. All times are in milliseconds; points in time count from 1970 by the
server's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workstealing.inspecting.biography import Biography, FailedAttempt
from workstealing.tasks.context import Progress
from workstealing.tasks.outcome import State

__all__ = (
    "CutText",
    "Explanation",
    "ParkedStat",
    "PauseStat",
    "QueueStat",
    "QueueTotals",
    "QueuesFound",
    "ShardStat",
    "TaskDetail",
    "TaskRow",
    "TreeNode",
    "UpkeepStat",
    "WorkerStat",
)


@dataclass(frozen=True, slots=True)
class WorkerStat:
    """One worker of a queue."""

    name: str
    is_alive: bool
    waiting: int
    """Tasks in its deque."""
    running: int
    """Tasks it has picked up: those it runs, and a few that it runs next."""
    stolen: int
    """Tasks it has stolen from other workers."""
    lease_age_ms: int
    """Time since it renewed its lease."""
    lease_left_ms: int
    """Time until its lease ends; below 0 the worker counts as dead."""
    host: str
    pid: int
    since_ms: int
    """When it joined, by its own clock; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class ParkedStat:
    """Tasks that are parked because no worker could run them."""

    ability: str
    """What they need, as `name@version`."""
    tasks: int
    reason: str


@dataclass(frozen=True, slots=True)
class PauseStat:
    """A pause: of the whole queue, or of the tasks of one name."""

    task: str
    """The name; empty if the whole queue is paused."""
    since_ms: int
    tasks: int
    """Tasks that were put aside for it. More may wait where they were."""
    reason: str


@dataclass(frozen=True, slots=True)
class QueueTotals:
    """What has happened since the queue was created."""

    submitted: int
    done: int
    failed: int
    """Tasks that raised and are not retried."""
    dead: int
    """All tasks that were given up: the failed ones, and those that cannot be run."""
    forged: int
    """Tasks that were refused because their signature was invalid."""
    cancelled: int
    expired: int
    """Tasks that were not begun in time."""
    retried: int
    handed_back: int
    """Tasks that stopping workers put back."""
    reassigned: int
    """Tasks that were taken back from dead workers."""
    stolen: int
    forgotten: int = 0
    """Dead letters that were deleted because they were too old or too many."""
    brief: int = 0
    """Tasks that were taken in spare moments."""


@dataclass(frozen=True, slots=True)
class UpkeepStat:
    """When each duty of upkeep was last done, and how many slices each party did."""

    done_at_ms: dict[str, int]
    slices: dict[str, int]


@dataclass(frozen=True, slots=True)
class ShardStat:
    """One shard of a queue that has several."""

    shard: int
    waiting: int
    held: int
    """Tasks in the deques of its workers, or running."""
    living: int
    """Workers that are in it now."""
    done: int
    """Tasks done so far."""


@dataclass(frozen=True, slots=True)
class QueueStat:
    """The state of one run of a queue."""

    queue: str
    run: str
    server: str
    """The server that was asked, without user and password."""
    is_known: bool
    """Whether the server holds anything of this run: tasks, workers or outcomes."""
    now_ms: int
    input_ended: bool
    """Whether the input has ended: further tasks are refused."""
    waiting: int
    """Tasks that are due and that no worker has yet, as `count(state="waiting")`."""
    inbox: tuple[int, int, int]
    """Waiting tasks without limits and fair keys, by priority.

    Cancelled ones that were not skipped yet are among them.
    """
    oldest_at_ms: int | None
    """When the task was submitted that has waited longest, held back or not.

    None if nothing waits. Of tasks with limits or fair keys, the first of 50 lines.
    """
    assigned: int
    """Tasks in the deques of workers."""
    running: int
    delayed: int
    parked: int
    paused: int
    """Tasks that were put aside because their name is paused."""
    held_back: int
    """Those that wait and that limits hold back; in over a thousand lines, some."""
    dead: int
    outcomes: int
    """Tasks that ended and whose outcome is still kept."""
    unfinished: int
    """Tasks that are still to run, including delayed ones."""
    backlog: int
    """Those of them that can run now: waiting and not held back, assigned, running.

    Of a queue that is paused, only what runs.
    """
    living: int
    """Workers that are alive."""
    backlog_per_worker: float
    """For an autoscaler; computed for one worker if none is alive."""
    workers: tuple[WorkerStat, ...]
    """At most a thousand, in the order in which their leases end."""
    parked_abilities: tuple[ParkedStat, ...]
    pauses: tuple[PauseStat, ...]
    """What is paused: the whole queue first, then names of tasks."""
    task_names: tuple[str, ...]
    """Names of tasks that its workers can run, at most a hundred."""
    totals: QueueTotals
    upkeep: UpkeepStat
    bytes: dict[str, int] | None
    """Memory per key, with all deques as `queues`; None if not allowed."""
    steps: int = 0
    """Steps of chains and groups that wait for others to end."""
    shards: tuple[ShardStat, ...] = ()
    """Each of them that can be reached, if there are several."""
    unreachable: tuple[int, ...] = ()
    """Shards whose node is away: what they hold is missing from all numbers."""


@dataclass(frozen=True, slots=True)
class QueuesFound:
    """The queues of a server."""

    names: tuple[tuple[str, str], ...]
    """Queue and run, sorted."""
    is_all: bool
    """False if there are more keys than were scanned, or a node did not answer."""
    unreachable: tuple[str, ...] = ()
    """Nodes of a Cluster that did not answer: what they hold is missing."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as one row of a list."""

    id: str
    task: str
    """`name@version`; `?` if its envelope cannot be read, empty if it is unknown."""
    state: State
    place: str
    """Where it is in the tree: `inbox`, `queues/pool.0`, `outbox`, …"""
    worker: str
    at_ms: int
    """When it was submitted, started, ended or given up, or is due; 0 if unknown."""
    note: str
    """The reason for its state, if there is one."""
    attempts: int
    """Attempts that failed."""
    deaths: int
    """Workers that died while running it."""
    steals: int
    size: int
    """Bytes of the envelope; 0 once the task has ended."""
    progress: Progress | None = None
    """How far it says that it is, while it runs."""


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """A task with everything that is kept of it."""

    id: str
    state: State
    summary: str
    """Where it is, in one sentence."""
    envelope: Any
    """Decoded, or as text if it is not JSON; None once the task has ended."""
    outcome: Any
    """Decoded, without result and traceback; None until the task ends."""
    result: Any
    traceback: str
    task: str = ""
    """`name@version`; `?` if its envelope cannot be read."""
    worker: str = ""
    """Who holds it, or who ended it."""
    now_ms: int = 0
    submitted_ms: int = 0
    """0 if unknown, as of a task that is over."""
    begun_ms: int = 0
    """When its worker took it, or its last attempt began; 0 if unknown."""
    due_ms: int = 0
    """When it is due, if it is delayed."""
    ended_ms: int = 0
    failures: tuple[FailedAttempt, ...] = ()
    """Its last three failed attempts that were made again, the latest first."""
    progress: Progress | None = None
    """How far it says that it is, while it runs."""
    biography: Biography | None = None
    """Where it has been and for how long, as far as that is known."""


class CutText(str):
    """The beginning of an envelope or a result that was too long to be decoded."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A folder or file of the tree."""

    name: str
    note: str = ""
    children: tuple[TreeNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a task is and why, in sentences; `str()` joins them."""

    id: str
    state: State
    sentences: tuple[str, ...]
    biography: Biography | None = None
    """Where it has been and for how long, as far as that is known."""

    def __str__(self) -> str:
        return " ".join(self.sentences)
