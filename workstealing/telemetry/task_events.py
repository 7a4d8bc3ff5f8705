"""The events of tasks, one value each.

| event | when | where |
| --- | --- | --- |
| `TaskSubmitted` | tasks were put into the queue | the process that submits |
| `TaskStarted` | an attempt begins | the worker |
| `TaskEnded` | an attempt has ended, or a task is refused before one | the worker |
| `TaskRetried` | after `TaskEnded`: it failed, and is tried again later | the worker |
| `TaskGivenUp` | it is a dead letter now | the worker, or the process in upkeep |
| `TaskParked` | no live worker can run it | the worker that had it |
| `TasksStolen` | a worker took tasks from the deque of another | the thief |
| `TasksReassigned` | a dead worker's tasks were given back | the process in upkeep |
| `LeaseLost` | a worker was silent for too long, and lost its tasks | the worker |

`queue` and `worker` are names; `task` is the name of the task, or empty if its envelope
cannot be read or trusted. Times are in seconds.

Do not change an event: other observers get the same one. The two that every attempt has
are not frozen only because making a frozen one takes four times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = (
    "LeaseLost",
    "QueueEvent",
    "TaskEnded",
    "TaskGivenUp",
    "TaskParked",
    "TaskRetried",
    "TaskStarted",
    "TaskSubmitted",
    "TasksReassigned",
    "TasksStolen",
)


@dataclass(frozen=True, slots=True)
class TaskSubmitted:
    """One call has put one or more tasks into the queue."""

    queue: str
    task: str
    id: str
    """Of the task, or of the first of them."""
    number: int
    """How many are new to the queue."""
    known: int
    """How many were not submitted, because their ids were known already."""
    seconds: float
    """How long the call took."""


@dataclass(slots=True, unsafe_hash=True)
class TaskStarted:
    """An attempt begins."""

    queue: str
    task: str
    id: str
    attempt: int
    worker: str
    wait: float | None
    """Seconds since it was submitted, or its delay was over; or since it was put back
    into the queue, if it was run before. None for a step of a chain or after a group,
    and if the envelope does not say when the task was submitted."""
    trace: str
    """The W3C `traceparent` that it was submitted with."""


@dataclass(slots=True, unsafe_hash=True)
class TaskEnded:
    """An attempt has ended, or a task was refused or cancelled before it began.

    If the worker has lost the task meanwhile, another worker runs it again, and there
    is one such event for each of them.
    """

    queue: str
    task: str
    id: str
    attempt: int
    worker: str
    outcome: str
    """`done`, `failed`, `dead`, `forged`, `cancelled`, `expired`, `retry`; `back` if it
    was interrupted and handed back, or snoozed; `lost` if another worker has it."""
    wait: float | None
    """As in `TaskStarted`."""
    seconds: float | None
    """How long it ran; None if it was not begun."""
    error: BaseException | None
    """What the task raised, or a hook before it."""


@dataclass(frozen=True, slots=True)
class TaskRetried:
    """An attempt failed, and there will be another."""

    queue: str
    task: str
    id: str
    attempt: int
    """The number of the attempt that failed."""
    worker: str
    delay: float
    """Seconds until it is due again."""
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class TaskGivenUp:
    """A task is a dead letter: it failed for good, was refused, or its workers died."""

    queue: str
    task: str
    id: str
    worker: str
    """The worker that ran it last."""
    reason: str


@dataclass(frozen=True, slots=True)
class TaskParked:
    """A task was put aside until a worker joins that can run it."""

    queue: str
    task: str
    id: str
    version: int


@dataclass(frozen=True, slots=True)
class TasksStolen:
    """A worker with nothing to do has got tasks from the deque of another."""

    queue: str
    worker: str
    victim: str
    number: int


@dataclass(frozen=True, slots=True)
class TasksReassigned:
    """The tasks of a worker that died were given back to the queue, or given up."""

    queue: str
    worker: str
    number: int


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """A worker was silent for longer than its lease, so others have its tasks."""

    queue: str
    worker: str
    silence: float


QueueEvent = (
    TaskSubmitted
    | TaskStarted
    | TaskEnded
    | TaskRetried
    | TaskGivenUp
    | TaskParked
    | TasksStolen
    | TasksReassigned
    | LeaseLost
)
