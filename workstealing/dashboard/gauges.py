"""The numbers of queues as text that Prometheus and autoscalers read.

| metric | labels |
| --- | --- |
| `workstealing_queue_backlog` | `queue`, `run` |
| `workstealing_queue_backlog_per_worker` | `queue`, `run` |
| `workstealing_queue_tasks` | `queue`, `run`, `place` |
| `workstealing_queue_workers` | `queue`, `run` |
| `workstealing_queue_oldest_seconds` | `queue`, `run` |
| `workstealing_queue_events_total` | `queue`, `run`, `what` |
| `workstealing_queue_wait_seconds` | `queue`, `run`, `task`, `quantile` |
| `workstealing_queue_run_seconds` | `queue`, `run`, `task`, `quantile` |

The last two are of the last minutes, about: waits are sampled, and both are estimated
from histograms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from workstealing.inspecting import QueueHistory, QueueStat, TaskStat
from workstealing.inspecting.stat_rows import PLACE_TITLES

__all__ = ("family", "gauges", "sample")

_PLACES = (*PLACE_TITLES, "outcomes")
_QUANTILES = (0.5, 0.95, 0.99)


def gauges(seen: Sequence[QueueStat], lately: Sequence[QueueHistory] = ()) -> str:
    """Return the metrics of some queues, in the text format of Prometheus.

    *lately* is what ended in each of them in the last minutes.
    """
    tasks = [
        (one, task)
        for one, history in zip(seen, lately, strict=False)
        for task in history.tasks
    ]
    lines = [
        *_family("backlog", "gauge", "Tasks that can run now."),
        *(_line("backlog", one, one.backlog) for one in seen),
        *_family("backlog_per_worker", "gauge", "Tasks that are due, per worker."),
        *(_line("backlog_per_worker", one, one.backlog_per_worker) for one in seen),
        *_family("tasks", "gauge", "Tasks, by where they are."),
        *(
            _line("tasks", one, getattr(one, place), place=place)
            for one in seen
            for place in _PLACES
        ),
        *_family("workers", "gauge", "Live workers."),
        *(_line("workers", one, one.living) for one in seen),
        *_family("oldest_seconds", "gauge", "How long the oldest task has waited."),
        *(_line("oldest_seconds", one, _oldest(one)) for one in seen),
        *_family("events_total", "counter", "Events since the queue was created."),
        *(
            _line("events_total", one, getattr(one.totals, what), what=what)
            for one in seen
            for what in type(one.totals).__slots__
        ),
        *_family("wait_seconds", "gauge", "How long tasks waited to be begun."),
        *_quantiles(
            "wait_seconds",
            [(one, task) for one, task in tasks if any(task.waits)],
            TaskStat.wait_quantile_ms,
        ),
        *_family("run_seconds", "gauge", "How long attempts took."),
        *_quantiles(
            "run_seconds",
            [(one, task) for one, task in tasks if any(task.histogram)],
            TaskStat.quantile_ms,
        ),
    ]
    return "\n".join(lines) + "\n"


def family(name: str, kind: str, description: str) -> Iterator[str]:
    """Write the two lines that begin the samples of a metric."""
    yield f"# HELP workstealing_{name} {description}"
    yield f"# TYPE workstealing_{name} {kind}"


def sample(name: str, value: float, /, **labels: str) -> str:
    """Write one number of a metric."""
    written = ",".join(f'{label}="{_escaped(word)}"' for label, word in labels.items())
    return f"workstealing_{name}{{{written}}} {value}"


def _family(name: str, kind: str, description: str) -> Iterator[str]:
    return family(f"queue_{name}", kind, description)


def _quantiles(
    name: str,
    tasks: Sequence[tuple[QueueStat, TaskStat]],
    quantile_ms: Callable[[TaskStat, float], float],
) -> Iterator[str]:
    for one, task in tasks:
        for share in _QUANTILES:
            seconds = round(quantile_ms(task, share) / 1000, 6)
            yield _line(name, one, seconds, task=task.task, quantile=str(share))


def _line(name: str, seen: QueueStat, value: float, **labels: str) -> str:
    return sample(f"queue_{name}", value, queue=seen.queue, run=seen.run, **labels)


def _escaped(word: str) -> str:
    return word.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _oldest(seen: QueueStat) -> float:
    if seen.oldest_at_ms is None:
        return 0.0
    return max(0, seen.now_ms - seen.oldest_at_ms) / 1000
