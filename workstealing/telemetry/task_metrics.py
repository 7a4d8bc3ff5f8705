"""What exporters count of tasks, under the same names in each of them.

Names of tasks are bounded, because anybody may write an envelope, and every name is a
time series of its own for each metric that has it: an exporter uses the first hundred
that it meets, or as many as it is told, and calls the rest `other`.
"""

from __future__ import annotations

from workstealing._checks import checked_whole
from workstealing.telemetry.events import Event
from workstealing.telemetry.task_events import (
    LeaseLost,
    TaskEnded,
    TaskGivenUp,
    TaskParked,
    TasksReassigned,
    TasksStolen,
    TaskStarted,
    TaskSubmitted,
)

__all__ = ("COUNTERS", "MOST_TASKS", "TASK_BUCKETS", "TIMES", "TaskMetrics")

MOST_TASKS = 100
TASK_BUCKETS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0),
)
COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "tasks_submitted": ("Tasks submitted.", ("queue", "task")),
    "task_starts": ("Attempts begun.", ("queue", "task")),
    "task_ends": ("Attempts, by how they ended.", ("queue", "task", "outcome")),
    "tasks_given_up": ("Tasks that became dead letters.", ("queue", "task")),
    "tasks_parked": ("Tasks that no worker could run.", ("queue", "task")),
    "tasks_stolen": ("Tasks taken from another worker.", ("queue",)),
    "tasks_reassigned": ("Tasks taken from dead workers.", ("queue",)),
    "leases_lost": ("Workers that were taken for dead.", ("queue",)),
}
"""Name, without `workstealing_`, to description and labels."""
TIMES = {
    "task_wait": "How long tasks that were due had waited.",
    "task_run": "How long attempts ran.",
}
"""Name of what is measured in seconds, by queue and task, to its description."""

_OTHER = "other"


class TaskMetrics:
    """Reads from events what is to be counted and measured."""

    def __init__(self, most_tasks: int) -> None:
        self._most = checked_whole(most_tasks, "most_tasks", 1)
        self._names: set[str] = set()

    def counted(self, event: Event) -> tuple[str, int, tuple[str, ...]] | None:
        """Return the counter, how much it grows, and its labels; None if none does."""
        if isinstance(event, TaskStarted):
            return "task_starts", 1, (event.queue, self.name(event.task))
        if isinstance(event, TaskEnded):
            task = self.name(event.task)
            return "task_ends", 1, (event.queue, task, event.outcome)
        if isinstance(event, TaskSubmitted):
            labels = (event.queue, self.name(event.task))
            return "tasks_submitted", event.number, labels
        if isinstance(event, TaskGivenUp):
            return "tasks_given_up", 1, (event.queue, self.name(event.task))
        if isinstance(event, TaskParked):
            return "tasks_parked", 1, (event.queue, self.name(event.task))
        if isinstance(event, TasksStolen):
            return "tasks_stolen", event.number, (event.queue,)
        if isinstance(event, TasksReassigned):
            return "tasks_reassigned", event.number, (event.queue,)
        if isinstance(event, LeaseLost):
            return "leases_lost", 1, (event.queue,)
        return None

    def name(self, task: str) -> str:
        """Return what a task is called: by its own name, or as one of the others."""
        names = self._names
        if task not in names:
            if not task or len(names) >= self._most:
                return _OTHER
            names.add(task)
        return task
