"""What exporters count and measure, under the same names in each of them.

Anybody may write an envelope, and every name of a task makes a time series of its own.
So these names are bounded: an exporter uses the first hundred that it meets, or as many
as it is told, and calls the rest `other`.
"""

from __future__ import annotations

from workstealing._checks import checked_whole
from workstealing.telemetry.events import (
    Event,
    RateAdapted,
    SetupFailed,
    SliceEnded,
    SliceRefused,
)
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

__all__ = ("COUNTERS", "MOST_TASKS", "TIMES", "EventMetrics")

MOST_TASKS = 100
COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "enlist_calls": ("Moments offered.", ()),
    "slices": ("Slices drawn, by how they ended.", ("side_job", "outcome")),
    "slice_overruns": ("Slices that took longer than their deadline.", ("side_job",)),
    "setup_failures": ("Setups that raised.", ()),
    "rate_changes": ("Rates that a recruiter changed by itself.", ("side_job",)),
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

_SLICE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_TASK_BUCKETS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0),
)
_WAITED = "How long tasks that were due had waited."
TIMES: dict[str, tuple[str, tuple[str, ...], tuple[float, ...]]] = {
    "slice": ("How long slices took.", ("side_job",), _SLICE_BUCKETS),
    "task_wait": (_WAITED, ("queue", "task"), _TASK_BUCKETS),
    "task_run": ("How long attempts ran.", ("queue", "task"), _TASK_BUCKETS),
}
"""Name of what is measured in seconds, to description, labels and buckets."""

_OTHER = "other"


class EventMetrics:
    """Turns events into counts and measured times."""

    def __init__(self, most_tasks: int) -> None:
        self._most = checked_whole(most_tasks, "most_tasks", 1)
        self._names: set[str] = set()

    def counted(self, event: Event) -> list[tuple[str, int, tuple[str, ...]]]:
        """Return the counters that grow, by how much, and their labels."""
        if isinstance(event, TaskStarted):
            return [("task_starts", 1, (event.queue, self._name(event.task)))]
        if isinstance(event, TaskEnded):
            labels = (event.queue, self._name(event.task), event.outcome)
            return [("task_ends", 1, labels)]
        if isinstance(event, TaskSubmitted):
            task = (event.queue, self._name(event.task))
            return [("tasks_submitted", event.number, task)]
        if isinstance(event, TaskGivenUp):
            return [("tasks_given_up", 1, (event.queue, self._name(event.task)))]
        if isinstance(event, TaskParked):
            return [("tasks_parked", 1, (event.queue, self._name(event.task)))]
        if isinstance(event, TasksStolen):
            return [("tasks_stolen", event.number, (event.queue,))]
        if isinstance(event, TasksReassigned):
            return [("tasks_reassigned", event.number, (event.queue,))]
        if isinstance(event, LeaseLost):
            return [("leases_lost", 1, (event.queue,))]
        if isinstance(event, SliceEnded | SliceRefused):
            counts: list[tuple[str, int, tuple[str, ...]]] = [
                ("enlist_calls", event.calls, ()),
                ("slices", 1, (event.job, event.outcome.value)),
            ]
            if isinstance(event, SliceEnded) and event.overran:
                counts.append(("slice_overruns", 1, (event.job,)))
            return counts
        if isinstance(event, SetupFailed):
            return [("setup_failures", 1, ())]
        if isinstance(event, RateAdapted):
            return [("rate_changes", 1, (event.job,))]
        return []

    def timed(self, event: Event) -> list[tuple[str, float, tuple[str, ...]]]:
        """Return what was measured, the seconds, and the labels."""
        if isinstance(event, TaskEnded):
            labels = (event.queue, self._name(event.task))
            times = (("task_wait", event.wait), ("task_run", event.seconds))
            return [(name, took, labels) for name, took in times if took is not None]
        if isinstance(event, SliceEnded):
            return [("slice", event.seconds, (event.job,))]
        return []

    def _name(self, task: str) -> str:
        """Return what a task is called: by its own name, or as one of the others."""
        names = self._names
        if task not in names:
            if not task or len(names) >= self._most:
                return _OTHER
            names.add(task)
        return task
